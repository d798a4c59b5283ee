package load

import (
	"context"
	"fmt"
	"time"

	"github.com/mqttload/mqttload/result"
)

// warmTime is the part that is not counted.
func (it *iteration) warmTime() time.Duration { return warmTime(&it.spec.Load) }

// windows divides a run by the clock into iterations of a second.
type windows struct {
	it   *iteration
	from int64  // start of the window that runs
	done totals // before it
	best int64  // requests of a window
	base totals // at the end of the warm-up
}

// newWindows begins at the start of the iteration, before anything is sent.
// Without a warm-up everything counts from there, also what a listener has
// received already: retained messages come with the SUBACK.
func newWindows(it *iteration) *windows {
	w := &windows{it: it, from: it.start}
	if it.warmTime() == 0 {
		w.measure(it.start, totals{})
	}
	return w
}

// measure ends the warm-up, in which warm was counted, at now.
func (w *windows) measure(now int64, warm totals) {
	it := w.it
	it.before, it.index = it.launch.usage(), 0
	w.done, w.from, w.base = warm, now, warm
	it.seen = warm
	it.rec.timeline.restart(now)
}

// cutAll cuts windows for the duration, or without end where it is 0, until ctx
// ends or no client is left.
func (w *windows) cutAll(ctx context.Context, duration time.Duration) {
	it, warm := w.it, w.it.warmTime()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for from := time.Duration(0); duration == 0 || from < duration; from += windowLength {
		end := from + windowLength
		if duration > 0 {
			end = min(end, duration)
		}
		it.index++
		it.stage = result.StageActual
		if from < warm {
			it.stage = result.StageWarmup
		}
		over := !it.until(ctx, timer, it.start+int64(end)) || it.launch.allLost()
		w.cut(over || end == duration)
		if over {
			break
		}
		if end == warm {
			w.measure(it.clock(), it.work.totals(it))
		}
	}
	if it.measured() { // else it ended while it warmed up
		it.rec.used.add(it.before, it.launch.usage())
	}
}

// until waits until when on the clock. It reports false when ctx ended before.
func (it *iteration) until(ctx context.Context, timer *time.Timer, when int64) bool {
	for wait := when - it.clock(); wait > 0; wait = when - it.clock() {
		timer.Reset(time.Duration(wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// stillShare is the share of the best window's requests below which a window
// stood still.
const stillShare = 0.1

// cut ends a window. A window that stood still is counted with the next one: on
// its own, its time per request has no bound and would determine the mean. The
// last window is always counted on its own.
func (w *windows) cut(last bool) {
	it := w.it
	now, all := it.clock(), it.work.totals(it)
	it.launch.move(now)
	if it.measured() {
		it.advance(now, all)
	}
	d := all.minus(w.done)
	still := d.requests == 0 || float64(d.requests) < stillShare*float64(w.best)
	if now <= w.from || still && !last {
		return
	}
	w.best = max(w.best, d.requests)
	r := it.entry(w.from, now)
	d.put(&r)
	r.Stalled = d.requests == 0 && all.sent > all.requests
	w.from, w.done = now, all
	it.rec.add(r, result.Delivery{})
}

// finish accounts for the messages that count. d says how many were scheduled
// and, for requests other than messages, sent.
func (w *windows) finish(ctx context.Context, d result.Delivery) error {
	it := w.it
	var sums result.Iteration // of the account, not of the windows
	d.Add(it.deliveries(&sums, true))
	if len(it.launch.publishers) == 0 {
		n := w.base.received // what a listener received in the warm-up
		d.Expected, d.Received, d.Delivered = d.Expected-n, d.Received-n, d.Delivered-n
	}
	d.Scheduled = max(d.Scheduled, d.Sent)
	d.Unsent = d.Scheduled - d.Sent
	it.rec.delivery.Add(d)
	it.advance(it.clock(), it.work.totals(it))
	if ctx.Err() != nil {
		return nil
	}
	switch {
	case it.launch.allLost():
		return ErrAllLost
	case d.Received == 0 && it.allRejected(d.Sent):
		return ErrAllRejected
	case d.Sent > 0 && d.Expected > 0 && d.Received == 0:
		return fmt.Errorf("%w: of %d messages none came back within the drain time of %s", ErrNothingReceived, d.Sent, it.spec.Load.Drain)
	}
	return nil
}

// kept notes how many messages due in the measured time of a schedule were
// sent. The schedule is over, or is cut short here.
func (it *iteration) kept(sent int64, s *schedule) {
	ran := min(it.clock()-it.start, s.duration) - int64(it.warmTime())
	if ran > 0 {
		it.rec.rate.inTime += sent
		it.rec.rate.lasted += ran
	}
}
