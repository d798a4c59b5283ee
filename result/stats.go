package result

import (
	"math"
	"slices"
)

// ErrorConfidence is the two-sided confidence level of the Error column.
const ErrorConfidence = 0.999

// Mean is the arithmetic mean of xs, 0 for none.
func Mean(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// StdDev is the sample standard deviation (divisor n-1) of xs, or nil for fewer
// than two values.
func StdDev(xs []float64) *float64 {
	if len(xs) < 2 {
		return nil
	}
	mean, sum := Mean(xs), 0.0
	for _, x := range xs {
		sum += (x - mean) * (x - mean)
	}
	sd := math.Sqrt(sum / float64(len(xs)-1))
	return &sd
}

// MarginOfError is half of the 99.9 % confidence interval of the mean of n
// values whose sample standard deviation is sd: t(0.9995, n-1) * sd / sqrt(n),
// as in BenchmarkDotNet's Error column; nil for n < 2.
func MarginOfError(sd float64, n int) *float64 {
	if n < 2 {
		return nil
	}
	t := StudentTQuantile(1-(1-ErrorConfidence)/2, float64(n-1))
	e := t * sd / math.Sqrt(float64(n))
	return &e
}

// Quantile is the quantile p in 0..1 of sorted (ascending, not empty) by
// Hyndman and Fan's definition 7: linear between the order statistics around
// (n-1)p. Sample Quantiles in Statistical Packages, 1996.
func Quantile(sorted []float64, p float64) float64 {
	h := float64(len(sorted)-1) * min(max(p, 0), 1)
	i := int(h)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (h-float64(i))*(sorted[i+1]-sorted[i])
}

// Fences are Tukey's outlier fences with the quartiles they come from.
type Fences struct {
	Lower, Upper   float64 // Q1 - 1.5 IQR and Q3 + 1.5 IQR
	Q1, Median, Q3 float64
}

// TukeyFences returns the fences of sorted (ascending, not empty).
func TukeyFences(sorted []float64) Fences {
	f := Fences{Q1: Quantile(sorted, 0.25), Median: Quantile(sorted, 0.5), Q3: Quantile(sorted, 0.75)}
	iqr := f.Q3 - f.Q1
	f.Lower, f.Upper = f.Q1-1.5*iqr, f.Q3+1.5*iqr
	return f
}

// Outliers splits sorted by its Tukey fences into the values below the lower
// fence, those inside, and those above the upper one. The parts alias sorted.
func Outliers(sorted []float64) (low, inside, high []float64) {
	if len(sorted) == 0 {
		return nil, nil, nil
	}
	f := TukeyFences(sorted)
	lo, _ := slices.BinarySearch(sorted, f.Lower)
	hi := lo
	for hi < len(sorted) && sorted[hi] <= f.Upper {
		hi++
	}
	return sorted[:lo], sorted[lo:hi], sorted[hi:]
}

// Samples returns elapsed nanoseconds per operation of the actual iterations,
// in the order they ran. An iteration in which no operation was completed, or
// no time passed, has no such value and is left out; see CodeZeroMeasurement.
func Samples(its []Iteration) []float64 {
	var xs []float64
	for _, it := range its {
		if it.Stage == StageActual && it.Operations > 0 && it.ElapsedNS > 0 {
			xs = append(xs, float64(it.ElapsedNS)/float64(it.Operations))
		}
	}
	return xs
}

// Summarize computes the summary of the actual iterations among its. The time
// columns are statistics over Samples; ReqPerSec is 1e9 / MeanNS. MessagesPerSec
// and BytesPerSec are totals over the total elapsed time of the actual
// iterations, so long iterations weigh more in them than in the mean, and with
// opsPerMessage 2 a message is two operations. What is undefined is nil.
func Summarize(its []Iteration, opsPerMessage int) Summary {
	xs := Samples(its)
	s := Summary{N: len(xs)}
	s.MessagesPerSec, s.BytesPerSec = throughput(its, opsPerMessage)
	s.DeliveriesPerSec = deliveries(its)
	if len(xs) == 0 {
		return s
	}
	mean := Mean(xs)
	s.MeanNS, s.StdDevNS = &mean, StdDev(xs)
	if s.StdDevNS != nil {
		s.ErrorNS = MarginOfError(*s.StdDevNS, len(xs))
	}
	slices.Sort(xs)
	median, rate := Quantile(xs, 0.5), 1e9/mean
	s.MedianNS, s.MinNS, s.MaxNS, s.ReqPerSec = &median, &xs[0], &xs[len(xs)-1], &rate
	return s
}

// throughput returns messages and payload bytes per second over all actual
// iterations, nil where no time passed.
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
