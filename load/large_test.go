package load_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/internal/pace"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// ran is what has come of a run, and how long it took.
type ran struct {
	*result.Case
	err  error
	took time.Duration
}

// over runs c over connections to serve whose far ends far has changed.
func over(t *testing.T, c scenarios.Case, serve func(net.Conn), far func(net.Conn) net.Conn) (r ran) {
	t.Helper()
	dial := func(context.Context, string, string, string) (net.Conn, error) {
		a, b := net.Pipe()
		go serve(far(b))
		return a, nil
	}
	c.Load.Warmup, c.Load.Iterations = 0, 1
	c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "h", Port: 1883}}
	began := time.Now()
	results, err := load.New(load.Config{RunID: "r1", Dial: dial, Waiter: pace.Sleeper}).Run(t.Context(), []scenarios.Case{c})
	r.Case, r.err, r.took = &results[0], err, time.Since(began)
	time.Sleep(2 * time.Minute) // for the last of a slow end
	if e := r.Delivery.Check(); e != nil {
		t.Error(e)
	}
	return r
}

// TestLargeMessage: a message that takes the broker 50 s to take, and to give, is
// neither lost nor stalled, whatever the drain time, the keep-alive and the
// broker's own patience are, and how long it took is shown.
// (dotnet/MQTTnet#282, emqx/CocoaMQTT#572)
func TestLargeMessage(t *testing.T) {
	for _, tt := range []struct {
		qos         byte
		size, speed int
		subscribers int
		open        bool
		ways        int // that the message goes at that speed
	}{
		{1, 50 << 20, 1_000_000, 1, false, 2}, {1, 50 << 20, 5_000_000, 1, false, 2},
		{0, 5 << 20, 100_000, 1, false, 2}, {2, 5 << 20, 100_000, 1, false, 2},
		{0, 5 << 20, 100_000, 0, false, 1}, {1, 5 << 20, 100_000, 0, false, 1},
		{1, 5 << 20, 100_000, 1, true, 2},
	} {
		size, speed := time.Duration(tt.size), time.Duration(tt.speed)
		t.Run(fmt.Sprintf("qos=%d/size=%d/speed=%d/subscribers=%d/open=%v", tt.qos, size, speed, tt.subscribers, tt.open), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := broker.New(broker.Config{})
				defer b.Close()
				c := testCase(tt.qos, tt.size, packet.V5)
				c.Load.Subscribers, c.Load.Messages, c.Clients.KeepAlive = tt.subscribers, 1, 10*time.Second
				if tt.open {
					atRate(1, 5*time.Second)(&c)
					c.Load.Stages[0].From, c.Load.Stages[0].To = 0.2, 0.2
				}
				r := over(t, c, b.ServeConn, func(nc net.Conn) net.Conn { return &mqtttest.Slow{Conn: nc, Speed: tt.speed} })
				if r.err != nil {
					t.Fatal(r.err)
				}
				least := time.Duration(tt.ways) * size * time.Second / speed
				d := r.Delivery
				if !d.Clean() || d.Sent != 1 || d.Unsent != 0 || d.Delivered != int64(tt.subscribers) || r.Clients.Lost != 0 || len(r.Errors) > 0 {
					t.Errorf("%+v, %+v, %+v", d, r.Clients, r.Errors)
				}
				if hasWarning(r.Case, "publishers-stalled") {
					t.Errorf("%+v", r.Warnings)
				}
				if r.took < least || r.took > least*11/10+6*time.Second {
					t.Errorf("took %s, at this speed %s", r.took, least)
				}
				if it := r.Iterations[0]; !tt.open && (it.Stalled || it.ElapsedNS < int64(least) || it.ElapsedNS > int64(least*11/10)) {
					t.Errorf("%+v, at this speed %s", it, least)
				}
			})
		})
	}
}

// TestLargeMessageStops: it is lost once no byte of it moves for the drain time,
// and little more.
func TestLargeMessageStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker.New(broker.Config{})
		defer b.Close()
		stops := time.Now().Add(20 * time.Second)
		c := testCase(1, 50<<20, packet.V5)
		c.Load.Messages, c.Load.Drain, c.Clients.KeepAlive = 1, 5*time.Second, 0
		r := over(t, c, b.ServeConn, func(nc net.Conn) net.Conn { return &mqtttest.Slow{Conn: nc, Speed: 1_000_000, Stops: stops} })
		if !errors.Is(r.err, load.ErrNothingReceived) || r.Delivery.Lost != 1 {
			t.Errorf("%v, %+v", r.err, r.Delivery)
		}
		if r.took < 25*time.Second || r.took > 35*time.Second {
			t.Errorf("took %s", r.took)
		}
	})
}

// TestForeignBytes: messages of other clients are not progress of this run's,
// however long they go on.
func TestForeignBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &mqtttest.Fake{Deliver: func(n int, p packet.Publish) []packet.Publish {
			var junk []packet.Publish
			for range 320 {
				p.Payload = []byte(strings.Repeat("junk", 1<<14))
				junk = append(junk, p)
			}
			return junk
		}}
		c := testCase(0, 100, packet.V5)
		c.Load.Messages = 1
		r := over(t, c, f.ServeConn, func(nc net.Conn) net.Conn { return &mqtttest.Slow{Conn: nc, Speed: 100_000} })
		if !errors.Is(r.err, load.ErrNothingReceived) || r.Delivery.Lost != 1 || r.Delivery.Foreign == 0 {
			t.Errorf("%v, %+v", r.err, r.Delivery)
		}
		if r.took > 15*time.Second { // of 210 s
			t.Errorf("took %s", r.took)
		}
	})
}
