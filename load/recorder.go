package load

import (
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/mqttload/mqttload/result"
)

// shard holds the histograms of some connections. It is locked once per read
// batch by the connection whose batch it is; the lock also guards the ledgers
// of its connections.
type shard struct {
	mu     sync.Mutex
	e2e    runLength
	ack    runLength
	pubrec runLength
	// Of open loops.
	service runLength
	lag     runLength
}

// leg is one kind of latency: a histogram, and how many of its values were
// outside of its range and stand at the edge.
type leg struct {
	hist    *hdrhistogram.Histogram
	clamped int64
}

// record counts v, in nanoseconds, n times. What takes less than the clock can
// tell counts as 1 ns.
func (l *leg) record(v, n int64) {
	if l.hist == nil {
		l.hist = result.NewHDR()
	}
	if result.Record(l.hist, max(v, 1), n) {
		l.clamped += n
	}
}

// take moves what src holds into l. The geometry is one everywhere, so nothing
// can be dropped.
func (l *leg) take(src *leg) {
	if src.hist == nil || src.hist.TotalCount() == 0 {
		return
	}
	if l.hist == nil {
		l.hist = result.NewHDR()
	}
	l.hist.Merge(src.hist)
	l.clamped += src.clamped
	src.hist.Reset()
	src.clamped = 0
}

func (l *leg) result() *result.Histogram {
	h := result.NewHistogram(l.hist)
	if h != nil {
		h.Clamped = l.clamped
	}
	return h
}

// runLength records latencies into a leg. Messages that were sent in one batch
// and came in one read have the same latency, so that runs of equal values are
// recorded as one.
type runLength struct {
	leg
	value int64
	n     int64
	sum   latencySum // of the runs that have ended, less what was taken
}

// latencySum is a number of latencies and what they come to, in ns: all that is
// kept of one connection's.
type latencySum struct{ n, ns int64 }

// takeSum returns what was added since it was last called. It ends no run.
func (r *runLength) takeSum() latencySum {
	t := latencySum{r.sum.n + r.n, r.sum.ns + r.n*r.value}
	r.sum = latencySum{-r.n, -r.n * r.value}
	return t
}

func (r *runLength) add(v int64) {
	if v == r.value {
		r.n++
		return
	}
	r.flush()
	r.value, r.n = v, 1
}

func (r *runLength) flush() {
	if r.n > 0 {
		r.record(r.value, r.n)
		r.sum.n += r.n
		r.sum.ns += r.n * r.value
		r.n = 0
	}
}

// flush ends a batch. The lock is held.
func (s *shard) flush() {
	s.e2e.flush()
	s.ack.flush()
	s.pubrec.flush()
	s.service.flush()
	s.lag.flush()
}

// legs are the latencies of messages.
type legs struct{ e2e, service, lag, ack, pubrec leg }

// drain moves what the shards hold into l.
func (l *legs) drain(shards []*shard) {
	for _, s := range shards {
		s.mu.Lock()
		s.flush()
		l.e2e.take(&s.e2e.leg)
		l.ack.take(&s.ack.leg)
		l.pubrec.take(&s.pubrec.leg)
		l.service.take(&s.service.leg)
		l.lag.take(&s.lag.leg)
		s.mu.Unlock()
	}
}

// take moves what src holds of messages into l.
func (l *legs) take(src *legs) {
	l.e2e.take(&src.e2e)
	l.ack.take(&src.ack)
	l.pubrec.take(&src.pubrec)
	l.service.take(&src.service)
	l.lag.take(&src.lag)
}

// any reports whether any latency of a message is recorded.
func (l *legs) any() bool {
	for _, one := range []*leg{&l.e2e, &l.service, &l.lag, &l.ack, &l.pubrec} {
		if one.hist != nil && one.hist.TotalCount() > 0 {
			return true
		}
	}
	return false
}

func (l *legs) latency() result.Latency {
	return result.Latency{
		EndToEnd: l.e2e.result(), Service: l.service.result(), SendLag: l.lag.result(), Ack: l.ack.result(), Pubrec: l.pubrec.result(),
	}
}
