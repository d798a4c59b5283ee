package pace_test

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/internal/pace"
)

// each runs f for every kind of Waiter of this system.
func each(t *testing.T, f func(t *testing.T, w *pace.Waiter)) {
	for _, open := range []func() *pace.Waiter{pace.New, pace.Sleeper} {
		w := open()
		t.Run(w.Kind(), func(t *testing.T) {
			defer w.Stop()
			f(t, w)
		})
	}
}

func TestKind(t *testing.T) {
	w := pace.New()
	defer w.Stop()
	want := pace.KindSleep
	if runtime.GOOS == "linux" {
		want = pace.KindTimerFD
	}
	if w.Kind() != want {
		t.Errorf("New on %s waits with %s, want %s", runtime.GOOS, w.Kind(), want)
	}
	if s := pace.Sleeper(); s.Kind() != pace.KindSleep {
		t.Errorf("Sleeper waits with %s", s.Kind())
	}
}

func TestUntilIsNeverEarly(t *testing.T) {
	each(t, func(t *testing.T, w *pace.Waiter) {
		next := time.Now()
		for range 200 {
			next = next.Add(100 * time.Microsecond)
			if !w.Until(next) {
				t.Fatal("Until returned false without Stop")
			}
			if early := time.Until(next); early > 0 {
				t.Fatalf("woke %v early", early)
			}
		}
		if !w.Until(time.Now().Add(-time.Second)) || !w.For(0) || !w.For(-1) {
			t.Error("a wait for a time in the past was stopped")
		}
	})
}

func TestStopWakes(t *testing.T) {
	each(t, func(t *testing.T, w *pace.Waiter) {
		woke := make(chan bool)
		go func() { woke <- w.For(time.Hour) }()
		w.Stop() // before or after the wait has begun: both must end it
		if <-woke {
			t.Error("For returned true after Stop")
		}
		w.Stop()
		if w.For(time.Hour) {
			t.Error("waited after Stop")
		}
	})
}

func TestWaitAllocatesNothing(t *testing.T) {
	each(t, func(t *testing.T, w *pace.Waiter) {
		if n := testing.AllocsPerRun(100, func() { w.For(time.Microsecond) }); n != 0 {
			t.Errorf("%v allocations per wait", n)
		}
	})
}

func TestSleeperOnVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pace.Sleeper()
		start := time.Now()
		for n := range 1000 {
			at := start.Add(time.Duration(n) * 333 * time.Microsecond)
			if !w.Until(at) || !time.Now().Equal(at) {
				t.Fatalf("woke at %v, want %v", time.Since(start), at.Sub(start))
			}
		}
		woke := make(chan bool)
		go func() { woke <- w.For(time.Hour) }()
		synctest.Wait()
		w.Stop()
		if <-woke {
			t.Error("For returned true after Stop")
		}
	})
}

// BenchmarkLateness shows how late an idle process wakes.
func BenchmarkLateness(b *testing.B) {
	for _, open := range []func() *pace.Waiter{pace.New, pace.Sleeper} {
		w := open()
		b.Run("kind="+w.Kind(), func(b *testing.B) {
			late := []time.Duration{}
			next := time.Now()
			for b.Loop() {
				next = next.Add(time.Millisecond)
				w.Until(next)
				late = append(late, time.Since(next))
			}
			slices.Sort(late)
			b.ReportMetric(float64(late[len(late)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "p99-µs")
		})
		w.Stop()
	}
}
