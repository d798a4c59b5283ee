package load_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/pace"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

const canary = "s3cret-canary"

// town is brokers by the address they are dialled at.
type town struct {
	mu      sync.Mutex // guards brokers while clients run
	brokers map[string]*broker.Broker
	tls     map[string]string // where those that speak TLS listen; over a pipe two alerts would wait for each other
	through func(net.Conn) net.Conn
}

// newTown starts brokers; they end with the test.
func newTown(t *testing.T, configs map[string]broker.Config) *town {
	t.Helper()
	n := &town{brokers: map[string]*broker.Broker{}, tls: map[string]string{}}
	for addr, cfg := range configs {
		b := broker.New(cfg)
		n.brokers[addr] = b
		t.Cleanup(func() { _ = b.Close() })
	}
	return n
}

// secure has a broker speak TLS.
func (n *town) secure(t *testing.T, addr string, conf *tls.Config) {
	t.Helper()
	l, err := broker.Listen("mqtts", "127.0.0.1:0", conf)
	if err != nil {
		t.Fatal(err)
	}
	n.tls[addr] = l.Addr().String()
	go func() { _ = n.brokers[addr].Serve(l) }()
}

func (n *town) dial(ctx context.Context, _, addr, _ string) (net.Conn, error) {
	if at := n.tls[addr]; at != "" {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", at)
	}
	n.mu.Lock()
	b := n.brokers[addr]
	n.mu.Unlock()
	if b == nil {
		return nil, fmt.Errorf("nobody listens at %s", addr)
	}
	near, far := net.Pipe()
	go b.ServeConn(far)
	if n.through != nil {
		near = n.through(near)
	}
	return near, nil
}

// run runs c, with its clients' first target at a:1883.
func (n *town) run(t *testing.T, c scenarios.Case, change func(*scenarios.Case)) (*result.Case, result.Target, error) {
	t.Helper()
	c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "a", Port: 1883}}
	if change != nil {
		change(&c)
	}
	var told []result.Target
	results, err := load.New(load.Config{RunID: "r1", Dial: n.dial, Waiter: pace.Sleeper, Observer: targetsTold(&told)}).Run(t.Context(), []scenarios.Case{c})
	var target result.Target
	if len(told) > 0 {
		target = told[0]
	}
	return &results[0], target, err
}

// scramCase is a case whose clients prove their password.
func scramCase(qos byte) scenarios.Case {
	c := testCase(qos, 100, packet.V5)
	c.Clients.AuthMethod = scenarios.SCRAMSHA256
	c.Clients.Username, c.Clients.HasUsername = "user", true
	c.Clients.Password, c.Clients.HasPassword = canary, true
	return c
}

func oneUser(t *testing.T) *broker.Users {
	t.Helper()
	users, err := broker.NewUsers([]broker.User{{Name: "user", Password: canary}})
	if err != nil {
		t.Fatal(err)
	}
	return users
}

// tap keeps what is written.
type tap struct {
	net.Conn
	mu  *sync.Mutex
	all *bytes.Buffer
}

func (c tap) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.all.Write(b)
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// TestPasswordIsProved: not one byte of it is sent, but the user name is, and
// with a file of credentials each client is another user.
func TestPasswordIsProved(t *testing.T) {
	users, err := broker.NewUsers([]broker.User{{Name: "one", Password: canary + "1"}, {Name: "two", Password: canary + "2"}})
	if err != nil {
		t.Fatal(err)
	}
	rows := filepath.Join(t.TempDir(), "c.csv")
	if err := os.WriteFile(rows, []byte("user,password\none,"+canary+"1\ntwo,"+canary+"2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := newTown(t, map[string]broker.Config{"a:1883": {Users: users}})
	wire := tap{mu: new(sync.Mutex), all: new(bytes.Buffer)}
	n.through = func(nc net.Conn) net.Conn { return tap{nc, wire.mu, wire.all} }
	c := scramCase(0)
	c.Clients.Credentials = rows
	r, _, err := n.run(t, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	check(t, r, 3*c.Load.Messages)
	sent := wire.all.String()
	if strings.Contains(sent, canary) || strings.Contains(sent, "user") {
		t.Error("a password, or the user name that the rows replace, was sent")
	}
	for _, name := range []string{"one", "two"} {
		if !strings.Contains(sent, "\x00\x03"+name) || !strings.Contains(sent, "n,,n="+name+",r=") {
			t.Errorf("%s is not in CONNECT as user name and in the exchange", name)
		}
	}
}

// TestReauthUnderLoad: messages continue while all clients authenticate again and
// again, and every one of them arrives.
func TestReauthUnderLoad(t *testing.T) {
	n := newTown(t, map[string]broker.Config{"a:1883": {Users: oneUser(t)}})
	c := scramCase(2)
	c.Clients.ReauthInterval = time.Millisecond
	c.Load.Warmup, c.Load.Iterations = 0, 2
	r, _, err := n.run(t, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	// One that is due while the previous one is in progress is skipped, and reported.
	r.Errors = slices.DeleteFunc(r.Errors, func(e result.Error) bool {
		return e.Kind == "reauth" && strings.HasPrefix(e.Reason, "skipped")
	})
	check(t, r, 2*c.Load.Messages)
	if h := r.Latency.Reauth; h == nil || h.Count == 0 || h.MinNS <= 0 {
		t.Errorf("reauth %+v", h)
	}
}

// TestReauthSchedule: once in an interval each, spread over it, in an open loop
// that is not disturbed.
func TestReauthSchedule(t *testing.T) {
	users := oneUser(t)
	synctest.Test(t, func(t *testing.T) {
		n := newTown(t, map[string]broker.Config{"a:1883": {Users: users}})
		c := scramCase(1)
		c.Clients.ReauthInterval = 2 * time.Second
		shaped(scenarios.FanOut, 1, 1, 3)(&c)
		atRate(100, 9*time.Second)(&c)
		r, _, err := n.run(t, c, nil)
		if err != nil || len(r.Errors) > 0 {
			t.Fatalf("%v %+v", err, r.Errors)
		}
		if d := r.Delivery; d.Check() != nil || d.Lost+d.Duplicated+d.Unsent != 0 || d.Sent == 0 {
			t.Errorf("%+v", d)
		}
		// Four clients, one every half second: the 18th is due at 9 s.
		if h := r.Latency.Reauth; h == nil || h.Count < 17 || h.Count > 18 {
			t.Errorf("reauth %+v", h)
		}
	})
}

// renamer makes every authentication but CONNECT's one of another user.
type renamer struct{ net.Conn }

func (c renamer) Write(b []byte) (int, error) {
	if len(b) > 0 && b[0] != byte(packet.CONNECT)<<4 {
		b = bytes.ReplaceAll(b, []byte("n,,n=user,"), []byte("n,,n=usex,"))
	}
	return c.Conn.Write(b)
}

// TestReauthRefused ends the client, with the broker's reason.
func TestReauthRefused(t *testing.T) {
	users := oneUser(t)
	synctest.Test(t, func(t *testing.T) {
		n := newTown(t, map[string]broker.Config{"a:1883": {Users: users}})
		n.through = func(nc net.Conn) net.Conn { return renamer{nc} }
		c := scramCase(1)
		c.Clients.ReauthInterval = 2 * time.Second
		atRate(100, 6*time.Second)(&c)
		r, _, _ := n.run(t, c, nil)
		const why = "disconnected by the broker: Not authorized (0x87)"
		for _, kind := range []result.ErrorKind{result.ErrorReauth, result.ErrorDisconnect} {
			if !slices.ContainsFunc(r.Errors, func(e result.Error) bool { return e.Kind == kind && e.Reason == why }) {
				t.Errorf("no %s %q in %+v", kind, why, r.Errors)
			}
		}
		if r.Clients.Lost == 0 || r.Latency.Reauth != nil {
			t.Errorf("%+v, reauth %+v", r.Clients, r.Latency.Reauth)
		}
	})
}

// TestAuthRefused: the method and the reason are named, the password is not.
func TestAuthRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg      broker.Config
		password string
		want     string
	}{
		"no method":      {broker.Config{}, canary, "Bad authentication method (0x8C)"},
		"wrong password": {broker.Config{Users: oneUser(t)}, canary + "2", "Bad User Name or Password (0x86)"},
		"not printable":  {broker.Config{Users: oneUser(t)}, canary + "\u00e4", "must be printable ASCII"},
	} {
		c := scramCase(0)
		c.Clients.Password = tt.password
		r, _, err := newTown(t, map[string]broker.Config{"a:1883": tt.cfg}).run(t, c, nil)
		text := fmt.Sprintf("%v %+v", err, r.Errors)
		if err == nil || !strings.Contains(text, tt.want) || strings.Contains(text, canary) {
			t.Errorf("%s: got %s, want %q", name, text, tt.want)
		}
		if !load.Unreachable(err) {
			t.Errorf("%s: %v is not told from a run that went wrong", name, err)
		}
	}
}

// TestFollowReference: all clients go where the broker sends them, also those
// that make their connections again.
func TestFollowReference(t *testing.T) {
	for _, reconnect := range []bool{false, true} {
		for reference, addr := range map[string]string{"b:1885": "b:1885", "b": "b:1883", "[::1]:1884": "[::1]:1884", "[::1]": "[::1]:1883"} {
			n := newTown(t, map[string]broker.Config{"a:1883": {ServerReference: reference}, addr: {}})
			c := testCase(1, 100, packet.V5)
			r, target, err := n.run(t, c, func(c *scenarios.Case) {
				c.Target.FollowServerReference, c.Target.Reconnect = true, reconnect
			})
			if err != nil {
				t.Fatal(err)
			}
			check(t, r, 3*c.Load.Messages)
			if target.URL != "mqtt://"+addr || !slices.Equal(target.ReferredBy, []string{"mqtt://a:1883"}) {
				t.Errorf("%s: target %+v", reference, target)
			}
			if w := warned(r, "referred"); !strings.Contains(w, "2 from mqtt://a:1883 to mqtt://"+addr) {
				t.Errorf("%s: warning %q", reference, w)
			}
		}
	}
}

func TestReferenceRefused(t *testing.T) {
	chain := map[string]broker.Config{}
	for i := range 9 {
		chain[string(rune('a'+i))+":1883"] = broker.Config{ServerReference: string(rune('b' + i))}
	}
	for name, tt := range map[string]struct {
		brokers map[string]broker.Config
		stay    bool
		want    string
	}{
		"not asked":  {map[string]broker.Config{"a:1883": {ServerReference: "b", ServerReferenceCode: packet.ReasonServerMoved}}, true, `Server moved (0x9D), it refers to "b"`},
		"loop":       {map[string]broker.Config{"a:1883": {ServerReference: "b"}, "b:1883": {ServerReference: "a"}}, false, "the last to mqtt://a:1883 again (referred by mqtt://a:1883, then by mqtt://b:1883)"},
		"itself":     {map[string]broker.Config{"a:1883": {ServerReference: "a:1883"}}, false, "the last to mqtt://a:1883 again (referred by mqtt://a:1883)"},
		"chain":      {chain, false, "6 brokers in a row refer to another one, the last to mqtt://g:1883"},
		"no address": {map[string]broker.Config{"a:1883": {ServerReference: "b:port"}}, false, "port must be 1-65535 (referred by mqtt://a:1883)"},
		"nobody":     {map[string]broker.Config{"a:1883": {ServerReference: "c"}}, false, "connect mqtt://c:1883 (referred to by mqtt://a:1883): nobody listens"},
	} {
		for _, reconnect := range []bool{false, true} {
			n := newTown(t, tt.brokers)
			r, _, err := n.run(t, testCase(1, 100, packet.V5), func(c *scenarios.Case) {
				c.Target.FollowServerReference, c.Target.Reconnect = !tt.stay, reconnect
			})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !load.Unreachable(err) || r.Clients.Connected != 0 {
				t.Errorf("%s: got %v, want %q", name, err, tt.want)
			}
		}
	}
}

// TestFollowReferenceAfterLoss: a broker that is gone refers to another one at
// the next try, by the client's number.
func TestFollowReferenceAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTown(t, map[string]broker.Config{"a:1883": {}, "b:1883": {}})
		away := broker.New(broker.Config{ServerReference: "b c"})
		t.Cleanup(func() { _ = away.Close() })
		c := testCase(1, 100, packet.V5)
		atRate(100, 6*time.Second)(&c)
		go func() {
			time.Sleep(2500 * time.Millisecond)
			n.mu.Lock()
			first := n.brokers["a:1883"]
			n.brokers["a:1883"], n.brokers["c:1883"] = away, n.brokers["b:1883"] // two names of one
			n.mu.Unlock()
			_ = first.Close()
		}()
		r, _, _ := n.run(t, c, func(c *scenarios.Case) { c.Target.FollowServerReference, c.Target.Reconnect = true, true })
		if r.Clients.Reconnects != 2 || r.Delivery.Unsent != 0 {
			t.Errorf("%+v %+v %+v", r.Clients, r.Delivery, r.Errors)
		}
		w := warned(r, "referred")
		for _, to := range []string{"b", "c"} {
			if !strings.Contains(w, "1 from mqtt://a:1883 to mqtt://"+to+":1883") {
				t.Errorf("warning %q", w)
			}
		}
	})
}

// TestFollowReferenceTLS: the certificate is verified against the name that was
// referred to.
func TestFollowReferenceTLS(t *testing.T) {
	bundle, err := tlsconf.ThrowAway([]string{"a", "b"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	other, err := tlsconf.ThrowAway([]string{"a"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cas := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(cas, append(bundle.CAPEM(), other.CAPEM()...), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		reference string
		b         *tlsconf.Bundle
		want      string
	}{
		"right name": {"b:8884", bundle, ""},
		"wrong name": {"b:8884", other, `not for "b"`},
		"no TLS":     {"mqtt://b:8884", bundle, "from TLS to plain TCP"},
	} {
		n := newTown(t, map[string]broker.Config{"a:8883": {ServerReference: tt.reference}, "b:8884": {}})
		n.secure(t, "a:8883", bundle.ServerConfig())
		n.secure(t, "b:8884", tt.b.ServerConfig())
		r, target, err := n.run(t, testCase(0, 10, packet.V5), func(c *scenarios.Case) {
			c.Target.URLs = []scenarios.URL{{Scheme: "mqtts", Host: "a", Port: 8883}}
			c.Transport, c.TLS.CAFiles, c.Target.FollowServerReference = scenarios.TLS, []string{cas}, true
		})
		switch {
		case tt.want != "":
			if err == nil || !strings.Contains(err.Error(), tt.want) || r.Clients.Connected != 0 {
				t.Errorf("%s: got %v, want %q", name, err, tt.want)
			}
		case err != nil || target.URL != "mqtts://b:8884" || target.TLS == nil:
			t.Errorf("%s: %v, target %+v", name, err, target)
		}
	}
}
