package load_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// churning makes a case of clients that come and go.
func churning(clients int, more func(*scenarios.Case)) func(*scenarios.Case) {
	return func(c *scenarios.Case) {
		c.Load.Shape, c.Load.Topics, c.Load.Publishers, c.Load.Subscribers = scenarios.Churn, clients, 0, 1
		c.Load.Messages = 0
		more(c)
	}
}

// TestChurn: with a broker whose CONNACK takes 20 ms and whose SUBACK takes 30
// a cycle takes 50 ms; ten clients take 200 cycles per second, and at a rate as
// many as that.
func TestChurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func() *mqtttest.Fake {
			return &mqtttest.Fake{ConnackDelay: 20 * time.Millisecond, SubackDelay: 30 * time.Millisecond}
		}
		r, err := against(t, slow(), churning(10, func(c *scenarios.Case) { c.Load.Messages, c.Load.Iterations = 1000, 2 }))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "cycles per second", *r.Summary.ReqPerSec, 200, 1e-3)
		quantiles(t, r.Latency.EndToEnd, map[float64]float64{0.01: 50, 100: 50})
		quantiles(t, r.Latency.Connack, map[float64]float64{100: 20})
		quantiles(t, r.Latency.Subscribe, map[float64]float64{100: 30})
		if d, n := r.Delivery, r.Clients; d.Sent != 2000 || d.Unsent != 0 || n.Planned != 2000 || n.Connected != 2000 || n.Lost != 0 || len(r.Errors) > 0 {
			t.Errorf("%+v, %+v, %+v", d, n, r.Errors)
		}

		r, err = against(t, slow(), churning(10, func(c *scenarios.Case) { atRate(100, 10*time.Second)(c); c.Load.Warmup = 2 }))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "cycles per second", *r.Summary.ReqPerSec, 100, 1e-2)
		near(t, "offered", r.Offered.MessagesPerSec, 100, 1e-9)
		quantiles(t, r.Latency.EndToEnd, map[float64]float64{0.01: 50, 100: 50})
		if d, n := r.Delivery, r.Clients; d.Scheduled != 800 || d.Sent != 800 || r.Latency.EndToEnd.Count != 800 || n.Connected != 1000 || !r.RateKept() {
			t.Errorf("%+v, %+v", d, n)
		}

		// Twice of what the clients can do: half of the cycles have not begun at the
		// end, and the others were later and later.
		r, err = against(t, slow(), churning(10, atRate(400, 10*time.Second)))
		if err != nil {
			t.Fatal(err)
		}
		if d := r.Delivery; d.Scheduled != 4000 || d.Sent < 2000 || d.Sent > 2010 || r.RateKept() || !hasWarning(r, "rate-not-kept") {
			t.Errorf("%+v", d)
		}
		quantiles(t, r.Latency.Service, map[float64]float64{100: 50})
		near(t, "the last cycle", float64(r.Latency.EndToEnd.MaxNS), 5e9, 0.02)
	})
}

// TestChurnFails: a broker that refuses the subscription is told of before
// anything is measured; one that begins to refuse clients is in the account.
func TestChurnFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &mqtttest.Fake{Suback: func(packet.Subscription) packet.ReasonCode { return packet.ReasonNotAuthorized }}
		r, err := against(t, f, churning(3, func(c *scenarios.Case) { c.Load.Messages = 30 }))
		if err == nil || !load.Unreachable(err) || len(r.Iterations) != 0 || r.Errors[0].Kind != "subscribe" {
			t.Errorf("%v, %+v", err, r)
		}
		var mu sync.Mutex
		n := 0
		f = &mqtttest.Fake{Suback: func(s packet.Subscription) packet.ReasonCode {
			mu.Lock()
			defer mu.Unlock()
			if n++; n%10 == 0 {
				return packet.ReasonNotAuthorized
			}
			return packet.ReasonCode(s.QoS)
		}}
		r, err = against(t, f, churning(3, atRate(100, 3*time.Second)))
		if err != nil {
			t.Fatal(err)
		}
		// The cycle before the clock starts is one more.
		if c := r.Clients; c.Planned != 300 || c.Connected != 270 || r.Delivery.Sent != 300 || r.Errors[0].Count != 30 {
			t.Errorf("%+v, %+v, %+v", c, r.Delivery, r.Errors)
		}
	})
}

// TestChurnKeepsSessions: clients whose sessions the broker keeps come back to
// them, also in the run after that.
func TestChurnKeepsSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker.New(broker.Config{})
		defer b.Close()
		o := &outage{serve: b.ServeConn}
		for range 2 {
			r, err := o.run(t, churning(3, func(c *scenarios.Case) {
				atRate(10, 3*time.Second)(c) // the clients run the cycles round robin
				c.Protocol, c.Target.Reconnect = packet.V5, false
				c.Clients.ClientID, c.Clients.CleanStart, c.Clients.SessionExpiry = "same%i", false, time.Hour
			}))
			if err != nil || r.Clients.Planned != r.Clients.Connected || len(r.Errors) > 0 || !soon(func() bool { return b.Stats().Sessions == 3 }) {
				t.Errorf("%v, %+v, %+v, %d sessions", err, r.Clients, r.Errors, b.Stats().Sessions)
			}
		}
	})
}

// TestOffline: messages wait for subscribers that are away; all of them come
// once, in order, and no session is left.
func TestOffline(t *testing.T) {
	for _, v := range []packet.Version{packet.V31, packet.V311, packet.V5} {
		for qos := byte(1); qos <= 2; qos++ {
			b := broker.New(broker.Config{})
			o := &outage{serve: b.ServeConn}
			r, err := o.run(t, func(c *scenarios.Case) {
				c.QoS, c.Protocol, c.Target.Reconnect = qos, v, false
				c.Load.Shape, c.Load.Topics, c.Load.Subscribers = scenarios.Offline, 3, 2
				c.Load.Messages, c.Load.Warmup, c.Load.Iterations = 3000, 1, 3
			})
			if err != nil {
				t.Fatal(err)
			}
			d := r.Delivery
			if d.Sent != 9000 || d.Acked != 9000 || d.Delivered != 18_000 || d.Received != d.Delivered || d.Lost+d.Reordered+d.Foreign+d.Late != 0 || len(r.Errors) > 0 || len(warnings(r)) > 0 {
				t.Errorf("%s, QoS %d: %+v, %+v, %+v", v, qos, d, r.Errors, r.Warnings)
			}
			if e := r.Latency.EndToEnd; e.Count != 18_000 || e.MaxNS > maxElapsed(r)*1001/1000 || /* of three digits */ r.Clients.Lost != 0 {
				t.Errorf("%s, QoS %d: %+v, %+v", v, qos, e, r.Clients)
			}
			if !soon(func() bool { return b.Stats().Sessions == 0 }) {
				t.Errorf("%s, QoS %d: the broker keeps %d sessions", v, qos, b.Stats().Sessions)
			}
			_ = b.Close()
		}
	}
}

// soon waits for what another goroutine is about to make true.
func soon(is func() bool) bool {
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

func maxElapsed(r *result.Case) (most int64) {
	for _, it := range r.Iterations {
		most = max(most, it.ElapsedNS)
	}
	return most
}

// TestOfflineDropped: a broker that keeps no session is found out: what it was
// to queue is lost.
func TestOfflineDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := against(t, &mqtttest.Fake{}, func(c *scenarios.Case) {
			c.Load.Shape, c.Load.Messages, c.Load.Iterations = scenarios.Offline, 100, 2
		})
		if err == nil || r.Delivery.Lost != 100 || !hasWarning(r, "session-not-kept") {
			t.Errorf("%v, %+v, %+v", err, r.Delivery, r.Warnings)
		}
	})
}

// TestWillsAreOurs: wills of this run's own clients on the measured topics are
// not messages of another run.
func TestWillsAreOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for payload, foreign := range map[string]int64{"gone": 0, "other": 5} {
			n := 0
			f := &mqtttest.Fake{Deliver: func(_ int, p packet.Publish) []packet.Publish {
				out := keep(p)
				if n++; n <= 5 {
					p.Payload = []byte(payload)
					out = append(out, p)
				}
				return out
			}}
			r, err := against(t, f, func(c *scenarios.Case) {
				c.Load.Messages = 100
				c.Clients.Will = &scenarios.Will{Topic: c.Clients.Topic, Payload: "gone"}
			})
			if err != nil {
				t.Fatal(err)
			}
			if d := r.Delivery; d.Foreign != foreign || d.Delivered != 100 {
				t.Errorf("%s: %+v", payload, d)
			}
		}
	})
}

// TestRetainedAreCleared: retained messages of a run's own topics are removed at
// its end, those of a topic with a name of its own stay.
func TestRetainedAreCleared(t *testing.T) {
	for topic, want := range map[string]int{"t/%r/%i": 0, "t/mine/%i": 2} {
		b := broker.New(broker.Config{})
		o := &outage{serve: b.ServeConn}
		r, err := o.run(t, func(c *scenarios.Case) {
			c.Target.Reconnect, c.Clients.Retain, c.Clients.Topic = false, true, topic
			c.Load.Messages, c.Load.Topics = 100, 2
		})
		if err != nil {
			t.Fatal(err)
		}
		check(t, r, 100)
		if !soon(func() bool { return b.Stats().RetainedMessages == want }) {
			t.Errorf("%s: %d retained messages", topic, b.Stats().RetainedMessages)
		}
		_ = b.Close()
	}
}
