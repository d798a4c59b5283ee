package broker

// queue is a first-in first-out list of deliveries.
type queue struct {
	items []delivery
	head  int
}

// keepItems is the largest capacity, in entries, that an empty queue keeps.
const keepItems = 1024

func (q *queue) len() int         { return len(q.items) - q.head }
func (q *queue) front() *delivery { return &q.items[q.head] }

func (q *queue) push(d delivery) {
	// If more than half of the slice is free at its front, move rather than grow.
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, d)
}

func (q *queue) pop() {
	q.items[q.head] = delivery{}
	q.head++
	if q.head < len(q.items) {
		return
	}
	q.items, q.head = q.items[:0], 0
	if cap(q.items) > keepItems {
		q.items = nil
	}
}

// replace makes items the content of the queue.
func (q *queue) replace(items []delivery) { q.items, q.head = items, 0 }
