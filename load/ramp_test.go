package load

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestRampRate: 100 clients at 100/s start 10 ms apart, the last after 0.99 s,
// though every connection takes three times as long as that.
func TestRampRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		at := make([]time.Duration, 100)
		ramp(t.Context(), 100, 2, 100, func(i int) {
			mu.Lock()
			at[i] = time.Since(began)
			mu.Unlock()
			time.Sleep(3 * time.Second)
		})
		for i, d := range at {
			if want := time.Duration(i) * 10 * time.Millisecond; d != want {
				t.Fatalf("client %d started after %v, want %v", i, d, want)
			}
		}
	})
}

// TestRampParallel: without a rate the bound holds and is used.
func TestRampParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most, calls atomic.Int64
		began := time.Now()
		ramp(t.Context(), 1000, 64, 0, func(int) {
			calls.Add(1)
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			running.Add(-1)
		})
		if calls.Load() != 1000 || most.Load() != 64 || time.Since(began) != 16*time.Second {
			t.Errorf("%d calls, %d at a time, in %v", calls.Load(), most.Load(), time.Since(began))
		}
	})
}

func TestInsist(t *testing.T) {
	busy := &mqtt.RefusedError{Version: packet.V5, Code: packet.ReasonServerBusy}
	bad := &mqtt.RefusedError{Version: packet.V5, Code: packet.ReasonNotAuthorized}
	for _, c := range []struct {
		name    string
		answers []error
		want    error
	}{
		{"busy twice", []error{busy, busy, nil}, nil},
		{"refused for good", []error{bad}, bad},
		{"busy, then refused for good", []error{busy, bad}, bad},
		{"unreachable", []error{net.ErrClosed}, net.ErrClosed},
	} {
		synctest.Test(t, func(t *testing.T) {
			n, told := 0, 0
			err := retry(t.Context(), func() error { n++; return c.answers[n-1] }, func(error) { told++ })
			if !errors.Is(err, c.want) || n != len(c.answers) || told != n-1 {
				t.Errorf("%s: %v after %d attempts, %d told", c.name, err, n, told)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		err := retry(ctx, func() error { return busy }, func(error) {})
		if !errors.Is(err, busy) || time.Since(began) != 10*time.Second {
			t.Errorf("always busy: %v after %v", err, time.Since(began))
		}
	})
}
