package load_test

import (
	"context"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/internal/pace"
	"github.com/mqttload/mqttload/internal/racing"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// outage is a network that cuts connections and lets no connection through for a while.
type outage struct {
	serve func(net.Conn)

	mu    sync.Mutex
	conns []net.Conn
	until time.Time
	dials int

	ready func() // nil, or called when everybody has connected
}

// dial waits until the outage is over, as a SYN that is not answered does.
func (o *outage) dial(ctx context.Context, _, _, _ string) (net.Conn, error) {
	o.mu.Lock()
	o.dials++
	wait := time.Until(o.until)
	o.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	near, far := net.Pipe()
	go o.serve(far)
	o.mu.Lock()
	o.conns = append(o.conns, near)
	o.mu.Unlock()
	return near, nil
}

// cut ends all connections; new ones come about once d has passed.
func (o *outage) cut(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.until = time.Now().Add(d)
	for _, nc := range o.conns {
		_ = nc.Close()
	}
	o.conns = nil
}

// run runs one reconnecting case over the network.
func (o *outage) run(t *testing.T, change func(*scenarios.Case)) (*result.Case, error) {
	t.Helper()
	c := testCase(1, 100, packet.V311)
	c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "h", Port: 1883}}
	c.Target.Reconnect, c.Target.ConnectTimeout = true, 5*time.Second
	c.Load.Warmup, c.Load.Iterations, c.Load.Messages = 0, 1, 0
	change(&c)
	cfg := load.Config{RunID: "r1", Dial: o.dial, Waiter: pace.Sleeper, Observer: load.Observer{Ledger: ledgers(t)}}
	if o.ready != nil {
		cfg.Observer.Phase = func(_ context.Context, p load.Phase, _ load.Launch) error {
			if p == load.Publishing {
				o.ready()
			}
			return nil
		}
	}
	results, err := load.New(cfg).Run(t.Context(), []scenarios.Case{c})
	if e := results[0].Delivery.Check(); e != nil {
		t.Error(e)
	}
	return &results[0], err
}

// hangingUp is a broker that cuts the publisher off before its nth message, and
// is then away for a while. It keeps sessions.
func hangingUp(nth int, away time.Duration) *outage {
	o := new(outage)
	var mu sync.Mutex
	known, done := map[string]bool{}, false
	f := &mqtttest.Fake{}
	f.Hangup = func(n int) bool {
		mu.Lock()
		defer mu.Unlock()
		if n != nth || done {
			return false
		}
		done = true
		o.mu.Lock()
		o.until = time.Now().Add(away)
		o.mu.Unlock()
		return true
	}
	f.Present = func(c *packet.Connect) bool {
		mu.Lock()
		defer mu.Unlock()
		was := known[c.ClientID]
		known[c.ClientID] = true
		return was && !c.CleanStart
	}
	f.Deliver = func(_ int, p packet.Publish) []packet.Publish { return keep(p) }
	o.serve = f.ServeConn
	return o
}

// TestCutAndBack: the broker closes the publisher's connection at half of its
// messages and is back after a second, with the session. At QoS 1 nothing is
// lost or left unsent; at QoS 0 what the connection had not delivered is (KAT-23
// and KAT-24, half of them).
func TestCutAndBack(t *testing.T) {
	n := int64(30_000)
	if racing.Enabled {
		n = 6_000
	}
	for qos := byte(0); qos <= 2; qos++ {
		synctest.Test(t, func(t *testing.T) {
			o := hangingUp(int(n/2), time.Second)
			r, err := o.run(t, func(c *scenarios.Case) {
				atRate(1000, time.Duration(n)*time.Millisecond)(c)
				c.QoS, c.Clients.CleanStart = qos, false
			})
			if err != nil {
				t.Fatal(err)
			}
			d, clients := r.Delivery, r.Clients
			if clients.Lost != 1 || clients.Reconnects != 1 || len(r.Errors) != 1 || r.Errors[0].Kind != "disconnect" || !hasWarning(r, "reconnected") {
				t.Errorf("QoS %d: clients %+v, errors %+v, warnings %+v", qos, clients, r.Errors, r.Warnings)
			}
			if d.Scheduled != n || d.Unsent != 0 || d.Lost > 10 || qos > 0 && (d.Lost != 0 || d.Acked != n || d.Resent == 0 || d.Resent > 10) {
				t.Errorf("QoS %d: %+v", qos, d)
			}
			if qos == 0 && d.Lost == 0 {
				t.Errorf("the message that the broker did not handle came: %+v", d)
			}
			// What was due in the gap waited for its end.
			near(t, "outage", float64(r.Latency.Reconnect.MaxNS), 1e9, 1e-3)
			if e := r.Latency.EndToEnd; e.MaxNS < 999e6 || e.MaxNS > 1002e6 {
				t.Errorf("QoS %d: %+v", qos, e)
			}
			// The outage ends on the edge of two ticks: what it delayed may be of either,
			// but not be received in the first.
			gap := slices.ContainsFunc(r.Timeline, func(at result.Tick) bool {
				return at.TNS >= (n/2-1000)*1e6 && at.TNS < (n/2+2000)*1e6 && min(at.Sent, at.Received) < 900
			})
			if !gap {
				t.Errorf("QoS %d: no gap in %+v", qos, r.Timeline)
			}
		})
	}
}

// TestBrokerRestarts: a broker that takes all connections with it, ten times at
// full load, ends no run and leaves nothing behind. Persistent sessions of a
// broker that lived on lose nothing; those of one that has forgotten them may.
func TestBrokerRestarts(t *testing.T) {
	for name, persistent := range map[string]bool{"session kept": true, "session gone": false} {
		for qos := byte(0); qos <= 2; qos++ {
			t.Run(name, func(t *testing.T) {
				before := runtime.NumGoroutine()
				b := broker.New(broker.Config{})
				o := &outage{serve: b.ServeConn}
				connected, stop := make(chan struct{}), make(chan struct{})
				o.ready = func() { close(connected) }
				var wg sync.WaitGroup
				wg.Go(func() {
					select {
					case <-connected:
					case <-stop:
					}
					for range 10 {
						select {
						case <-stop:
							return
						case <-time.After(40 * time.Millisecond):
							o.cut(10 * time.Millisecond)
						}
					}
				})
				r, err := o.run(t, func(c *scenarios.Case) {
					c.QoS, c.Clients.CleanStart = qos, !persistent
					c.Load.Topics, c.Load.MinTime, c.Load.Drain = 4, 700*time.Millisecond, time.Second
				})
				close(stop)
				wg.Wait()
				_ = b.Close()
				if err != nil {
					t.Fatal(err)
				}
				d, n := r.Delivery, r.Clients
				if n.Reconnects == 0 || n.Reconnects > n.Lost || n.Reconnects+8 < n.Lost || n.Connected != 8 || d.Delivered == 0 {
					t.Errorf("QoS %d: %+v, errors %+v", qos, n, r.Errors)
				}
				if persistent && qos > 0 && (d.Lost != 0 || d.Acked != d.Sent) || qos == 2 && d.Duplicated != 0 && persistent {
					t.Errorf("QoS %d: %+v", qos, d)
				}
				if !soon(func() bool { return runtime.NumGoroutine() <= before }) {
					t.Errorf("%d goroutines more than before", runtime.NumGoroutine()-before)
				}
			})
		}
	}
}

// TestSessionsForgotten: a broker that takes all connections with it and has
// forgotten the sessions is said to have, by those who asked it to keep them.
func TestSessionsForgotten(t *testing.T) {
	for _, persistent := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := &mqtttest.Fake{Deliver: func(_ int, p packet.Publish) []packet.Publish { return keep(p) }}
			o := &outage{serve: f.ServeConn}
			o.ready = func() { time.AfterFunc(500*time.Millisecond, func() { o.cut(time.Second) }) }
			r, err := o.run(t, func(c *scenarios.Case) {
				atRate(1000, 3*time.Second)(c)
				c.QoS, c.Clients.CleanStart = 1, !persistent
			})
			if err != nil || r.Clients.Reconnects != 2 {
				t.Fatalf("%v, %+v", err, r.Clients)
			}
			if hasWarning(r, result.CodeSessionNotKept) != persistent {
				t.Errorf("persistent %v: %+v", persistent, r.Warnings)
			}
		})
	}
}

// TestBackedOff: clients that find no broker try less and less often, and what they
// hold does not grow; a broker that stays away ends the run.
func TestBackedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker.New(broker.Config{})
		defer b.Close()
		o := &outage{serve: b.ServeConn}
		dead := false
		serve := func(ctx context.Context, a, b, c string) (net.Conn, error) {
			o.mu.Lock()
			gone := dead
			if gone {
				o.dials++
			}
			o.mu.Unlock()
			if gone {
				return nil, net.ErrClosed
			}
			return o.dial(ctx, a, b, c)
		}
		time.AfterFunc(time.Second, func() {
			o.cut(0)
			o.mu.Lock()
			dead, o.dials = true, 0
			o.mu.Unlock()
		})
		c := testCase(1, 100, packet.V5)
		c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "h", Port: 1883}}
		c.Target.Reconnect = true
		c.Load.Topics, c.Load.Messages, c.Load.Warmup = 10, 0, 0
		atRate(1000, 5*time.Minute)(&c)
		began := time.Now()
		results, err := load.New(load.Config{RunID: "r1", Dial: serve, Waiter: pace.Sleeper}).Run(t.Context(), []scenarios.Case{c})
		if err == nil {
			t.Fatal("no error")
		}
		r := results[0]
		if took := time.Since(began); took > 75*time.Second {
			t.Errorf("took %s", took)
		}
		if o.dials > 20*25 || o.dials < 20*5 {
			t.Errorf("%d attempts of 20 clients in a minute", o.dials)
		}
		if r.Clients.Lost != 20 || r.Clients.Reconnects != 0 || !slices.ContainsFunc(r.Errors, func(e result.Error) bool {
			return strings.Contains(e.Reason, "could not reconnect within 1m0s")
		}) {
			t.Errorf("clients %+v, errors %+v", r.Clients, r.Errors)
		}
	})
}

// TestTakenOver: of two runs with the same ids the one that is pushed out says
// so, and does not come back to push out the other; with ids of their own they
// do not meet.
func TestTakenOver(t *testing.T) {
	for id, want := range map[string]int64{"c%r%i": 0, "same%i": 2} {
		synctest.Test(t, func(t *testing.T) {
			b := broker.New(broker.Config{})
			defer b.Close()
			o := &outage{serve: b.ServeConn}
			var cs [2]result.Case
			var wg sync.WaitGroup
			for i, run := range []string{"r1", "r2"} {
				c := testCase(1, 100, packet.V5)
				c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "h", Port: 1883}}
				c.Target.Reconnect, c.Clients.ClientID, c.Load.Warmup = true, id, 0
				atRate(100, 10*time.Second)(&c)
				wg.Go(func() {
					time.Sleep(time.Duration(i) * time.Second)
					results, _ := load.New(load.Config{RunID: run, Dial: o.dial, Waiter: pace.Sleeper}).Run(t.Context(), []scenarios.Case{c})
					cs[i] = results[0]
				})
			}
			wg.Wait()
			if n := cs[0].Clients; n.Lost != want || n.Reconnects != 0 {
				t.Errorf("%s: the first run's clients %+v", id, n)
			}
			if n := cs[1].Clients; n.Lost != 0 || n.Connected != 2 || cs[1].Delivery.Delivered != 1000 {
				t.Errorf("%s: the second run's clients %+v, %+v", id, n, cs[1].Delivery)
			}
			named := slices.ContainsFunc(cs[0].Errors, func(e result.Error) bool {
				return e.Count == 2 && strings.Contains(e.Reason, "taken over (0x8E): another client uses this id")
			})
			if named != (want > 0) {
				t.Errorf("%s: %+v", id, cs[0].Errors)
			}
		})
	}
}

// TestRunTwice: a run takes the ids of one before whose sessions the broker
// still has, with messages in them.
func TestRunTwice(t *testing.T) {
	for _, v := range []packet.Version{packet.V311, packet.V5} {
		synctest.Test(t, func(t *testing.T) {
			b := broker.New(broker.Config{})
			defer b.Close()
			o := &outage{serve: b.ServeConn}
			for run := range 4 {
				r, err := o.run(t, func(c *scenarios.Case) {
					c.Protocol, c.QoS, c.Load.Messages = v, 2, 100
					c.Target.Reconnect = run < 2
					c.Clients.ClientID, c.Clients.CleanStart, c.Clients.SessionExpiry = "same%i", false, time.Hour
				})
				if err != nil || r.Delivery.Delivered != 100 || !r.Delivery.Clean() || len(r.Errors) > 0 {
					t.Errorf("%s: %v, %+v, %+v", v, err, r.Delivery, r.Errors)
				}
			}
		})
	}
}
