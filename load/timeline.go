package load

import (
	"time"

	"github.com/mqttload/mqttload/result"
)

// tickPeriod is the least time between two points of a timeline: a second, less
// what windows of a second may miss.
const tickPeriod = 900 * time.Millisecond

// timeline is what the measured iterations of a case have sent and received,
// second by second, with the latencies.
type timeline struct {
	start int64 // of the case, on the clock
	ticks []result.Tick
	sums  latencies                     // of the ticks
	tell  func(result.Tick, *latencies) // called for every tick
	next  struct {                      // the open point: about a second, of one iteration or several
		begun          bool
		start          int64
		sent, received int64
		latencies      latencies
	}
}

// begin opens a point at now, unless one is open.
func (tl *timeline) begin(now int64) {
	if n := &tl.next; !n.begun {
		n.begun, n.start = true, now
	}
}

// restart makes the open point begin at now.
func (tl *timeline) restart(now int64) { tl.next.begun, tl.next.start = true, now }

// advance adds what has happened until now, and moves the latencies out of the
// shards.
func (tl *timeline) advance(now int64, d totals, shards []*shard) {
	tl.begin(now)
	n := &tl.next
	n.sent += d.sent
	n.received += d.received
	n.latencies.drain(shards)
	if now-n.start >= int64(tickPeriod) {
		tl.tick(now)
	}
}

// tick ends the open point.
func (tl *timeline) tick(now int64) {
	n := &tl.next
	if !n.begun {
		return
	}
	t := result.Tick{TNS: n.start - tl.start, Sent: n.sent, Received: n.received}
	if h := n.latencies.e2e.hist; h != nil && h.TotalCount() > 0 {
		p99 := min(h.ValueAtQuantile(99), result.MaxLatencyNS)
		t.P99NS = &p99
	}
	tl.ticks = append(tl.ticks, t)
	tl.tell(t, &n.latencies)
	tl.sums.moveFrom(&n.latencies)
	n.start, n.sent, n.received = now, 0, 0
}

// end ends a launch's part of the timeline.
func (tl *timeline) end(now int64) {
	n := &tl.next
	if n.sent+n.received > 0 || n.begun && len(tl.ticks) == 0 {
		tl.tick(now)
	}
	if n.latencies.any() {
		tl.tell(result.Tick{TNS: n.start - tl.start}, &n.latencies)
	}
	n.begun = false
	tl.sums.moveFrom(&n.latencies)
}

// totals are sums over all clients.
type totals struct{ sent, acked, received, requests, bytes int64 }

func (t totals) minus(o totals) totals {
	return totals{t.sent - o.sent, t.acked - o.acked, t.received - o.received, t.requests - o.requests, t.bytes - o.bytes}
}
