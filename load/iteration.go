package load

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/result"
)

// iteration is one timed stretch of work over a session's streams.
type iteration struct {
	*session
	launch int
	stage  string
	index  int
	start  int64
	left   atomic.Int64  // streams that have not ended
	done   chan struct{} // closed when none is left
}

// endless stands for a number of messages that only time ends.
const endless = math.MaxInt64 / 4

// warmupShare of an auto-sized iteration's time is what a warm-up one takes:
// enough to warm up, and a matrix of many cells ends sooner.
const warmupShare = 0.4

func (it *iteration) streamEnded() {
	if it.left.Add(-1) == 0 {
		close(it.done)
	}
}

// run sends, waits until everything has come back or nothing moves any more,
// and accounts. Only what makes going on pointless is an error.
func (it *iteration) run(ctx context.Context) error {
	streams := it.alive()
	if len(streams) == 0 {
		return ErrAllLost
	}
	new(legs).drain(it.shards) // what came between iterations belongs to none
	it.done = make(chan struct{})
	it.left.Store(int64(len(streams)))
	before := it.usage()
	it.start = it.x.clock()
	it.share(streams)
	for _, s := range streams {
		s.pump()
	}
	stalled := it.wait(ctx, streams)
	end := it.x.clock()
	r := result.Iteration{
		Launch: it.launch, Stage: it.stage, Index: it.index,
		StartNS: it.start - it.caseRun.start, ElapsedNS: end - it.start, Stalled: stalled,
	}
	if last := it.lastProgress(streams); stalled && last > it.start {
		r.ElapsedNS = last - it.start
	}
	it.account(streams, &r, before)
	return it.verdict(ctx, r)
}

// alive are the streams whose connections both stand.
func (it *iteration) alive() []*stream {
	var out []*stream
	for _, s := range it.streams {
		if !s.dead.Load() {
			out = append(out, s)
		}
	}
	return out
}

// share gives every stream its part of the iteration's messages, or of its time.
func (it *iteration) share(streams []*stream) {
	n := it.Load.Messages
	if n == 0 {
		least := it.Load.MinTime
		if it.stage == result.StageWarmup {
			least = time.Duration(float64(least) * warmupShare)
		}
		for _, s := range streams {
			s.begin(it, endless, it.start+int64(least))
		}
		return
	}
	for i, s := range streams {
		s.begin(it, part(n, i, len(streams)), 0)
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

// wait blocks until the streams have ended. It reports true when nothing moved
// for the drain time, and the iteration was given up.
func (it *iteration) wait(ctx context.Context, streams []*stream) (stalled bool) {
	drain := it.Load.Drain
	tick := time.NewTicker(max(drain/20, time.Millisecond))
	defer tick.Stop()
	moved, last := int64(-1), it.x.clock()
	cancelled := ctx.Done()
	for {
		select {
		case <-it.done:
			return false
		case <-cancelled:
			cancelled = nil
			for _, s := range streams {
				s.halt.Store(true)
				s.pump()
			}
		case <-tick.C:
			if m := progress(streams); m != moved {
				moved, last = m, it.x.clock()
			} else if it.x.clock()-last >= int64(drain) {
				for _, s := range streams {
					s.giveUp()
				}
				return true
			}
		}
	}
}

func progress(streams []*stream) (n int64) {
	for _, s := range streams {
		n += int64(s.sent.Load()) + s.delivered.Load() + s.acked.Load() + s.nacked.Load()
	}
	return n
}

func (it *iteration) lastProgress(streams []*stream) int64 {
	last := it.start
	for _, s := range streams {
		last = max(last, s.lastAt.Load())
	}
	return last
}

// account turns the iteration into numbers and gives them to the case.
func (it *iteration) account(streams []*stream, r *result.Iteration, before usage) {
	var d result.Delivery
	var untimed int64
	for _, s := range streams {
		untimed += s.account(&d, r)
	}
	d.Scheduled = d.Sent
	if n := it.Load.Messages; n > 0 {
		d.Scheduled = max(n, d.Sent)
	}
	d.Unsent = d.Scheduled - d.Sent
	r.Operations = r.Received * int64(it.Load.OperationsPerMessage)
	if it.stage == result.StageActual {
		it.used(before, it.usage())
		it.untimed += untimed
		it.tick(r)
	}
	it.add(*r, d)
}

// tick puts the iteration on the case's timeline.
func (it *iteration) tick(r *result.Iteration) {
	t := result.Tick{TNS: r.StartNS, Sent: r.Sent, Received: r.Received}
	var l legs
	l.drain(it.shards)
	if h := l.e2e.hist; h != nil {
		p := h.ValueAtQuantile(99)
		t.P99NS = &p
	}
	it.legs.e2e.take(&l.e2e)
	it.legs.ack.take(&l.ack)
	it.legs.pubrec.take(&l.pubrec)
	it.timeline = append(it.timeline, t)
}

// usage is what the process and the session's connections have used so far.
type usage struct {
	user, system time.Duration
	io           result.IO
}

func (it *iteration) usage() (u usage) {
	u.user, u.system = it.x.cfg.CPU()
	for _, m := range it.members {
		if m.client == nil {
			continue
		}
		s := m.client.Stats()
		u.io.Reads += s.Reads
		u.io.Writes += s.Writes
		u.io.BytesRead += s.BytesIn
		u.io.BytesWritten += s.BytesOut
	}
	return u
}

// used adds the difference of two usages to the case.
func (c *caseRun) used(before, after usage) {
	c.cpu.UserNS += int64(after.user - before.user)
	c.cpu.SystemNS += int64(after.system - before.system)
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
	if r.Received > 0 || r.Sent == 0 && !r.Stalled {
		return nil
	}
	switch {
	case !r.Stalled:
		return fmt.Errorf("%w: %d messages were sent before the connections were lost", ErrNothingReceived, r.Sent)
	case r.Sent == 0:
		// The window is full of what an earlier iteration has sent.
		return fmt.Errorf("%w: nothing could be sent or received for %s", ErrNothingReceived, it.Load.Drain)
	}
	return fmt.Errorf("%w: of %d messages none came back within the drain time of %s", ErrNothingReceived, r.Sent, it.Load.Drain)
}
