package load

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/result"
)

// churn is clients that come and go: each takes turns, of connecting,
// subscribing and disconnecting. Turn n is the n-mod-clients-th client's.
type churn struct {
	launch  *launch
	clients []int     // numbers of the members that take turns
	sched   *schedule // nil in a closed loop
	start   int64     // of the schedule, on the clock
	warm    uint64    // turns that are due within the warm-up
	due     atomic.Uint64
	wake    []chan struct{} // by client: something is due
	stop    chan struct{}   // begin no more

	begun, done atomic.Int64
	counted     atomic.Int64 // turns begun that are not of the warm-up
}

// comeAndGo runs a launch of clients that come and go. One turn is taken before
// the clock starts: where that fails there is nothing to measure.
func (c *caseRun) comeAndGo(ctx context.Context, number int) error {
	l, err := openLaunch(ctx, c)
	if err != nil {
		return err
	}
	defer l.end(number)
	ch := &churn{launch: l, stop: make(chan struct{})}
	l.churn = ch
	for i, m := range l.members {
		if m.sub != nil {
			ch.clients = append(ch.clients, i)
			ch.wake = append(ch.wake, make(chan struct{}, 1))
		}
	}
	if err := l.turn(ctx, ch.clients[0]); err != nil {
		return err
	}
	if len(c.spec.Load.Stages) > 0 {
		return ch.open(ctx, &iteration{launch: l, number: number})
	}
	return c.repeat(ctx, func(it *iteration) error {
		it.launch, it.number = l, number
		return ch.iterate(ctx, it)
	})
}

// turn connects, subscribes and disconnects one client.
func (l *launch) turn(ctx context.Context, i int) error {
	m := l.members[i]
	m.leaving.Store(false)
	err := l.join(ctx, i, m)
	l.part(m)
	return err
}

// part disconnects a member that will be back, if it is connected.
func (l *launch) part(m *member) {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	m.leaving.Store(true)
	m.leave(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := m.client.Swap(nil); c != nil {
		addIO(&m.io, c)
	}
}

// take takes a turn of the k-th client that was due at intended, and counts it.
func (c *churn) take(ctx context.Context, k int, intended int64, measured bool) error {
	m := c.launch.members[c.clients[k]]
	start := c.launch.run.x.clock()
	c.begun.Add(1)
	if measured {
		c.counted.Add(1)
	}
	err := c.launch.turn(ctx, c.clients[k])
	now := c.launch.run.x.clock()
	c.launch.mu.Lock()
	c.clientsOf(err)
	c.launch.mu.Unlock()
	if err != nil {
		if !interrupted(ctx, err) {
			c.launch.run.errs.add(ErrorOf(err))
		}
		return err
	}
	c.done.Add(1)
	if measured {
		m.shard.mu.Lock()
		m.shard.e2e.add(now - intended)
		if c.sched != nil {
			m.shard.service.add(now - start)
			m.shard.lag.add(start - intended)
		}
		m.shard.mu.Unlock()
	}
	return nil
}

// clientsOf counts a connection of a turn. The lock is held.
func (c *churn) clientsOf(err error) {
	c.launch.run.clients.Planned++
	if err == nil {
		c.launch.run.clients.Connected++
	}
}

// iterate runs one iteration of a closed loop: every client takes its next turn
// when the last is over, until all are taken, or the time is over.
func (c *churn) iterate(ctx context.Context, it *iteration) error {
	new(legs).drain(it.launch.shards)
	before, base := it.usage(), it.totals(nil)
	it.begin(nil)
	it.seen = base
	var left atomic.Int64
	left.Store(it.launch.spec.Load.Messages)
	until := it.start + int64(it.leastTime())
	if it.launch.spec.Load.Messages == 0 {
		left.Store(endless)
	} else {
		until = it.launch.run.deadline
	}
	var workers sync.WaitGroup
	var failed atomic.Pointer[error]
	for k := range c.clients {
		workers.Go(func() {
			var wait mqtt.Backoff
			for left.Add(-1) >= 0 && ctx.Err() == nil {
				now := it.launch.run.x.clock()
				if until != 0 && now >= until {
					return
				}
				if err := c.take(ctx, k, now, it.stage == result.StageActual); err != nil {
					failed.Store(&err)
					sleep(ctx, wait.Next())
				}
			}
		})
	}
	it.watch(&workers)
	all := it.totals(nil)
	d := all.minus(base)
	r := result.Iteration{
		Launch: it.number, Stage: it.stage, Index: it.index, StartNS: it.start - it.launch.run.start, ElapsedNS: it.launch.run.x.clock() - it.start,
		Operations: d.requests * int64(it.launch.spec.Load.OperationsPerMessage), Requests: d.requests, Sent: d.sent, Received: d.received, Bytes: d.bytes,
	}
	if it.stage == result.StageActual {
		it.launch.run.used(before, it.usage())
		it.advance(it.launch.run.x.clock(), all)
	}
	scheduled := max(d.sent, it.launch.spec.Load.Messages)
	it.launch.run.add(r, result.Delivery{Scheduled: scheduled, Sent: d.sent, Unsent: scheduled - d.sent})
	if err := failed.Load(); err != nil && d.requests == 0 && ctx.Err() == nil {
		return *err
	}
	return nil
}

// watch waits for the workers, and keeps the timeline meanwhile.
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
			it.advance(it.launch.run.x.clock(), it.totals(nil))
		}
	}
}

// open takes turns by the schedule. A turn waits for its client where that is
// still at the one before; what has not begun at the end is unsent.
func (c *churn) open(ctx context.Context, it *iteration) (err error) {
	if c.sched, err = newSchedule(it.launch.spec.Load.Stages, it.launch.spec.Load.Arrival, it.launch.spec.Load.Seed); err != nil {
		return err
	}
	if w := int64(it.launch.run.warmTime()); w > 0 {
		c.warm = c.sched.due(w - 1)
	}
	new(legs).drain(it.launch.shards)
	it.begin(nil)
	c.start = it.start
	it.launch.run.offered = float64(c.sched.total-c.warm) / (time.Duration(c.sched.duration) - it.launch.run.warmTime()).Seconds()
	w := windows{it: it, from: it.start}
	w.ready()
	var workers sync.WaitGroup
	for k := range c.clients {
		workers.Go(func() { c.work(ctx, k) })
	}
	waiter := it.launch.run.x.cfg.Waiter()
	workers.Go(func() { c.pace(waiter.For) })
	w.run(ctx, time.Duration(c.sched.duration))
	it.kept(c.counted.Load(), c.sched)
	scheduled := c.sched.total
	if ctx.Err() != nil {
		scheduled = c.sched.due(it.launch.run.x.clock() - c.start)
	}
	close(c.stop)
	waiter.Stop()
	workers.Wait()
	return w.finish(ctx, int64(scheduled-min(scheduled, c.warm)))
}

// pace tells the clients what is due.
func (c *churn) pace(wait func(time.Duration) bool) {
	for n := uint64(0); n < c.sched.total; n++ {
		for left := c.start + c.sched.at(n) - c.launch.run.x.clock(); left > 0; left = c.start + c.sched.at(n) - c.launch.run.x.clock() {
			if !wait(time.Duration(left)) {
				return
			}
		}
		c.due.Store(n + 1)
		select {
		case c.wake[n%uint64(len(c.wake))] <- struct{}{}:
		default: // it has been told of one before
		}
	}
}

// work takes the turns of the k-th client as they become due.
func (c *churn) work(ctx context.Context, k int) {
	for n := uint64(k); n < c.sched.total; n += uint64(len(c.clients)) {
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
			_ = c.take(ctx, k, c.start+c.sched.at(n), n >= c.warm)
		}
	}
}

// atStart are the numbers of the members that connect when a session opens:
// all but those that come and go.
func (l *launch) atStart() []int {
	var who []int
	for i, m := range l.members {
		if !l.spec.Load.Shape.Cycles || m.sub == nil {
			who = append(who, i)
		}
	}
	return slices.Clip(who)
}
