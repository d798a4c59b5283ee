package load

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/internal/pace"
	"github.com/mqttload/mqttload/scenarios"
)

// pacing is the schedule of an open loop and the pacers that keep it. Message n
// is of publisher n mod publishers. Whatever the broker does, the message is
// due when the schedule says, and its latency runs from then.
type pacing struct {
	schedule   *schedule
	clock      func() int64
	start      int64 // of the schedule, on the clock
	publishers uint64
	warm       uint64 // messages that are due within the warm-up
	ringSize   int    // send times that a publisher remembers, a power of two
	pacers     []*pacer
}

const (
	// pacedRate is the rate that one pacer can keep while its core does other work.
	pacedRate = 50_000
	// leastTick is the least time between two checks of a pacer: above ten
	// thousand messages per second they are sent in batches.
	leastTick = 100 * time.Microsecond
	// rememberFor is how long send times are remembered, at the peak rate, and
	// ringTotal and ringLeast bound how many, over all publishers and for each.
	rememberFor = 30 * time.Second
	ringTotal   = 1 << 22
	ringLeast   = 64
)

// newPacing makes the schedule and the pacers of a load; nil for a closed loop
// and where nothing is published.
func newPacing(load *scenarios.Load, clock func() int64, waiter func() *pace.Waiter) (*pacing, error) {
	n := load.PublisherClients()
	if len(load.Stages) == 0 || n == 0 {
		return nil, nil
	}
	sched, err := newSchedule(load.Stages, load.Arrival, load.Seed)
	if err != nil {
		return nil, err
	}
	o := &pacing{schedule: sched, clock: clock, publishers: uint64(n), warm: sched.before(warmTime(load))}
	want := min(int(sched.peak()*rememberFor.Seconds()), ringTotal) / n
	for o.ringSize = ringLeast; o.ringSize < want; {
		o.ringSize *= 2
	}
	count := 1
	if sched.peak() > pacedRate {
		count = min(n, runtime.GOMAXPROCS(0))
	}
	for i := range count {
		o.pacers = append(o.pacers, &pacer{pacing: o, number: i, waiter: waiter()})
	}
	return o, nil
}

// windowLength is the length of an iteration where the clock ends the load.
const windowLength = time.Second

// warmTime is the part of an open loop that does not count.
func warmTime(load *scenarios.Load) time.Duration { return time.Duration(load.Warmup) * windowLength }

// admit makes p a publisher of the schedule.
func (o *pacing) admit(p *publisher) {
	p.pacing = o
	p.pacer = o.pacers[p.number%len(o.pacers)]
	p.pacer.publishers = append(p.pacer.publishers, p)
	p.measured = o.shareOf(p, o.warm)
	p.chunk = min(maxChunk, uint64(o.ringSize)/4)
}

// shareOf is how many of the schedule's first n messages are p's.
func (o *pacing) shareOf(p *publisher, n uint64) uint64 {
	return (n + o.publishers - 1 - uint64(p.number)) / o.publishers
}

// intended is when p's k-th message is due, on the clock.
func (o *pacing) intended(p *publisher, k uint64) int64 {
	return o.start + o.schedule.at(k*o.publishers+uint64(p.number))
}

// recordLag records how late p's messages from number from on were sent at now.
func (o *pacing) recordLag(p *publisher, from uint64, now int64) {
	if from < p.measured || from == p.seq {
		return
	}
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	for k := from; k < p.seq; k++ {
		p.shard.lag.add(now - o.intended(p, k))
	}
}

// time records the latencies of the message at place of its publisher, which
// came at now: from when it was due, and from when it was sent.
func (o *pacing) time(r *receipt, place uint64, now int64) {
	p, s := r.flow.pub, r.in.shard
	s.e2e.add(now - o.intended(p, place))
	sent := p.sentAt[place&uint64(len(p.sentAt)-1)]
	// Checked after reading: the slot is written again one lap later, and up to a
	// chunk of that lap may not be counted yet.
	if place+uint64(len(p.sentAt)) < p.sent.Load()+p.chunk {
		r.ledger.untimed++
		return
	}
	s.service.add(now - sent)
}

// pacer tells some of the publishers which messages are due.
type pacer struct {
	pacing     *pacing
	number     int
	publishers []*publisher
	waiter     *pace.Waiter
	due        atomic.Uint64 // messages of the schedule that are due
}

// dueOf is how many messages of p are due.
func (pc *pacer) dueOf(p *publisher) uint64 { return pc.pacing.shareOf(p, pc.due.Load()) }

// run announces due messages until all are due, or the waiter is stopped: then
// it checks once more, because it may have overslept. The schedule is absolute:
// after a stall all messages that became due are sent at once.
func (pc *pacer) run() {
	o := pc.pacing
	last := o.start - int64(leastTick)
	for n, going := pc.mine(0), true; n < o.schedule.total && going; {
		going = pc.wait(max(o.start+o.schedule.at(n), last+int64(leastTick)))
		last = o.clock()
		due := o.schedule.due(last - o.start)
		pc.due.Store(due)
		pc.pump(n, due)
		n = pc.mine(due)
	}
}

// wait blocks until when on the clock. It reports false when the waiter was
// stopped.
func (pc *pacer) wait(when int64) bool {
	for wait := when - pc.pacing.clock(); wait > 0; wait = when - pc.pacing.clock() {
		if !pc.waiter.For(time.Duration(wait)) {
			return false
		}
	}
	return true
}

// mine is the first message, from n on, of one of the pacer's publishers.
func (pc *pacer) mine(n uint64) uint64 {
	count := uint64(len(pc.pacing.pacers))
	for n%pc.pacing.publishers%count != uint64(pc.number) {
		n++
	}
	return n
}

// pump lets the publishers of messages n to due-1 send.
func (pc *pacer) pump(n, due uint64) {
	if due-min(due, n) >= pc.pacing.publishers {
		for _, p := range pc.publishers {
			p.pump()
		}
		return
	}
	count := uint64(len(pc.pacing.pacers))
	for ; n < due; n = pc.mine(n + 1) {
		pc.publishers[n%pc.pacing.publishers/count].pump()
	}
}

// startPacers starts the schedule. stop ends it and waits for the pacers.
func (o *pacing) startPacers() (stop func()) {
	var wg sync.WaitGroup
	for _, pc := range o.pacers {
		wg.Go(pc.run)
	}
	return func() {
		o.stopWaiters()
		wg.Wait()
	}
}

func (o *pacing) stopWaiters() {
	for _, pc := range o.pacers {
		pc.waiter.Stop()
	}
}

// held is how long, and by what, a publisher was kept from sending due
// messages.
type held struct {
	since    int64 // 0: it is not kept
	byWindow bool  // the in-flight window is full, rather than the out buffer
	window   int64 // ns, in all
	buffer   int64
}

// noteHeld notes at now whether a due message could not be sent.
func (p *publisher) noteHeld(now int64, is bool) {
	h := &p.held
	if h.since != 0 && h.byWindow {
		h.window += now - h.since
	} else if h.since != 0 {
		h.buffer += now - h.since
	}
	h.since = 0
	if is {
		out := p.seq - p.first - min(p.seq-p.first, uint64(p.answered()))
		h.since, h.byWindow = now, p.qos > 0 && out >= p.window
	}
}
