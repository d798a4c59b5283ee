package load

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mqttload/mqttload/result"
)

// windowLength is that of the iterations of what runs by the clock.
const windowLength = time.Second

// warmTime is the part of an open loop that is not counted.
func (c *caseRun) warmTime() time.Duration { return time.Duration(c.spec.Load.Warmup) * windowLength }

// run measures an open loop: the schedule in windows of a second, and then
// what is still outstanding. The windows count what happened in them; the
// account and the latencies count the messages that were due in them.
func (o *openLoop) run(ctx context.Context, it *iteration) error {
	publishers := it.launch.alive()
	defer o.stopWaiters()
	new(legs).drain(it.launch.shards)
	it.begin(publishers)
	o.start = it.start
	it.launch.run.offered = float64(o.schedule.total-o.warm) / (time.Duration(o.schedule.duration) - it.launch.run.warmTime()).Seconds()
	for _, p := range publishers {
		p.begin(it, int64(o.part(p, o.schedule.total)), 0)
	}
	w := windows{it: it, publishers: publishers, from: it.start}
	w.ready()
	stop := o.startPacers()
	w.run(ctx, time.Duration(o.schedule.duration))
	it.kept(o.sentInTime(publishers), o.schedule)
	stop()
	total := o.schedule.total
	if ctx.Err() != nil {
		total = o.schedule.due(it.launch.run.x.clock() - o.start)
	}
	it.endSchedule(publishers, ctx.Err() != nil)
	it.wait(ctx, publishers)
	return w.finish(ctx, int64(total-min(total, o.warm)))
}

// sentInTime is how many of the messages that count have been sent so far.
func (o *openLoop) sentInTime(publishers []*publisher) (n int64) {
	for _, p := range publishers {
		sent := p.sent.Load()
		n += int64(sent - min(sent, p.measured))
	}
	return n
}

// kept notes what was sent of what was due in the measured time of a schedule
// that is over, or is cut short here.
func (it *iteration) kept(sent int64, s *schedule) {
	ran := min(it.launch.run.x.clock()-it.start, s.duration) - int64(it.launch.run.warmTime())
	if ran > 0 {
		it.launch.run.inTime += sent
		it.launch.run.offeredFor += ran
	}
}

// endSchedule ends the sending, and says who has stood still for a second.
func (it *iteration) endSchedule(publishers []*publisher, now bool) {
	var s stalls
	at := it.launch.run.x.clock()
	for _, p := range publishers {
		if p.endSchedule(now) && at-p.lastAt.Load() >= int64(time.Second) {
			s.add(p)
		}
		it.launch.run.held.window += p.held.window
		it.launch.run.held.buffer += p.held.buffer
		it.launch.run.held.time += at - it.start
	}
	s.warn(it, len(publishers))
}

// endSchedule ends the sending. What waits is still sent where it fits into one
// window: then it only came in the last moment. More is a backlog, and unsent,
// which is reported. What is not due yet, as the schedule was cut short, is none.
func (p *publisher) endSchedule(now bool) (backlog bool) {
	p.hold()
	if p.it != nil && p.seq < p.limit && (now || p.limit-p.seq > p.window) {
		backlog = p.seq < p.pacer.dueOf(p)
		p.limit = p.seq
	}
	p.noteHeld(p.clock(), false)
	p.release()
	p.pump()
	return backlog
}

// stalls are publishers that could not go on.
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

func (s *stalls) warn(it *iteration, of int) {
	if s.count > 0 {
		it.launch.run.warn(result.CodePublishersStalled, fmt.Sprintf("%d of %d publishers stalled since %.1f s: connected, but what they had to send did not go on",
			s.count, of, time.Duration(s.since-it.launch.run.start).Seconds()), "look at the broker's log for the clients, and at --ledger for the streams")
	}
}

// windows cuts a run by the clock into iterations of a second.
type windows struct {
	it         *iteration
	publishers []*publisher
	from       int64 // start of the window that runs
	done       totals
	best       int64  // requests of a window
	base       totals // at the end of the warm-up
	before     usage
}

// totals are what has come about since the session's start.
type totals struct{ sent, acked, received, requests, bytes int64 }

func (t totals) minus(o totals) totals {
	return totals{t.sent - o.sent, t.acked - o.acked, t.received - o.received, t.requests - o.requests, t.bytes - o.bytes}
}

func (it *iteration) totals(publishers []*publisher) (t totals) {
	for _, p := range publishers {
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
	if c := it.launch.churn; c != nil {
		t.sent += c.begun.Load()
		t.requests += c.done.Load()
	}
	return t
}

// run cuts windows for the duration, or without end where it is 0, until ctx
// ends or nobody is left.
func (w *windows) run(ctx context.Context, duration time.Duration) {
	warm := w.it.launch.run.warmTime()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for from := time.Duration(0); duration == 0 || from < duration; from += windowLength {
		end := from + windowLength
		if duration > 0 {
			end = min(end, duration)
		}
		w.it.index++
		w.it.stage = result.StageActual
		if from < warm {
			w.it.stage = result.StageWarmup
		}
		over := !w.until(ctx, timer, w.it.start+int64(end)) || w.deserted()
		w.cut(over || end == duration)
		if over {
			break
		}
		if end == warm {
			w.measure(w.it.launch.run.x.clock(), w.it.totals(w.publishers))
		}
	}
	if w.it.stage == result.StageActual { // else it ended while it warmed up
		w.it.launch.run.used(w.before, w.it.usage())
	}
}

// ready begins the measuring, before anything is sent, where nothing warms up.
// A listener has heard something before: what a broker had retained comes with
// the SUBACK, and counts.
func (w *windows) ready() {
	if w.it.launch.run.warmTime() == 0 {
		w.measure(w.it.start, totals{})
	}
}

// measure ends the warm-up, in which so much has come about, at now.
func (w *windows) measure(now int64, warm totals) {
	w.before, w.it.index = w.it.usage(), 0
	w.done, w.from = warm, now
	w.it.seen, w.base = w.done, w.done
	w.it.launch.run.period.begun, w.it.launch.run.period.start = true, w.from
}

// until waits; false means that ctx has ended before.
func (w *windows) until(ctx context.Context, timer *time.Timer, when int64) bool {
	for wait := when - w.it.launch.run.x.clock(); wait > 0; wait = when - w.it.launch.run.x.clock() {
		timer.Reset(time.Duration(wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// deserted reports whether every connection that the run needs is lost.
func (w *windows) deserted() bool {
	if w.it.launch.churn != nil {
		return false
	}
	if len(w.it.launch.publishers) > 0 {
		return len(w.it.launch.alive()) == 0
	}
	return !slices.ContainsFunc(w.it.launch.members, (*member).stands)
}

// stillShare is the share of the best window's requests below which a window
// stood still.
const stillShare = 0.1

// cut ends a window. One that stood still is counted with the next: on its own
// its time per request, which has no bound, would be all that the mean tells.
// The last is on its own.
func (w *windows) cut(last bool) {
	now, all := w.it.launch.run.x.clock(), w.it.totals(w.publishers)
	w.it.launch.move(now)
	if w.it.stage == result.StageActual {
		w.it.advance(now, all)
	}
	d := all.minus(w.done)
	still := d.requests == 0 || float64(d.requests) < stillShare*float64(w.best)
	if now <= w.from || still && !last {
		return
	}
	w.best = max(w.best, d.requests)
	r := result.Iteration{
		Launch: w.it.number, Stage: w.it.stage, Index: w.it.index, StartNS: w.from - w.it.launch.run.start, ElapsedNS: now - w.from,
		Operations: d.requests * int64(w.it.launch.spec.Load.OperationsPerMessage), Requests: d.requests,
		Sent: d.sent, Acked: d.acked, Received: d.received, Bytes: d.bytes,
		Stalled: d.requests == 0 && all.sent > all.requests,
	}
	w.from, w.done = now, all
	w.it.launch.run.add(r, result.Delivery{})
}

// finish accounts for the messages that count, of which so many were scheduled.
func (w *windows) finish(ctx context.Context, scheduled int64) error {
	var d result.Delivery
	var r result.Iteration // its sums are those of the account, and not of the windows
	for _, p := range w.publishers {
		w.it.launch.run.untimed += p.account(&d, &r, true)
	}
	for _, in := range w.it.launch.inboxes {
		in.account(&d, &r)
	}
	if len(w.it.launch.publishers) == 0 {
		n := w.base.received // what a listener heard to warm up
		d.Expected, d.Received, d.Delivered = d.Expected-n, d.Received-n, d.Delivered-n
	}
	if w.it.launch.churn != nil {
		d.Sent = w.it.launch.churn.counted.Load()
	}
	d.Scheduled = max(scheduled, d.Sent)
	d.Unsent = d.Scheduled - d.Sent
	w.it.launch.run.delivery.Add(d)
	w.it.advance(w.it.launch.run.x.clock(), w.it.totals(w.publishers))
	if ctx.Err() != nil {
		return nil
	}
	switch {
	case w.deserted():
		return ErrAllLost
	case d.Sent > 0 && d.Expected > 0 && d.Received == 0:
		return fmt.Errorf("%w: of %d messages none came back within the drain time of %s", ErrNothingReceived, d.Sent, w.it.launch.spec.Load.Drain)
	}
	return nil
}

// listen counts what others publish.
func (it *iteration) listen(ctx context.Context) error {
	new(legs).drain(it.launch.shards)
	it.begin(nil)
	w := windows{it: it, from: it.start}
	w.ready()
	listening, stop := context.WithCancel(ctx)
	defer stop()
	if e := it.launch.enough; e != nil {
		go func() {
			select {
			case <-e.done:
				stop()
			case <-listening.Done():
			}
		}()
	}
	w.run(listening, it.launch.spec.Load.Duration)
	return w.finish(listening, 0)
}

// stay is about connections that do nothing: what is measured is how long it
// took, since began, until all stood. Then they stay for the duration.
func (it *iteration) stay(ctx context.Context, began int64) error {
	now := it.launch.run.x.clock()
	n := it.launch.connected.Load()
	it.launch.run.add(result.Iteration{
		Launch: it.number, Stage: result.StageActual, Index: 1, StartNS: began - it.launch.run.start, ElapsedNS: max(1, it.launch.stood-began),
		Operations: n * int64(it.launch.spec.Load.OperationsPerMessage), Requests: n,
	}, result.Delivery{})
	w := windows{it: it, from: now}
	before, timer := it.usage(), time.NewTimer(0)
	defer timer.Stop()
	for end := now + int64(windowLength); it.launch.spec.Load.Duration == 0 || end <= now+int64(it.launch.spec.Load.Duration); end += int64(windowLength) {
		if it.launch.spec.Load.Duration == 0 || !w.until(ctx, timer, end) || w.deserted() {
			break
		}
	}
	it.launch.run.used(before, it.usage())
	if ctx.Err() == nil && w.deserted() {
		return ErrAllLost
	}
	return nil
}
