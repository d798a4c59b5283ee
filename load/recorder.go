package load

import (
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/mqttload/mqttload/result"
)

// shard holds the histograms of some connections. A connection locks it once
// per read batch; the lock also guards the ledgers of its connections.
type shard struct {
	mu     sync.Mutex
	e2e    runLength
	ack    runLength
	pubrec runLength
	// Of open loops.
	service runLength
	lag     runLength
}

// latency is one kind of latency: a histogram, and how many values were out of
// its range and count at its edge.
type latency struct {
	hist    *hdrhistogram.Histogram
	clamped int64
}

// record counts v, in nanoseconds, n times. A time too short for the clock
// counts as 1 ns.
func (l *latency) record(v, n int64) {
	if l.hist == nil {
		l.hist = result.NewHDR()
	}
	if result.Record(l.hist, max(v, 1), n) {
		l.clamped += n
	}
}

// moveFrom moves the values of src into l. All histograms have one geometry, so
// none is dropped.
func (l *latency) moveFrom(src *latency) {
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

func (l *latency) result() *result.Histogram {
	h := result.NewHistogram(l.hist)
	if h != nil {
		h.Clamped = l.clamped
	}
	return h
}

// runLength records into a latency. Messages that were sent in one batch and
// came in one read have the same latency, so it records a run of equal values
// at once.
type runLength struct {
	latency
	value int64
	n     int64
	sum   latencySum // of the runs that have ended, less what drainSum returned
}

// latencySum is a number of latencies and their sum in ns: all that is kept for
// one connection.
type latencySum struct{ n, ns int64 }

// drainSum returns what was added since its last call. It does not end a run.
func (r *runLength) drainSum() latencySum {
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

// latencies are those of messages.
type latencies struct{ e2e, service, lag, ack, pubrec latency }

// drain moves the latencies of the shards into l.
func (l *latencies) drain(shards []*shard) {
	for _, s := range shards {
		s.mu.Lock()
		s.flush()
		l.e2e.moveFrom(&s.e2e.latency)
		l.ack.moveFrom(&s.ack.latency)
		l.pubrec.moveFrom(&s.pubrec.latency)
		l.service.moveFrom(&s.service.latency)
		l.lag.moveFrom(&s.lag.latency)
		s.mu.Unlock()
	}
}

// moveFrom moves the latencies of src into l.
func (l *latencies) moveFrom(src *latencies) {
	l.e2e.moveFrom(&src.e2e)
	l.ack.moveFrom(&src.ack)
	l.pubrec.moveFrom(&src.pubrec)
	l.service.moveFrom(&src.service)
	l.lag.moveFrom(&src.lag)
}

// any reports whether any latency is recorded.
func (l *latencies) any() bool {
	for _, one := range []*latency{&l.e2e, &l.service, &l.lag, &l.ack, &l.pubrec} {
		if one.hist != nil && one.hist.TotalCount() > 0 {
			return true
		}
	}
	return false
}

func (l *latencies) latency() result.Latency {
	return result.Latency{
		EndToEnd: l.e2e.result(), Service: l.service.result(), SendLag: l.lag.result(), Ack: l.ack.result(), Pubrec: l.pubrec.result(),
	}
}
