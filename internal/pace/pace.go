// Package pace waits until a moment with tens of microseconds of lateness.
// time.Sleep cannot: on an idle Linux process the runtime rounds every wait of
// less than a millisecond up to one, because epoll counts in milliseconds. A
// timerfd has no such grain, and read through the runtime's poller it costs no
// thread.
package pace

import (
	"time"
)

// What a [Waiter] waits with.
const (
	KindTimerFD = "timerfd" // tens of microseconds late
	KindSleep   = "sleep"   // up to a millisecond late on an idle Linux process
)

// Waiter waits for one goroutine at a time. Waiting allocates nothing.
type Waiter struct {
	kind  string
	timer timer
}

type timer interface {
	// wait blocks for d > 0; false means that stop has ended it.
	wait(d time.Duration) bool
	stop()
}

// New returns the most exact Waiter there is: a timerfd where the system has
// one and a descriptor is free, else [Sleeper]. Kind tells which. A timerfd
// runs on real time even inside of testing/synctest: use Sleeper there. Stop
// must be called to free the descriptor.
func New() *Waiter {
	t, err := newTimerFD()
	if err != nil {
		return Sleeper()
	}
	return &Waiter{KindTimerFD, t}
}

// Sleeper returns a Waiter on the runtime's timers. Made inside of a
// testing/synctest bubble it waits on the bubble's time.
func Sleeper() *Waiter { return &Waiter{KindSleep, newSleepTimer()} }

// Kind is KindTimerFD or KindSleep.
func (w *Waiter) Kind() string { return w.kind }

// Until blocks until t and never returns true before it; a t in the past
// returns at once. It returns false when Stop was called. t should carry a
// monotonic reading, as those of time.Now do: a change of the wall clock then
// does not matter.
func (w *Waiter) Until(t time.Time) bool {
	for {
		d := time.Until(t)
		if !w.For(d) {
			return false
		}
		if d <= 0 {
			return true
		}
	}
}

// For blocks for d at least. It returns false when Stop was called. Zero and
// less return true at once, without a look at Stop.
func (w *Waiter) For(d time.Duration) bool {
	return d <= 0 || w.timer.wait(d)
}

// Stop wakes the goroutine that waits and makes every later wait return false
// at once. It may be called from any goroutine, and more than once.
func (w *Waiter) Stop() { w.timer.stop() }
