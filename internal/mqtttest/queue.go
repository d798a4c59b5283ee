package mqtttest

import (
	"container/heap"
	"sync"
	"time"
)

// queue does things at their times, one after the other, those of one time in
// the order in which they were added. Its goroutine lives while there are any.
type queue struct {
	mu      sync.Mutex
	events  events
	serial  int
	running bool
	earlier chan struct{} // something was added before what is waited for
}

type event struct {
	when   time.Time
	serial int
	do     func()
}

func (q *queue) add(when time.Time, do func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.serial++
	heap.Push(&q.events, event{when, q.serial, do})
	switch {
	case !q.running:
		q.running, q.earlier = true, make(chan struct{}, 1)
		go q.run()
	case q.events[0].serial == q.serial:
		select {
		case q.earlier <- struct{}{}:
		default:
		}
	}
}

func (q *queue) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		q.mu.Lock()
		if len(q.events) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		wait := time.Until(q.events[0].when)
		if wait <= 0 {
			e := heap.Pop(&q.events).(event)
			q.mu.Unlock()
			e.do()
			continue
		}
		q.mu.Unlock()
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-q.earlier:
		}
	}
}

// events is a heap by time, and by order of coming within one time.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	if e[i].when.Equal(e[j].when) {
		return e[i].serial < e[j].serial
	}
	return e[i].when.Before(e[j].when)
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}
