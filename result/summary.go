package result

import (
	"slices"

	"github.com/mqttload/mqttload/result/stats"
)

// samples returns elapsed nanoseconds per operation of the actual iterations,
// in the order they ran. An iteration in which no operation was completed, or
// no time passed, has no such value and is left out; see CodeZeroMeasurement.
func samples(its []Iteration) []float64 {
	var xs []float64
	for _, it := range its {
		if it.Stage == StageActual && it.Operations > 0 && it.ElapsedNS > 0 {
			xs = append(xs, float64(it.ElapsedNS)/float64(it.Operations))
		}
	}
	return xs
}

// Summarize computes the summary of the actual iterations among its. The time
// columns are statistics over samples; ReqPerSec is 1e9 / MeanNS. MessagesPerSec
// and BytesPerSec are totals over the total elapsed time of the actual
// iterations, so long iterations weigh more in them than in the mean, and with
// opsPerMessage 2 a message is two operations. Undefined values are nil.
func Summarize(its []Iteration, opsPerMessage int) Summary {
	s := summaryOf(samples(its))
	s.MessagesPerSec, s.BytesPerSec = throughput(its, opsPerMessage)
	s.DeliveriesPerSec = deliveries(its)
	return s
}

// summaryOf is the summary of samples in ns per operation, without throughput.
func summaryOf(samples []float64) Summary {
	s := Summary{N: len(samples)}
	if len(samples) == 0 {
		return s
	}
	mean := stats.Mean(samples)
	if s.StdDevNS = stats.StdDev(samples); s.StdDevNS != nil {
		s.ErrorNS = stats.MarginOfError(*s.StdDevNS, len(samples))
	}
	xs := slices.Sorted(slices.Values(samples))
	median, rate := stats.Quantile(xs, 0.5), 1e9/mean
	s.MeanNS, s.MedianNS, s.MinNS, s.MaxNS, s.ReqPerSec = &mean, &median, &xs[0], &xs[len(xs)-1], &rate
	return s
}

// throughput returns messages and payload bytes per second over all actual
// iterations, nil if no time passed.
func throughput(its []Iteration, opsPerMessage int) (messages, bytes *float64) {
	var ops, size, elapsed float64
	for _, it := range its {
		if it.Stage == StageActual {
			ops += float64(it.Operations)
			size += float64(it.Bytes)
			elapsed += float64(it.ElapsedNS)
		}
	}
	if elapsed <= 0 {
		return nil, nil
	}
	m, b := ops/float64(max(opsPerMessage, 1))*1e9/elapsed, size*1e9/elapsed
	return &m, &b
}

// deliveries returns deliveries per second over all actual iterations.
func deliveries(its []Iteration) *float64 {
	var n, elapsed float64
	for _, it := range its {
		if it.Stage == StageActual {
			n += float64(it.Received)
			elapsed += float64(it.ElapsedNS)
		}
	}
	if elapsed <= 0 {
		return nil
	}
	n *= 1e9 / elapsed
	return &n
}
