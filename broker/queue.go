package broker

// queue is a first-in first-out list of deliveries.
type queue struct {
	items []delivery
	head  int
}

// keepItems is how many entries an empty queue keeps room for.
const keepItems = 1024

func (q *queue) len() int         { return len(q.items) - q.head }
func (q *queue) front() *delivery { return &q.items[q.head] }

func (q *queue) push(d delivery) {
	// Make room at the front rather than grow when half of it is free.
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

// replace makes items the whole queue.
func (q *queue) replace(items []delivery) { q.items, q.head = items, 0 }
