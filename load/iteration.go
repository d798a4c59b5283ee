package load

import (
	"context"
	"fmt"
	"math"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// iteration is one timed stretch of work over a session's flows.
type iteration struct {
	launch *launch
	number int
	stage  string
	index  int
	start  int64
	left   atomic.Int64  // publishers that have not ended
	done   chan struct{} // closed when none is left
	seen   totals        // what the timeline has
}

// endless stands for a number of messages that only time ends.
const endless = math.MaxInt64 / 4

func (it *iteration) publisherEnded() {
	if it.left.Add(-1) == 0 {
		close(it.done)
	}
}

// run sends, waits until everything has come back or nothing moves any more,
// and accounts. Only what makes going on pointless is an error.
func (it *iteration) run(ctx context.Context) error {
	publishers := it.launch.alive()
	if len(publishers) == 0 {
		return ErrAllLost
	}
	new(legs).drain(it.launch.shards) // what came between iterations belongs to none
	before := it.usage()
	it.begin(publishers)
	it.share(publishers)
	for _, p := range publishers {
		if p.heard {
			p.pump()
		} else {
			go p.pump() // nothing but the end of the iteration may stop it
		}
	}
	stalled := it.wait(ctx, publishers)
	end := it.launch.run.x.clock()
	r := result.Iteration{
		Launch: it.number, Stage: it.stage, Index: it.index,
		StartNS: it.start - it.launch.run.start, ElapsedNS: end - it.start, Stalled: stalled,
	}
	if last := it.lastProgress(publishers); stalled && last > it.start {
		r.ElapsedNS = last - it.start
	}
	it.account(publishers, &r, before)
	return it.verdict(ctx, r)
}

// begin starts the clock for the publishers.
func (it *iteration) begin(publishers []*publisher) {
	it.done = make(chan struct{})
	it.left.Store(int64(len(publishers)))
	for _, in := range it.launch.inboxes {
		in.begin()
	}
	it.start = it.launch.run.x.clock()
	it.timelineStart()
}

// leastTime is that of an iteration that is sized by time.
func (it *iteration) leastTime() time.Duration {
	if it.stage == result.StageWarmup {
		return time.Duration(float64(it.launch.spec.Load.MinTime) * scenarios.WarmupShare)
	}
	return it.launch.spec.Load.MinTime
}

// share gives every publisher its part of the iteration's messages, or of its time.
func (it *iteration) share(publishers []*publisher) {
	n := it.launch.spec.Load.Messages
	if n == 0 {
		for _, p := range publishers {
			p.begin(it, endless, it.start+int64(it.leastTime()))
		}
		return
	}
	for i, p := range publishers {
		p.begin(it, part(n, i, len(publishers)), 0)
	}
}

// part is the i-th of k equal parts of n; the first get one more.
func part(n int64, i, k int) int64 {
	p := n / int64(k)
	if int64(i) < n%int64(k) {
		p++
	}
	return p
}

// wait blocks until the publishers have ended. It reports true when nothing
// moved for the drain time, and the iteration was given up.
func (it *iteration) wait(ctx context.Context, publishers []*publisher) (stalled bool) {
	tick := time.NewTicker(max(it.launch.spec.Load.Drain/20, time.Millisecond))
	defer tick.Stop()
	still := it.launch.patience(it.launch.run.x.clock())
	cancelled := ctx.Done()
	for {
		select {
		case <-it.done:
			return !it.written(still)
		case <-cancelled:
			cancelled = nil
			it.halt(publishers)
		case <-tick.C:
			all := it.totals(publishers)
			now := it.launch.run.x.clock()
			it.advance(now, all)
			if it.launch.run.expired(now) {
				it.halt(publishers)
			}
			if it.awaited(ctx, now) {
				still.since = now
			} else if still.over(now, all.sent+all.received+all.acked+nacked(publishers)) {
				it.giveUp(publishers)
				return true
			}
		}
	}
}

// halt stops the sending.
func (it *iteration) halt(publishers []*publisher) {
	for _, p := range publishers {
		p.halt.Store(true)
		p.pump()
	}
}

// giveUp ends the iteration whatever is outstanding, and says who could not go on.
func (it *iteration) giveUp(publishers []*publisher) {
	var s stalls
	for _, p := range publishers {
		if p.giveUp() {
			s.add(p)
		}
	}
	s.warn(it, len(publishers))
}

func nacked(publishers []*publisher) (n int64) {
	for _, p := range publishers {
		n += p.nacked.Load()
	}
	return n
}

func (it *iteration) lastProgress(publishers []*publisher) int64 {
	last := it.start
	for _, p := range publishers {
		last = max(last, p.lastAt.Load())
	}
	return last
}

// account turns the iteration into numbers and gives them to the case.
func (it *iteration) account(publishers []*publisher, r *result.Iteration, before usage) {
	var d result.Delivery
	var untimed int64
	measured := it.stage == result.StageActual
	for _, p := range publishers {
		untimed += p.account(&d, r, measured)
	}
	for _, in := range it.launch.inboxes {
		in.account(&d, r)
	}
	d.Scheduled = d.Sent
	if n := it.launch.spec.Load.Messages; n > 0 && !it.launch.run.expired(it.launch.run.x.clock()) {
		d.Scheduled = max(n, d.Sent)
	}
	d.Unsent = d.Scheduled - d.Sent
	r.Operations = r.Requests * int64(it.launch.spec.Load.OperationsPerMessage)
	if measured {
		it.launch.run.used(before, it.usage())
		it.launch.run.untimed += untimed
		it.advance(it.launch.run.x.clock(), it.totals(publishers))
	}
	it.launch.run.add(*r, d)
}

// usage is what the process and the session's connections have used so far.
type usage struct {
	user, system time.Duration
	io           result.IO
	pauses       *metrics.Float64Histogram
}

func (it *iteration) usage() (u usage) {
	u.user, u.system = it.launch.run.x.cfg.CPU()
	u.pauses = gcPauses()
	for _, m := range it.launch.members {
		io := it.launch.ioOf(m)
		u.io.Reads += io.Reads
		u.io.Writes += io.Writes
		u.io.BytesRead += io.BytesRead
		u.io.BytesWritten += io.BytesWritten
	}
	return u
}

// used adds the difference of two usages to the case.
func (c *caseRun) used(before, after usage) {
	c.cpu.UserNS += int64(after.user - before.user)
	c.cpu.SystemNS += int64(after.system - before.system)
	c.longestPause = max(c.longestPause, longestSince(before.pauses, after.pauses))
	c.io.Reads += after.io.Reads - before.io.Reads
	c.io.Writes += after.io.Writes - before.io.Writes
	c.io.BytesRead += after.io.BytesRead - before.io.BytesRead
	c.io.BytesWritten += after.io.BytesWritten - before.io.BytesWritten
}

// verdict decides whether going on makes sense.
func (it *iteration) verdict(ctx context.Context, r result.Iteration) error {
	if ctx.Err() != nil {
		return nil
	}
	if r.Requests > 0 || r.Received > 0 || r.Sent == 0 && !r.Stalled {
		return nil
	}
	switch {
	case !r.Stalled:
		return fmt.Errorf("%w: %d messages were sent before the connections were lost", ErrNothingReceived, r.Sent)
	case r.Sent == 0:
		// The window is full of what an earlier iteration has sent.
		return fmt.Errorf("%w: nothing could be sent or received for %s", ErrNothingReceived, it.launch.spec.Load.Drain)
	}
	return fmt.Errorf("%w: of %d messages none came back within the drain time of %s", ErrNothingReceived, r.Sent, it.launch.spec.Load.Drain)
}
