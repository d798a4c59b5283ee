package stats

import (
	"math"
	"slices"
)

// errorConfidence is the two-sided confidence level of MarginOfError.
const errorConfidence = 0.999

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

// StdDev is the sample standard deviation (divisor n-1) of xs, nil for fewer than
// two values.
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

// MarginOfError is half the width of the 99.9 % confidence interval of the mean
// of n values with the sample standard deviation sd: t(0.9995, n-1) * sd / sqrt(n),
// as in BenchmarkDotNet's Error column. It is nil for n < 2.
func MarginOfError(sd float64, n int) *float64 {
	if n < 2 {
		return nil
	}
	t := StudentTQuantile(1-(1-errorConfidence)/2, float64(n-1))
	e := t * sd / math.Sqrt(float64(n))
	return &e
}

// Quantile is the quantile p, in 0..1, of sorted (ascending, not empty). It
// interpolates between the order statistics around (n-1)p: definition 7 of
// Hyndman and Fan, Sample Quantiles in Statistical Packages, 1996.
func Quantile(sorted []float64, p float64) float64 {
	h := float64(len(sorted)-1) * min(max(p, 0), 1)
	i := int(h)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (h-float64(i))*(sorted[i+1]-sorted[i])
}

// Fences are Tukey's outlier fences and the quartiles that define them.
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

// Outliers splits sorted (ascending) at its Tukey fences into the values below
// the lower fence, those inside, and those above the upper one. The results are
// slices of sorted, not copies.
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
