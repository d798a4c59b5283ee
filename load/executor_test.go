package load_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/racing"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

// messages is how many most of the known answers are about.
const messages = 60_000 / racing.Slowdown

// testCase is a small case; change what matters.
func testCase(qos byte, payload int, v packet.Version) scenarios.Case {
	return scenarios.Case{
		ID: fmt.Sprintf("qos=%d/payload=%d/protocol=%s", qos, payload, v), QoS: qos, Protocol: v,
		Payload: scenarios.Payload{Size: payload}, Transport: scenarios.TCP,
		Load: scenarios.Load{
			Shape: scenarios.Pairs, Topics: 1, Publishers: 1, Subscribers: 1, TopicsPerPublisher: 1, TopicsPerSubscriber: 1, Inflight: 100, Messages: 1000, Launches: 1, Warmup: 1, Iterations: 3,
			MinTime: 250 * time.Millisecond, Drain: 5 * time.Second, OperationsPerMessage: 1,
		},
		Clients: scenarios.Clients{Topic: "t/%r/%i", ClientID: "c%r%i", CleanStart: true, KeepAlive: time.Minute, StartNumber: 1},
	}
}

// serve starts the loopback broker and points the cases at it.
func serve(t testing.TB, cases []scenarios.Case, tc *tls.Config) {
	t.Helper()
	scheme := "mqtt"
	if tc != nil {
		scheme = "mqtts"
	}
	l, err := broker.Listen(scheme, "127.0.0.1:0", tc)
	if err != nil {
		t.Fatal(err)
	}
	b := broker.New(broker.Config{})
	go b.Serve(l)
	t.Cleanup(func() { _ = b.Close() })
	a := l.Addr().(*net.TCPAddr)
	for i := range cases {
		cases[i].Target.URLs = []scenarios.URL{{Scheme: scheme, Host: "127.0.0.1", Port: a.Port}}
	}
}

// check fails unless the case delivered want messages exactly once, in order.
func check(t testing.TB, r *result.Case, want int64) {
	t.Helper()
	d := r.Delivery
	if err := d.Check(); err != nil {
		t.Errorf("%s: %v", r.ID, err)
	}
	if d.Sent != want || d.Delivered != want || d.Received != want || d.Lost+d.Duplicated+d.Reordered+d.Corrupted+d.Foreign+d.Late+d.Unsent != 0 {
		t.Errorf("%s: want %d, got %+v", r.ID, want, d)
	}
	if len(r.Errors) > 0 || r.Clients.Lost > 0 {
		t.Errorf("%s: errors %+v clients %+v", r.ID, r.Errors, r.Clients)
	}
}

// TestMatrix runs every QoS and version, at payloads with and without room for
// a stamp, in both shapes.
func TestMatrix(t *testing.T) {
	per := int64(1000)
	if racing.Enabled {
		per = 100
	}
	for _, shape := range []*scenarios.Shape{scenarios.Pairs, scenarios.Loopback} {
		var cases []scenarios.Case
		for qos := byte(0); qos <= 2; qos++ {
			for _, payload := range []int{0, 7, 8, 10, 8192} {
				for _, v := range []packet.Version{packet.V31, packet.V311, packet.V5} {
					c := testCase(qos, payload, v)
					c.Load.Shape, c.Load.Topics, c.Load.Messages = shape, 2, per
					cases = append(cases, c)
				}
			}
		}
		serve(t, cases, nil)
		results, err := load.New(load.Config{RunID: "r1"}).Run(t.Context(), cases)
		if err != nil {
			t.Fatal(err)
		}
		for i := range results {
			r := &results[i]
			check(t, r, 3*per)
			if acked := r.Delivery.Acked; acked != 3*per && cases[i].QoS > 0 {
				t.Errorf("%s: %d acked", r.ID, acked)
			}
			if e := r.Latency.EndToEnd; (e == nil) != (cases[i].Payload.Size < 8) || e != nil && e.Count != 3*per {
				t.Errorf("%s: end-to-end latency %+v", r.ID, e)
			}
			if a := r.Latency.Ack; (a == nil) != (cases[i].QoS == 0) || a != nil && a.Count != 3*per {
				t.Errorf("%s: ack latency %+v", r.ID, a)
			}
		}
	}
}

// TestTLSCell is the cell on which the seed's client lost writes: 100
// iterations, or ten, must lose nothing and stall nowhere.
func TestTLSCell(t *testing.T) {
	bundle, err := tlsconf.ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := testCase(1, 8192, packet.V311)
	c.Transport, c.TLS = scenarios.TLS, bundle.ClientOptions()
	c.Load.Iterations = 100
	if racing.Enabled {
		c.Load.Iterations = 10
	}
	cases := []scenarios.Case{c}
	serve(t, cases, bundle.ServerConfig())
	results, err := load.New(load.Config{RunID: "r1"}).Run(t.Context(), cases)
	if err != nil {
		t.Fatal(err)
	}
	check(t, &results[0], int64(c.Load.Iterations)*1000)
	for _, it := range results[0].Iterations {
		if it.Stalled {
			t.Errorf("iteration %+v", it)
		}
	}
}

// TestFreshIterations: every iteration has connections and a topic of its own.
func TestFreshIterations(t *testing.T) {
	c := testCase(2, 10, packet.V311)
	c.Load.Shape, c.Load.FreshIterations, c.Load.Launches, c.Load.OperationsPerMessage, c.Load.Inflight = scenarios.Loopback, true, 2, 2, 65535
	cases := []scenarios.Case{c}
	serve(t, cases, nil)
	results, err := load.New(load.Config{RunID: "r1"}).Run(t.Context(), cases)
	if err != nil {
		t.Fatal(err)
	}
	check(t, &results[0], 6000)
	if n := results[0].Clients.Connected; n != 8 {
		t.Errorf("%d connections, want 8", n)
	}
	for _, it := range results[0].Iterations {
		if it.Operations != 2000 {
			t.Errorf("iteration %+v", it)
		}
	}
}

// TestAutoSize: an iteration without a count takes the least time asked for.
func TestAutoSize(t *testing.T) {
	c := testCase(0, 10, packet.V5)
	c.Load.Messages, c.Load.MinTime = 0, 50*time.Millisecond
	cases := []scenarios.Case{c}
	serve(t, cases, nil)
	results, err := load.New(load.Config{RunID: "r1"}).Run(t.Context(), cases)
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range results[0].Iterations {
		if it.Stage == result.StageActual && it.ElapsedNS < int64(50*time.Millisecond) {
			t.Errorf("iteration of %s", time.Duration(it.ElapsedNS))
		}
	}
	check(t, &results[0], results[0].Delivery.Sent)
}

// TestVirtualTime runs a whole case over pipes in a bubble.
func TestVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker.New(broker.Config{})
		dial := func(context.Context, string, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go b.ServeConn(far)
			return near, nil
		}
		c := testCase(2, 100, packet.V5)
		c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "h", Port: 1883}}
		results, err := load.New(load.Config{RunID: "r1", Dial: dial}).Run(t.Context(), []scenarios.Case{c})
		if err != nil {
			t.Fatal(err)
		}
		check(t, &results[0], 3000)
		if e := results[0].Latency.EndToEnd; e.MaxNS > 1 {
			t.Errorf("a pipe in a bubble takes no time, got %d ns", e.MaxNS)
		}
		_ = b.Close()
	})
}

func TestClosedPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	c := testCase(0, 10, packet.V311)
	c.Load.Topics = 3
	c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "127.0.0.1", Port: port}}
	results, err := load.New(load.Config{RunID: "r1"}).Run(t.Context(), []scenarios.Case{c})
	want := fmt.Sprintf("qos=0/payload=10/protocol=3.1.1: connect mqtt://127.0.0.1:%d: connection refused", port)
	if err == nil || err.Error() != want || !load.Unreachable(err) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if r := results[0]; r.Clients.Connected != 0 || len(r.Errors) != 1 || r.Errors[0].Count != 6 || r.Summary.MeanNS != nil {
		t.Errorf("%+v", r)
	}
}

// targetsTold keeps in list what an Observer is told of the target.
func targetsTold(list *[]result.Target) load.Observer {
	return load.Observer{Connected: func(t result.Target) { *list = append(*list, t) }}
}

// TestConnectedTellsTLS: a run over both transports tells of the first
// connection and of the first over TLS.
func TestConnectedTellsTLS(t *testing.T) {
	bundle, err := tlsconf.ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	plain, secure := testCase(0, 10, packet.V311), testCase(0, 10, packet.V311)
	secure.Transport, secure.TLS = scenarios.TLS, bundle.ClientOptions()
	one, two := []scenarios.Case{plain}, []scenarios.Case{secure}
	serve(t, one, nil)
	serve(t, two, bundle.ServerConfig())
	var told []result.Target
	if _, err := load.New(load.Config{RunID: "r1", Observer: targetsTold(&told)}).Run(t.Context(), append(one, two...)); err != nil {
		t.Fatal(err)
	}
	if len(told) != 2 || told[0].TLS != nil || told[1].TLS == nil || told[1].TLS.Version != "TLS 1.3" {
		t.Errorf("%+v", told)
	}
}

// TestRefusedAfterConnect: a broker that hangs up instead of answering is
// explained by what it may have wanted.
func TestRefusedAfterConnect(t *testing.T) {
	bundle, err := tlsconf.ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	noCert := bundle.ClientOptions()
	noCert.CertPEM, noCert.KeyPEM = nil, nil
	for name, tt := range map[string]struct {
		server    *tls.Config
		transport scenarios.Transport
		scheme    string
		want      string
	}{
		"no client certificate":    {bundle.MutualServerConfig(), scenarios.TLS, "mqtts", "client certificate"},
		"plain client, TLS server": {bundle.ServerConfig(), scenarios.TCP, "mqtt", "TLS"},
	} {
		c := testCase(0, 10, packet.V5)
		c.Transport, c.TLS = tt.transport, noCert
		cases := []scenarios.Case{c}
		serve(t, cases, tt.server)
		cases[0].Target.URLs[0].Scheme = tt.scheme
		_, err := load.New(load.Config{RunID: "r1"}).Run(t.Context(), cases)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !load.Unreachable(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
