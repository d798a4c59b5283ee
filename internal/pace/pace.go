// Package pace waits until a given time, and on Linux is only tens of microseconds
// late. time.Sleep is up to a millisecond late in an idle Linux process: the runtime
// waits in epoll, which counts in milliseconds. A timerfd is exact, and a read of it
// through the runtime's poller costs no thread.
//
// A [Waiter] waits for a goroutine that sends messages at a rate:
//
//	w := pace.New()
//	defer w.Stop()
//	for next := time.Now(); w.Until(next); next = next.Add(interval) {
//		send()
//	}
//
// A [Queue] calls functions at their times, where a millisecond does not matter.
//
// The package does not decide when to send, and never busy-waits for precision: the
// processor belongs to the connections.
package pace

import "time"

// The kinds of a [Waiter].
const (
	KindTimerFD = "timerfd" // tens of microseconds late
	KindSleep   = "sleep"   // up to a millisecond late on an idle Linux process
)

// Waiter makes one goroutine at a time wait. Waiting allocates nothing.
type Waiter struct {
	kind  string
	timer timer
}

type timer interface {
	// wait blocks for d > 0. It returns false if stop was called.
	wait(d time.Duration) bool
	stop()
}

// New returns the most precise Waiter available: one with a timerfd if the system
// has it and a descriptor is free, otherwise a [Sleeper]. Kind tells which. A timerfd
// runs on real time even inside a testing/synctest bubble: use Sleeper there. Call
// Stop to free the descriptor.
func New() *Waiter {
	t, err := newTimerFD()
	if err != nil {
		return Sleeper()
	}
	return &Waiter{KindTimerFD, t}
}

// Sleeper returns a Waiter on the runtime's timers. In a testing/synctest bubble it
// uses the time of the bubble.
func Sleeper() *Waiter { return &Waiter{KindSleep, newSleepTimer()} }

// Kind returns KindTimerFD or KindSleep.
func (w *Waiter) Kind() string { return w.kind }

// Until blocks until t and returns true; it is never early. If t is in the past it
// returns at once. It returns false if Stop was called. t should have a monotonic
// clock reading, as time.Now has, to be immune to changes of the wall clock.
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

// For blocks for at least d and returns true, or returns false if Stop was called. If
// d is 0 or negative it returns true at once, even after Stop.
func (w *Waiter) For(d time.Duration) bool {
	return d <= 0 || w.timer.wait(d)
}

// Stop wakes the waiting goroutine, and makes all later waits return false at once. It
// may be called from any goroutine, and more than once.
func (w *Waiter) Stop() { w.timer.stop() }
