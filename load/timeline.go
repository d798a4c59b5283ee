package load

import (
	"time"

	"github.com/mqttload/mqttload/result"
)

// tickPeriod is the time between two points of a timeline, at least: a second,
// which windows of a second may miss by a little.
const tickPeriod = 900 * time.Millisecond

// period is what the next point of a case's timeline is about: about a second,
// of one iteration or of several.
type period struct {
	begun          bool
	start          int64
	sent, received int64
	legs           legs
}

// beginTimeline begins an iteration, with a period where none is open.
func (it *iteration) beginTimeline() {
	it.seen = totals{}
	if p := &it.run.period; !p.begun && it.measured() {
		p.begun, p.start = true, it.start
	}
}

// advance puts on the timeline what has come about until now, of which all are
// the iteration's totals, and takes the latencies from the shards.
func (it *iteration) advance(now int64, all totals) {
	if !it.measured() {
		return
	}
	p := &it.run.period
	if !p.begun {
		p.begun, p.start = true, now
	}
	d := all.minus(it.seen)
	it.seen = all
	p.sent += d.sent
	p.received += d.received
	p.legs.drain(it.launch.shards)
	if now-p.start >= int64(tickPeriod) {
		it.run.endPeriod(now)
	}
}

// endPeriod ends the point that is open.
func (c *caseRun) endPeriod(now int64) {
	p := &c.period
	if !p.begun {
		return
	}
	t := result.Tick{TNS: p.start - c.start, Sent: p.sent, Received: p.received}
	if h := p.legs.e2e.hist; h != nil && h.TotalCount() > 0 {
		p99 := min(h.ValueAtQuantile(99), result.MaxLatencyNS)
		t.P99NS = &p99
	}
	c.timeline = append(c.timeline, t)
	c.tell(t, &p.legs)
	c.legs.take(&p.legs)
	p.start, p.sent, p.received = now, 0, 0
}

// endTimeline ends a launch's part of the timeline.
func (c *caseRun) endTimeline() {
	if p := &c.period; p.sent+p.received > 0 || p.begun && len(c.timeline) == 0 {
		c.endPeriod(c.x.clock())
	}
	if p := &c.period; p.legs.any() {
		c.tell(result.Tick{TNS: p.start - c.start}, &p.legs)
	}
	c.period.begun = false
	c.legs.take(&c.period.legs)
}
