package pace

import (
	"container/heap"
	"sync"
	"time"
)

// Queue calls functions at given times, one after the other; functions with the same
// time are called in the order in which they were added. The zero value is ready to
// use. A Queue has a goroutine only while calls are pending. It uses the runtime's
// timers, so calls are up to a millisecond late, and in a testing/synctest bubble it
// uses the time of the bubble.
type Queue struct {
	mu      sync.Mutex
	calls   calls
	serial  int
	running bool
	stopped bool
	wg      sync.WaitGroup
	changed chan struct{} // signals that the first call has changed or Stop was called
}

type call struct {
	when   time.Time
	serial int
	do     func()
}

// Add makes the queue call do at the given time, or as soon as possible if that has
// passed. After Stop it does nothing. Any goroutine may call Add, and so may do.
func (q *Queue) Add(when time.Time, do func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped {
		return
	}
	q.serial++
	heap.Push(&q.calls, call{when, q.serial, do})
	switch {
	case !q.running:
		q.running, q.changed = true, make(chan struct{}, 1)
		q.wg.Go(q.run)
	case q.calls[0].serial == q.serial:
		q.signal()
	}
}

// Stop drops the pending calls and waits for the running one. A queued function must
// not call it.
func (q *Queue) Stop() {
	q.mu.Lock()
	q.stopped, q.calls = true, nil
	if q.running {
		q.signal()
	}
	q.mu.Unlock()
	q.wg.Wait()
}

// signal makes run check the calls again. The lock is held.
func (q *Queue) signal() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

func (q *Queue) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		q.mu.Lock()
		if len(q.calls) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		wait := time.Until(q.calls[0].when)
		if wait <= 0 {
			c := heap.Pop(&q.calls).(call)
			q.mu.Unlock()
			c.do()
			continue
		}
		q.mu.Unlock()
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-q.changed:
		}
	}
}

// calls is a heap ordered by time, then by order of addition.
type calls []call

func (c calls) Len() int { return len(c) }
func (c calls) Less(i, j int) bool {
	if c[i].when.Equal(c[j].when) {
		return c[i].serial < c[j].serial
	}
	return c[i].when.Before(c[j].when)
}
func (c calls) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *calls) Push(x any)   { *c = append(*c, x.(call)) }
func (c *calls) Pop() any {
	old := *c
	last := old[len(old)-1]
	old[len(old)-1] = call{}
	*c = old[:len(old)-1]
	return last
}
