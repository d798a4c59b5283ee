package load

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// workload is what the clients of a launch do once they have connected. A new
// workload is a file workload_NAME.go and a line in workloads for its shape.
type workload interface {
	// byClock reports whether the clock ends the load. Then iterate is called
	// once a launch and divides the time into windows itself; otherwise it is
	// called for every iteration.
	byClock() bool
	// iterate runs and measures. It fails only when going on is pointless.
	iterate(ctx context.Context, it *iteration) error
	// totals counts what has happened since the iteration began. It is called
	// about once a second, while the load runs.
	totals(it *iteration) totals
}

// iteration is one timed stretch of a launch's workload.
type iteration struct {
	launch     *launch
	work       workload
	rec        *record         // the launch's
	spec       *scenarios.Case // the launch's
	clock      func() int64
	stage      string
	index      int
	publishers []*publisher // that take part
	running    *countdown   // of them
	start      int64
	deadline   int64  // of a closed loop, on the clock; 0 is none
	before     usage  // when it began
	seen       totals // what the timeline has
}

func newIteration(l *launch, work workload, stage string, index int, deadline int64) *iteration {
	return &iteration{launch: l, work: work, rec: l.rec, spec: l.spec, clock: l.clock, stage: stage, index: index, deadline: deadline}
}

// endless is a number of messages that no iteration reaches: time ends it.
const endless = math.MaxInt64 / 4

// measured reports whether the iteration counts, rather than warms up.
func (it *iteration) measured() bool { return it.stage == result.StageActual }

// measure runs one iteration of a closed loop. work runs the load and reports
// whether it stalled; account counts its messages.
func (it *iteration) measure(account func(*result.Iteration) result.Delivery, work func() (stalled bool)) result.Iteration {
	it.begin()
	stalled := work()
	r := it.entry(it.start, it.clock())
	r.Stalled = stalled
	if last := it.lastProgress(); stalled && last > it.start {
		r.ElapsedNS = last - it.start
	}
	d := account(&r)
	if it.measured() {
		it.rec.used.add(it.before, it.launch.usage())
		it.advance(it.clock(), it.work.totals(it))
	}
	it.rec.add(r, d)
	return r
}

// begin prepares shards and inboxes, and starts the clock.
func (it *iteration) begin() {
	new(latencies).drain(it.launch.shards) // what was recorded between iterations belongs to none
	it.running = newCountdown(len(it.publishers))
	for _, in := range it.launch.inboxes {
		in.begin()
	}
	it.startClock()
}

// startClock begins the measured time.
func (it *iteration) startClock() {
	it.before = it.launch.usage()
	it.start = it.clock()
	it.seen = totals{}
	if it.measured() {
		it.rec.timeline.begin(it.start)
	}
}

// advance adds to the timeline what has happened until now; all are the totals
// of the iteration.
func (it *iteration) advance(now int64, all totals) {
	if it.measured() {
		it.rec.timeline.advance(now, all.minus(it.seen), it.launch.shards)
		it.seen = all
	}
}

// entry is the iteration's row in the result, without its counts, for the time
// between two readings of the clock.
func (it *iteration) entry(from, to int64) result.Iteration {
	return result.Iteration{
		Launch: it.launch.number, Stage: it.stage, Index: it.index, StartNS: from - it.rec.start, ElapsedNS: to - from,
	}
}

// put writes the totals to r.
func (t totals) put(r *result.Iteration) {
	r.Requests, r.Sent, r.Acked, r.Received, r.Bytes = t.requests, t.sent, t.acked, t.received, t.bytes
}

// messages are the totals over the iteration's publishers, and over messages
// from elsewhere.
func (it *iteration) messages() (t totals) {
	for _, p := range it.publishers {
		t.sent += int64(p.sent.Load() - p.first)
		t.acked += p.acked.Load() + p.warmAcked.Load()
		t.requests += p.completed()
		for _, f := range p.flows {
			for _, r := range f.receipts {
				t.received += r.delivered.Load()
				t.bytes += r.volume.Load()
			}
		}
	}
	for _, in := range it.launch.inboxes {
		if in.tally {
			in.shard.mu.Lock()
			t.received += in.received
			t.requests += in.received
			t.bytes += in.bytes
			in.shard.mu.Unlock()
		}
	}
	return t
}

// leastTime is the length of an iteration that is sized by time.
func (it *iteration) leastTime() time.Duration {
	if it.measured() {
		return it.spec.Load.MinTime
	}
	return time.Duration(float64(it.spec.Load.MinTime) * scenarios.WarmupShare)
}

// share gives every publisher its share of the iteration's messages, or the
// time at which it stops.
func (it *iteration) share() {
	n := it.spec.Load.Messages
	for i, p := range it.publishers {
		if n == 0 {
			p.begin(it.running, it.start, endless, it.start+int64(it.leastTime()))
		} else {
			p.begin(it.running, it.start, equalShare(n, i, len(it.publishers)), 0)
		}
	}
}

// equalShare is the i-th of k equal shares of n; the first shares get one more.
func equalShare(n int64, i, k int) int64 {
	p := n / int64(k)
	if int64(i) < n%int64(k) {
		p++
	}
	return p
}

// expired reports whether the duration of a closed loop is over.
func (it *iteration) expired(now int64) bool { return it.deadline != 0 && now >= it.deadline }

// wait blocks until the publishers have ended. It reports true when nothing
// made progress for the drain time, and the iteration was given up.
func (it *iteration) wait(ctx context.Context) (stalled bool) {
	tick := time.NewTicker(max(it.spec.Load.Drain/20, time.Millisecond))
	defer tick.Stop()
	drain := it.launch.drain(it.clock())
	cancelled := ctx.Done()
	for {
		select {
		case <-it.running.done:
			return !drain.written()
		case <-cancelled:
			cancelled = nil
			it.halt()
		case <-tick.C:
			all := it.work.totals(it)
			now := it.clock()
			it.advance(now, all)
			if it.expired(now) {
				it.halt()
			}
			if it.awaitsReconnect(ctx, now) {
				drain.since = now
			} else if drain.over(now, all.sent+all.received+all.acked+nacked(it.publishers)) {
				it.giveUp()
				return true
			}
		}
	}
}

// awaitsReconnect reports whether a closed loop stands still because
// connections are being made again.
func (it *iteration) awaitsReconnect(ctx context.Context, now int64) bool {
	return it.launch.pacing == nil && it.launch.links.away.Load() > 0 && ctx.Err() == nil && !it.expired(now)
}

// halt stops the sending.
func (it *iteration) halt() {
	for _, p := range it.publishers {
		p.halt.Store(true)
		p.pump()
	}
}

// giveUp ends the iteration with messages outstanding, and warns of publishers
// that could not send.
func (it *iteration) giveUp() {
	var s stalls
	for _, p := range it.publishers {
		if p.giveUp() {
			s.add(p)
		}
	}
	s.warn(it)
}

// stalls are publishers that could not send.
type stalls struct {
	count int
	since int64 // of the first
}

func (s *stalls) add(p *publisher) {
	if at := p.lastAt.Load(); s.count == 0 || at < s.since {
		s.since = at
	}
	s.count++
}

func (s *stalls) warn(it *iteration) {
	if s.count > 0 {
		it.rec.warnings.add(result.CodePublishersStalled, fmt.Sprintf("%d of %d publishers stalled since %.1f s: connected, but their messages made no progress",
			s.count, len(it.publishers), time.Duration(s.since-it.rec.start).Seconds()), "look at the broker's log for the clients, and at --ledger for the streams")
	}
}

// allRejected reports whether the broker rejected all of the sent messages.
func (it *iteration) allRejected(sent int64) bool { return sent > 0 && nacked(it.publishers) == sent }

func nacked(publishers []*publisher) (n int64) {
	for _, p := range publishers {
		n += p.nacked.Load()
	}
	return n
}

func (it *iteration) lastProgress() int64 {
	last := it.start
	for _, p := range it.publishers {
		last = max(last, p.lastAt.Load())
	}
	return last
}

// deliveries adds up the accounts of the iteration's messages, and adds them to
// r.
func (it *iteration) deliveries(r *result.Iteration, measured bool) (d result.Delivery) {
	var untimed int64
	for _, p := range it.publishers {
		untimed += p.account(&d, r, measured)
	}
	for _, in := range it.launch.inboxes {
		in.account(&d, r)
	}
	if measured {
		it.rec.untimed += untimed
	}
	return d
}

// account counts the messages of a closed loop.
func (it *iteration) account(r *result.Iteration) result.Delivery {
	d := it.deliveries(r, it.measured())
	d.Scheduled = d.Sent
	if n := it.spec.Load.Messages; n > 0 && !it.expired(it.clock()) {
		d.Scheduled = max(n, d.Sent)
	}
	d.Unsent = d.Scheduled - d.Sent
	return d
}

// verdict decides whether going on makes sense.
func (it *iteration) verdict(ctx context.Context, r result.Iteration) error {
	if ctx.Err() != nil {
		return nil
	}
	if r.Requests > 0 || r.Received > 0 || r.Sent == 0 && !r.Stalled {
		return nil
	}
	drain := it.spec.Load.Drain
	switch {
	case it.allRejected(r.Sent):
		return ErrAllRejected
	case !r.Stalled:
		return fmt.Errorf("%w: %d messages were sent before the connections were lost", ErrNothingReceived, r.Sent)
	case r.Sent == 0:
		// Messages of an earlier iteration fill the window.
		return fmt.Errorf("%w: nothing could be sent or received for %s", ErrNothingReceived, drain)
	}
	return fmt.Errorf("%w: of %d messages none came back within the drain time of %s", ErrNothingReceived, r.Sent, drain)
}
