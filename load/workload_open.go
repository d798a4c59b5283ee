package load

import (
	"context"
	"time"

	"github.com/mqttload/mqttload/result"
)

// openLoop publishes by a schedule, whatever the broker does. Its windows count
// the messages sent and received in them; the account and the latencies count
// the messages that were due in them.
type openLoop struct{}

func (openLoop) byClock() bool { return true }

func (openLoop) totals(it *iteration) totals { return it.messages() }

// iterate keeps the schedule, and then waits for outstanding messages.
func (openLoop) iterate(ctx context.Context, it *iteration) error {
	o := it.launch.pacing
	defer o.stopWaiters()
	it.publishers = it.launch.alive()
	it.begin()
	o.start = it.start
	for _, p := range it.publishers {
		p.begin(it.running, it.start, int64(o.shareOf(p, o.schedule.total)), 0)
	}
	it.rec.rate.offer(o.schedule, o.warm, it.warmTime())
	w := newWindows(it)
	stop := o.startPacers()
	w.cutAll(ctx, time.Duration(o.schedule.duration))
	it.kept(o.sentInTime(it.publishers), o.schedule)
	stop()
	total := o.schedule.total
	if ctx.Err() != nil {
		total = o.schedule.due(it.clock() - o.start)
	}
	it.endSchedule(ctx.Err() != nil)
	it.wait(ctx)
	return w.finish(ctx, result.Delivery{Scheduled: int64(total - min(total, o.warm))})
}

// sentInTime counts the messages of the measured time that have been sent so
// far.
func (o *pacing) sentInTime(publishers []*publisher) (n int64) {
	for _, p := range publishers {
		sent := p.sent.Load()
		n += int64(sent - min(sent, p.measured))
	}
	return n
}

// endSchedule ends the sending, and warns of publishers that have stood still
// for a second.
func (it *iteration) endSchedule(now bool) {
	var s stalls
	at := it.clock()
	for _, p := range it.publishers {
		if p.endSchedule(now) && at-p.lastAt.Load() >= int64(time.Second) {
			s.add(p)
		}
		it.rec.rate.held.add(p.held, at-it.start)
	}
	s.warn(it)
}

// endSchedule ends the sending. Due messages that fit into one window are still
// sent: they became due in the last moment. More are a backlog, which stays
// unsent and is reported. Messages that are not due yet, because the schedule
// was cut short, are not a backlog.
func (p *publisher) endSchedule(now bool) (backlog bool) {
	p.hold()
	if p.running != nil && p.seq < p.limit && (now || p.limit-p.seq > p.window) {
		backlog = p.seq < p.pacer.dueOf(p)
		p.limit = p.seq
	}
	p.noteHeld(p.clock(), false)
	p.release()
	p.pump()
	return backlog
}
