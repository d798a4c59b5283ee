package load_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
)

// TestListeners count what others publish, in windows of a second, until their
// time is over.
func TestListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker.New(broker.Config{})
		dial := pipes(b)
		listen := testCase(0, 10, packet.V311)
		shaped(scenarios.Subscribe, 1, 0, 2)(&listen)
		listen.Load.Filter, listen.Load.Duration, listen.Load.Warmup = "t/#", 10*time.Second, 1
		speak := testCase(1, 10, packet.V311)
		atRate(100, 15*time.Second)(&speak)
		shaped(scenarios.Publish, 1, 1, 0)(&speak)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := run(t.Context(), "r2", dial, speak); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Second + 5*time.Millisecond)
		r, err := run(t.Context(), "r1", dial, listen)
		wg.Wait()
		if err != nil {
			t.Fatal(err)
		}
		d := r.Delivery
		if d.Received != 1800 || d.Expected != d.Received || d.Lost != 0 || d.Sent != 0 || len(r.Iterations) != 10 || r.Latency.EndToEnd != nil {
			t.Errorf("%d iterations, %+v", len(r.Iterations), d)
		}
		near(t, "messages per second", *r.Summary.MessagesPerSec, 200, 1e-3)
		_ = b.Close()
	})
}

// TestListenersComeBack: a listener that does not want a clean start gets what was
// queued for its client id since an earlier run; with one it gets nothing of it.
func TestListenersComeBack(t *testing.T) {
	for _, v := range []packet.Version{packet.V311, packet.V5} {
		synctest.Test(t, func(t *testing.T) {
			b := broker.New(broker.Config{})
			defer b.Close()
			dial := pipes(b)
			speak := testCase(1, 10, v)
			shaped(scenarios.Publish, 1, 1, 0)(&speak)
			speak.Load.Warmup, speak.Load.Iterations, speak.Load.Messages = 0, 1, 20
			listen := testCase(1, 10, v)
			shaped(scenarios.Subscribe, 1, 0, 1)(&listen)
			listen.Load.Filter, listen.Load.Duration, listen.Load.Warmup = "t/#", 2*time.Second, 0
			listen.Clients.ClientID, listen.Clients.CleanStart, listen.Clients.SessionExpiry = "listener", false, time.Hour
			heard := func() int64 {
				r, err := run(t.Context(), "r2", dial, listen)
				if err != nil {
					t.Fatal(err)
				}
				return r.Delivery.Received
			}
			for _, clean := range []bool{false, true} {
				heard() // leaves a subscription
				if _, err := run(t.Context(), "r1", dial, speak); err != nil {
					t.Fatal(err)
				}
				want := int64(20)
				if listen.Clients.CleanStart = clean; clean {
					want = 0
				}
				if got := heard(); got != want {
					t.Errorf("%v, clean start %t: %d messages of an earlier run, want %d", v, clean, got, want)
				}
			}
		})
	}
}

// TestWindowsHoldAll: without a warm-up the windows have everything: the first
// message, which is due at once, and what comes to a listener with its SUBACK.
func TestWindowsHoldAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker.New(broker.Config{})
		defer b.Close()
		dial := pipes(b)
		speak := testCase(1, 10, packet.V311)
		atRate(2, 2*time.Second)(&speak)
		shaped(scenarios.Publish, 1, 1, 0)(&speak)
		speak.Load.Warmup, speak.Clients.Topic, speak.Clients.Retain = 0, "t/retained", true
		listen := testCase(1, 10, packet.V311)
		shaped(scenarios.Subscribe, 1, 0, 1)(&listen)
		listen.Load.Filter, listen.Load.Duration, listen.Load.Warmup = "t/#", 2*time.Second, 0
		for i, tt := range []struct {
			c              scenarios.Case
			sent, received int64
		}{{speak, 4, 0}, {listen, 0, 1}} {
			r, err := run(t.Context(), fmt.Sprintf("r%d", i), dial, tt.c)
			if err != nil {
				t.Fatal(err)
			}
			var sent, received int64
			for _, it := range r.Iterations {
				sent += it.Sent
				received += it.Received
			}
			if sent != tt.sent || received != tt.received || r.Delivery.Sent != sent || r.Delivery.Received != received {
				t.Errorf("the windows have %d sent and %d received, want %d and %d, as the account: %+v", sent, received, tt.sent, tt.received, r.Delivery)
			}
		}
	})
}
