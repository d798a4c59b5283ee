package load_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/internal/pace"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// shaped changes the numbers of a shape.
func shaped(shape *scenarios.Shape, topics, publishers, subscribers int) func(*scenarios.Case) {
	return func(c *scenarios.Case) {
		l := &c.Load
		l.Shape, l.Topics, l.Publishers, l.Subscribers = shape, topics, publishers, subscribers
	}
}

// TestShapes runs every shape in a closed loop against the loopback broker, in
// every QoS, with a stamp and without, and expects exact accounts: each message
// once for every receiver.
func TestShapes(t *testing.T) {
	for name, tt := range map[string]struct {
		change    func(*scenarios.Case)
		receivers int64 // per message
	}{
		"pairs":                {shaped(scenarios.Pairs, 5, 1, 1), 1},
		"loopback":             {shaped(scenarios.Loopback, 5, 1, 1), 1},
		"fan-out":              {shaped(scenarios.FanOut, 1, 1, 7), 7},
		"fan-in":               {shaped(scenarios.FanIn, 1, 7, 1), 1},
		"many-to-many":         {shaped(scenarios.ManyToMany, 2, 3, 4), 4},
		"publish":              {shaped(scenarios.Publish, 2, 2, 0), 0},
		"topics per publisher": {with(shaped(scenarios.Pairs, 6, 1, 1), func(l *scenarios.Load) { l.TopicsPerPublisher = 3 }), 1},
		"topics per both": {with(shaped(scenarios.ManyToMany, 6, 2, 2), func(l *scenarios.Load) {
			l.TopicsPerPublisher, l.TopicsPerSubscriber = 2, 3
		}), 2},
		"shared": {with(shaped(scenarios.Shared, 2, 2, 3), func(l *scenarios.Load) { l.Share = "g" }), 1},
		"filter": {with(shaped(scenarios.FanIn, 4, 1, 1), func(l *scenarios.Load) {
			l.Filter, l.TopicsPerSubscriber = "t/%r/+", 4
		}), 1},
		"idle beside": {with(shaped(scenarios.Pairs, 1, 1, 1), func(l *scenarios.Load) { l.Idle = 10 }), 1},
	} {
		t.Run(name, func(t *testing.T) {
			var cases []scenarios.Case
			for qos := byte(0); qos <= 2; qos++ {
				for _, payload := range []int{4, 20} {
					c := testCase(qos, payload, packet.V5)
					c.Load.Messages, c.Load.Iterations = 1200, 2
					tt.change(&c)
					cases = append(cases, c)
				}
			}
			serve(t, cases, nil)
			results, err := load.New(load.Config{RunID: "r1", Observer: load.Observer{Ledger: ledgers(t)}}).Run(t.Context(), cases)
			if err != nil {
				t.Fatal(err)
			}
			for i := range results {
				exact(t, &results[i], &cases[i], 2400, tt.receivers)
			}
		})
	}
}

func with(change func(*scenarios.Case), more func(*scenarios.Load)) func(*scenarios.Case) {
	return func(c *scenarios.Case) {
		change(c)
		more(&c.Load)
	}
}

// exact fails unless the case sent so many messages, each to so many receivers.
func exact(t *testing.T, r *result.Case, c *scenarios.Case, sent, receivers int64) {
	t.Helper()
	want := result.Delivery{
		Scheduled: sent, Sent: sent, Expected: receivers * sent, Received: receivers * sent, Delivered: receivers * sent,
		CountsOnly: c.Payload.Size < 8,
	}
	if c.QoS > 0 {
		want.Acked = sent
	}
	if r.Delivery != want {
		t.Errorf("%s:\ngot  %+v\nwant %+v", r.ID, r.Delivery, want)
	}
	requests := int64(0)
	for _, it := range r.Iterations {
		if it.Stage == result.StageActual {
			requests += it.Requests
		}
	}
	if requests != sent || len(r.Errors) > 0 || r.Clients.Connected != int64(c.Load.Connections()) {
		t.Errorf("%s: %d requests, errors %+v, clients %+v", r.ID, requests, r.Errors, r.Clients)
	}
	if e := r.Latency.EndToEnd; receivers > 0 && (e == nil) != (c.Payload.Size < 8) || e != nil && e.Count != receivers*sent {
		t.Errorf("%s: end-to-end latency %+v", r.ID, e)
	}
}

// TestOpenShapes runs shapes in an open loop: the schedule is over all
// publishers, and every message is accounted for at every receiver.
func TestOpenShapes(t *testing.T) {
	for name, tt := range map[string]struct {
		change    func(*scenarios.Case)
		receivers int64
	}{
		"fan-out":      {shaped(scenarios.FanOut, 1, 1, 5), 5},
		"fan-in":       {shaped(scenarios.FanIn, 2, 7, 1), 1},
		"many-to-many": {with(shaped(scenarios.ManyToMany, 4, 3, 2), func(l *scenarios.Load) { l.TopicsPerPublisher = 2 }), 2},
		"shared":       {with(shaped(scenarios.Shared, 1, 1, 3), func(l *scenarios.Load) { l.Share = "g" }), 1},
		"publish":      {shaped(scenarios.Publish, 1, 3, 0), 0},
		"poisson":      {with(shaped(scenarios.Pairs, 3, 1, 1), func(l *scenarios.Load) { l.Arrival = scenarios.Poisson }), 1},
	} {
		for qos := byte(0); qos <= 2; qos++ {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c scenarios.Case
					r, err := against(t, &mqtttest.Fake{}, func(x *scenarios.Case) {
						atRate(1000, 3*time.Second)(x)
						x.QoS, x.Load.Warmup = qos, 1
						tt.change(x)
						c = *x
					})
					if err != nil {
						t.Fatal(err)
					}
					n := int64(2000)
					if c.Load.Arrival == scenarios.Poisson {
						n = r.Delivery.Scheduled
					}
					d, acked := r.Delivery, int64(0)
					if qos > 0 {
						acked = n
					}
					want := result.Delivery{Scheduled: n, Sent: n, Acked: acked, Expected: tt.receivers * n, Received: tt.receivers * n, Delivered: tt.receivers * n}
					if d != want || !r.RateKept() {
						t.Errorf("QoS %d: %+v, offered %+v", qos, d, r.Offered)
					}
					if e := r.Latency.EndToEnd; tt.receivers > 0 && e.Count != tt.receivers*n {
						t.Errorf("QoS %d: %+v", qos, e)
					}
				})
			})
		}
	}
}

// TestFanOutRates: what is published and what is delivered are told apart (KAT-25).
func TestFanOutRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := against(t, &mqtttest.Fake{}, func(c *scenarios.Case) {
			atRate(1000, 10*time.Second)(c)
			shaped(scenarios.FanOut, 1, 1, 5)(c)
			c.QoS = 0
		})
		if err != nil {
			t.Fatal(err)
		}
		if d := r.Delivery; d.Received != 50_000 || d.Sent != 10_000 || d.Lost != 0 {
			t.Errorf("%+v", d)
		}
		near(t, "requests per second", *r.Summary.ReqPerSec, 1000, 1e-3)
		near(t, "messages per second", *r.Summary.MessagesPerSec, 1000, 1e-3)
		near(t, "deliveries per second", *r.Summary.DeliveriesPerSec, 5000, 1e-3)
	})
}

// TestSharedAccounts: a shared group is one receiver; what one member gets is
// not lost for the others (KAT-26).
func TestSharedAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dropped := 0
		f := &mqtttest.Fake{Deliver: func(n int, p packet.Publish) []packet.Publish {
			if n%1000 == 500 {
				dropped++
				return nil
			}
			return keep(p)
		}}
		r, err := against(t, f, with(shaped(scenarios.Shared, 1, 1, 3), func(l *scenarios.Load) { l.Share, l.Messages = "g", 6000 }))
		if err != nil {
			t.Fatal(err)
		}
		if d := r.Delivery; dropped != 6 || d.Lost != 6 || d.Received != 5994 || d.Expected != 6000 || d.Reordered != 0 {
			t.Errorf("%d dropped, %+v", dropped, d)
		}
		if l := r.Losses; l == nil || l.First != 500 || l.Last != 5500 || l.Acked != 6 {
			t.Errorf("%+v", l)
		}
	})
}

// TestSlowReceiverHoldsTheWindow: in a closed loop the slowest of the receivers
// sets the pace, and no messages are lost.
func TestSlowReceiverHoldsTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := against(t, &mqtttest.Fake{When: (&timed{f: after(time.Millisecond)}).when},
			with(shaped(scenarios.FanOut, 1, 1, 20), func(l *scenarios.Load) { l.Inflight, l.Messages = 10, 1000 }))
		if err != nil {
			t.Fatal(err)
		}
		if d := r.Delivery; d.Delivered != 20_000 || d.Lost != 0 {
			t.Errorf("%+v", d)
		}
		near(t, "requests per second", *r.Summary.ReqPerSec, 10_000, 0.01)
	})
}

// pipes dials b.
func pipes(b *broker.Broker) dial.Func {
	return func(context.Context, string, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go b.ServeConn(far)
		return near, nil
	}
}

func run(ctx context.Context, id string, open dial.Func, c scenarios.Case) (*result.Case, error) {
	c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "h", Port: 1883}}
	results, err := load.New(load.Config{RunID: id, Dial: open, Waiter: pace.Sleeper}).Run(ctx, []scenarios.Case{c})
	return &results[0], err
}

// TestConnectOnly: connections at a rate, each with its own latency, which is in
// no latency of messages (KAT-27).
func TestConnectOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r, err := against(t, &mqtttest.Fake{ConnackDelay: 50 * time.Millisecond}, func(c *scenarios.Case) {
			shaped(scenarios.Connect, 1, 0, 0)(c)
			c.Load.Idle, c.Load.Duration, c.Target.ConnectRate = 100, 10*time.Second, 100
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Clients != (result.Clients{Planned: 100, Connected: 100}) || r.Iterations[0].Operations != 100 || r.Latency.EndToEnd != nil {
			t.Errorf("%+v %+v", r.Clients, r.Iterations)
		}
		quantiles(t, r.Latency.Connack, map[float64]float64{0.01: 50, 50: 50, 100: 50})
		if ramp := time.Duration(r.Iterations[0].ElapsedNS); ramp != 1040*time.Millisecond {
			t.Errorf("ramp %s", ramp) // the last of 100 begins 0.99 s after the first
		}
		if d := time.Since(began); d < 11*time.Second || d > 12*time.Second {
			t.Errorf("took %s", d)
		}
	})
}

// TestBytesOnTheWire: bytes written are exactly those of the packets (KAT-28).
func TestBytesOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := against(t, &mqtttest.Fake{}, func(c *scenarios.Case) {
			atRate(1000, 10*time.Second)(c)
			c.Protocol, c.Payload = packet.V311, scenarios.Payload{Size: 8192}
		})
		if err != nil {
			t.Fatal(err)
		}
		const n = 10_000
		// PUBLISH: type, two bytes of length, topic, packet id, payload; and the
		// subscriber's PUBACK. Received are the same, the other way.
		want := int64(n * (1 + 2 + 2 + len("t/r1/1") + 2 + 8192 + 4))
		if r.IO.BytesWritten != want || r.IO.BytesRead != want {
			t.Errorf("%d bytes written, %d read, want %d", r.IO.BytesWritten, r.IO.BytesRead, want)
		}
		near(t, "bytes per second", *r.Summary.BytesPerSec, 8192*1000, 1e-3)
	})
}

// TestUnstampedHasNoLatency: without a stamp there is none, rather than 0 (C8).
func TestUnstampedHasNoLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, change := range []func(*scenarios.Case){
			func(c *scenarios.Case) { c.Payload = scenarios.Payload{Size: 7} },
			func(c *scenarios.Case) { c.Load.VerifyOff = true },
		} {
			r, err := against(t, &mqtttest.Fake{}, func(c *scenarios.Case) { atRate(1000, time.Second)(c); change(c) })
			if err != nil {
				t.Fatal(err)
			}
			if r.Latency.EndToEnd != nil || r.Latency.Service != nil || !r.Delivery.CountsOnly || r.Delivery.Delivered != 1000 {
				t.Errorf("%+v %+v", r.Latency, r.Delivery)
			}
		}
	})
}

// TestLedgerRows: every stream has an account of its own, which names its loss.
func TestLedgerRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &mqtttest.Fake{Deliver: func(n int, p packet.Publish) []packet.Publish {
			if string(p.Topic) == "t/r1/2" && (n == 3 || n == 40) {
				return nil
			}
			return keep(p)
		}}
		dial := func(context.Context, string, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go f.ServeConn(far)
			return near, nil
		}
		c := testCase(1, 10, packet.V5)
		c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "h", Port: 1883}}
		shaped(scenarios.FanOut, 3, 1, 2)(&c)
		c.Load.Warmup, c.Load.Iterations, c.Load.Messages = 0, 2, 300
		var rows []result.StreamAccount
		cfg := load.Config{RunID: "r1", Dial: dial, Observer: load.Observer{Ledger: func(_ *scenarios.Case, r []result.StreamAccount) { rows = append(rows, r...) }}}
		if _, err := load.New(cfg).Run(t.Context(), []scenarios.Case{c}); err != nil {
			t.Fatal(err)
		}
		if len(rows) != 6 {
			t.Fatalf("%d rows", len(rows))
		}
		for _, r := range rows {
			lost := r.Topic == "t/r1/2"
			if r.Sent != 200 || lost != (r.Lost == 2 && r.FirstLost == 3 && r.LastLost == 40) || !lost && (r.Lost != 0 || r.FirstLost != -1) {
				t.Errorf("%+v", r)
			}
		}
		if a, b := rows[2], rows[3]; a.Publisher != b.Publisher || a.Subscriber == b.Subscriber || !strings.HasPrefix(a.Publisher, "cr1") {
			t.Errorf("%+v %+v", a, b)
		}
		if !slices.IsSortedFunc(rows, func(a, b result.StreamAccount) int { return a.Stream - b.Stream }) {
			t.Error("rows are not in order")
		}
	})
}

// slowReader reads a few bytes at a time, and takes its time for each.
type slowReader struct{ net.Conn }

func (c slowReader) Read(b []byte) (int, error) {
	time.Sleep(50 * time.Microsecond)
	return c.Conn.Read(b[:min(len(b), 16)])
}

// TestSlowReader: a broker that reads slowly, over connections that buffer
// nothing, freezes no one: publisher and receiver do not wait for each other.
func TestSlowReader(t *testing.T) {
	for qos := byte(0); qos <= 2; qos++ {
		synctest.Test(t, func(t *testing.T) {
			f := &mqtttest.Fake{}
			c := testCase(qos, 100, packet.V311)
			c.Load.Warmup, c.Load.Iterations, c.Load.Messages = 0, 1, 5000
			r, err := run(t.Context(), "r1", func(context.Context, string, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				go f.ServeConn(slowReader{far})
				return near, nil
			}, c)
			if err != nil {
				t.Fatal(err)
			}
			check(t, r, 5000)
		})
	}
}

// TestFullBuffer: an open loop whose connection takes less than is due holds it
// back, in order and in bounded memory, and says that the network did.
func TestFullBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &mqtttest.Fake{}
		c := testCase(0, 1000, packet.V311)
		atRate(1000, 4*time.Second)(&c)
		c.Load.Warmup, c.Load.Inflight = 0, 10
		r, err := run(t.Context(), "r1", func(context.Context, string, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go f.ServeConn(slowReader{far}) // 320 kB/s
			return near, nil
		}, c)
		if err != nil {
			t.Fatal(err)
		}
		d := r.Delivery
		if d.Scheduled != 4000 || d.Unsent < 2500 || d.Lost+d.Reordered != 0 || r.RateKept() || r.Bottleneck.Kind != "network" {
			t.Errorf("%+v\n%+v", d, r.Bottleneck)
		}
	})
}

// TestFilterMatchesNothing: a filter with a slip in it does not make a clean run.
func TestFilterMatchesNothing(t *testing.T) {
	for filter, want := range map[string]int{"t/#": 0, "tt/#": 1} {
		c := testCase(1, 20, packet.V5)
		c.Load.Messages, c.Load.Iterations, c.Load.Filter = 10, 1, filter
		cases := []scenarios.Case{c}
		serve(t, cases, nil)
		results, err := load.New(load.Config{RunID: "r1"}).Run(t.Context(), cases)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, w := range results[0].Warnings {
			if w.Code == "filter-matches-nothing" {
				found++
			}
		}
		if found != want {
			t.Errorf("%s: %+v", filter, results[0].Warnings)
		}
	}
}
