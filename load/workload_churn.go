package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/result"
)

// churn is clients that come and go in cycles of connecting, subscribing and
// disconnecting. Client n mod clients runs cycle n.
type churn struct {
	paced   bool // cycles go by a schedule
	launch  *launch
	clients []int // numbers of the members that come and go

	// Of a schedule.
	schedule *schedule
	start    int64           // on the clock
	warm     uint64          // cycles that are due within the warm-up
	due      atomic.Uint64   // cycles that are due
	wake     []chan struct{} // by client: something is due
	stop     chan struct{}   // begin no more

	begun, done atomic.Int64
	counted     atomic.Int64 // cycles begun that are not of the warm-up
	base        totals       // when the iteration began
}

func (c *churn) byClock() bool { return c.paced }

// begin runs one cycle before the clock starts: if that fails, there is nothing
// to measure.
func (c *churn) begin(ctx context.Context, l *launch) (err error) {
	c.launch, c.stop = l, make(chan struct{})
	for i, m := range l.members {
		if m.sub != nil {
			c.clients = append(c.clients, i)
			c.wake = append(c.wake, make(chan struct{}, 1))
		}
	}
	if err := c.connect(ctx, c.clients[0]); err != nil || !c.paced {
		return err
	}
	load := &l.spec.Load
	if c.schedule, err = newSchedule(load.Stages, load.Arrival, load.Seed); err != nil {
		return err
	}
	c.warm = c.schedule.before(warmTime(load))
	return nil
}

func (c *churn) totals(it *iteration) totals { return c.all(it).minus(c.base) }

// all is the totals since the launch began.
func (c *churn) all(it *iteration) totals {
	t := it.messages()
	t.sent += c.begun.Load()
	t.requests += c.done.Load()
	return t
}

func (c *churn) iterate(ctx context.Context, it *iteration) error {
	if c.launch == nil {
		if err := c.begin(ctx, it.launch); err != nil {
			return err
		}
	}
	if c.paced {
		return c.keepRate(ctx, it)
	}
	return c.repeat(ctx, it)
}

// connect connects, subscribes and disconnects one client.
func (c *churn) connect(ctx context.Context, i int) error {
	m := c.launch.members[i]
	m.leaving.Store(false)
	err := c.launch.connector.join(ctx, i, m)
	m.disconnect()
	return err
}

// cycle runs and counts a cycle of the k-th client that was due at intended.
func (c *churn) cycle(ctx context.Context, k int, intended int64, measured bool) error {
	l := c.launch
	start := l.clock()
	c.begun.Add(1)
	if measured {
		c.counted.Add(1)
	}
	err := c.connect(ctx, c.clients[k])
	now := l.clock()
	l.rec.connections.count(err)
	if err != nil {
		if !interrupted(ctx, err) {
			l.rec.errs.add(ErrorOf(err))
		}
		return err
	}
	c.done.Add(1)
	if measured {
		s := l.members[c.clients[k]].shard
		s.mu.Lock()
		s.e2e.add(now - intended)
		if c.paced {
			s.service.add(now - start)
			s.lag.add(start - intended)
		}
		s.mu.Unlock()
	}
	return nil
}

// repeat runs one iteration of a closed loop: every client begins its next
// cycle when the last has ended, until all cycles have run or the time is over.
func (c *churn) repeat(ctx context.Context, it *iteration) error {
	c.base = c.all(it)
	var failed atomic.Pointer[error]
	r := it.measure(func(r *result.Iteration) result.Delivery {
		sums := c.totals(it)
		sums.put(r)
		scheduled := max(sums.sent, it.spec.Load.Messages)
		return result.Delivery{Scheduled: scheduled, Sent: sums.sent, Unsent: scheduled - sums.sent}
	}, func() (stalled bool) {
		c.work(ctx, it, &failed)
		return false
	})
	if err := failed.Load(); err != nil && r.Requests == 0 && ctx.Err() == nil {
		return *err
	}
	return nil
}

// work has all clients run cycles as fast as they can.
func (c *churn) work(ctx context.Context, it *iteration, failed *atomic.Pointer[error]) {
	var left atomic.Int64
	left.Store(it.spec.Load.Messages)
	until := it.start + int64(it.leastTime())
	if it.spec.Load.Messages == 0 {
		left.Store(endless)
	} else {
		until = it.deadline
	}
	var workers sync.WaitGroup
	for k := range c.clients {
		workers.Go(func() {
			var wait mqtt.Backoff
			for left.Add(-1) >= 0 && ctx.Err() == nil {
				now := it.clock()
				if until != 0 && now >= until {
					return
				}
				if err := c.cycle(ctx, k, now, it.measured()); err != nil {
					failed.Store(&err)
					sleep(ctx, wait.Next())
				}
			}
		})
	}
	it.watch(&workers)
}

// watch waits for the workers, and advances the timeline until they are done.
func (it *iteration) watch(workers *sync.WaitGroup) {
	over := make(chan struct{})
	go func() { workers.Wait(); close(over) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			it.advance(it.clock(), it.work.totals(it))
		}
	}
}

// keepRate runs cycles by the schedule. A cycle waits while its client is still
// in the previous one; cycles that have not begun at the end are unsent.
func (c *churn) keepRate(ctx context.Context, it *iteration) error {
	it.begin()
	c.start = it.start
	it.rec.rate.offer(c.schedule, c.warm, it.warmTime())
	w := newWindows(it)
	var workers sync.WaitGroup
	for k := range c.clients {
		workers.Go(func() { c.workWhenDue(ctx, k) })
	}
	waiter := it.rec.cfg.Waiter()
	workers.Go(func() { c.pace(waiter.For) })
	w.cutAll(ctx, time.Duration(c.schedule.duration))
	it.kept(c.counted.Load(), c.schedule)
	scheduled := c.schedule.total
	if ctx.Err() != nil {
		scheduled = c.schedule.due(it.clock() - c.start)
	}
	close(c.stop)
	waiter.Stop()
	workers.Wait()
	return w.finish(ctx, result.Delivery{Scheduled: int64(scheduled - min(scheduled, c.warm)), Sent: c.counted.Load()})
}

// pace tells the clients which cycles are due.
func (c *churn) pace(wait func(time.Duration) bool) {
	clock := c.launch.clock
	for n := uint64(0); n < c.schedule.total; n++ {
		for left := c.start + c.schedule.at(n) - clock(); left > 0; left = c.start + c.schedule.at(n) - clock() {
			if !wait(time.Duration(left)) {
				return
			}
		}
		c.due.Store(n + 1)
		select {
		case c.wake[n%uint64(len(c.wake))] <- struct{}{}:
		default: // the client has been told already
		}
	}
}

// workWhenDue runs the cycles of the k-th client when they are due.
func (c *churn) workWhenDue(ctx context.Context, k int) {
	for n := uint64(k); n < c.schedule.total; n += uint64(len(c.clients)) {
		for c.due.Load() <= n {
			select {
			case <-c.wake[k]:
			case <-c.stop:
				return
			}
		}
		select {
		case <-c.stop:
			return
		default:
			_ = c.cycle(ctx, k, c.start+c.schedule.at(n), n >= c.warm)
		}
	}
}
