package stats

import (
	"math"
	"slices"
)

// shiftLimit is the largest sample that pairs uses in full: it needs memory for
// all pairs of values.
const shiftLimit = 2000

// Interval is an estimate with the ends of its confidence interval. An end is
// infinite if the samples are too small to bound it.
type Interval struct{ Estimate, Low, High float64 }

// HodgesLehmann estimates the shift from x to y: the median of all differences
// y - x. Its confidence interval (0.95 for 95 %) belongs to the Mann-Whitney test:
// where that test is exact and there are no ties, the interval excludes 0 if and
// only if the test is significant. Neither sample may be empty; of more than 2,000
// values a side only evenly spaced order statistics are used. Hodges and Lehmann,
// Estimates of Location Based on Rank Tests, 1963; the interval as in Hollander and
// Wolfe, Nonparametric Statistical Methods, 4.3.
func (t *RankTests) HodgesLehmann(x, y []float64, confidence float64) Interval {
	return t.pairs(x, y, confidence, func(x, y float64) float64 { return y - x })
}

// Ratio estimates the factor from x to y: the median of all y / x, with a
// confidence interval as in HodgesLehmann. It is the shift of the logarithms, so
// the Mann-Whitney test of the same samples belongs to it as well. All values must
// be above 0.
func (t *RankTests) Ratio(x, y []float64, confidence float64) Interval {
	i := t.pairs(x, y, confidence, func(x, y float64) float64 { return y / x })
	i.Low = max(i.Low, 0)
	return i
}

// pairs is the median of what of returns for all pairs, with its confidence
// interval.
func (t *RankTests) pairs(x, y []float64, confidence float64, of func(x, y float64) float64) Interval {
	// The full samples tell how many pairs to cut at either end. Thinned samples
	// have fewer pairs: the same share of them is cut.
	cut := t.cut(x, y, 1-confidence)
	share := float64(cut) / (float64(len(x)) * float64(len(y)))
	thinX, thinY := thinned(x), thinned(y)
	d := make([]float64, 0, len(thinX)*len(thinY))
	for _, a := range thinX {
		for _, b := range thinY {
			d = append(d, of(a, b))
		}
	}
	slices.Sort(d)
	i := Interval{Estimate: Quantile(d, 0.5), Low: math.Inf(-1), High: math.Inf(1)}
	if len(d) < len(x)*len(y) {
		cut = int(share * float64(len(d)))
	}
	if cut > 0 {
		i.Low, i.High = d[cut-1], d[len(d)-cut]
	}
	return i
}

// cut is the rank, from either end, of the pair at which the interval ends: the
// largest k with 2 P(U < k) <= alpha. It is 0 if the samples are too small.
func (t *RankTests) cut(x, y []float64, alpha float64) int {
	m, n := len(x), len(y)
	if m > ExactLimit || n > ExactLimit {
		_, ties := doubledRanks(x, y)
		z := math.Sqrt2 * math.Erfcinv(alpha)
		return max(0, int(math.Floor(float64(m)*float64(n)/2-z*rankSD(m, n, ties))))
	}
	tail := 0.0
	for k, p := range t.distribution(m, n) {
		tail += p
		if 2*tail > alpha {
			return k
		}
	}
	return 0
}

// thinned returns xs, or shiftLimit evenly spaced order statistics of it.
func thinned(xs []float64) []float64 {
	if len(xs) <= shiftLimit {
		return xs
	}
	sorted := slices.Sorted(slices.Values(xs))
	thin := make([]float64, shiftLimit)
	for i := range thin {
		thin[i] = Quantile(sorted, (float64(i)+0.5)/shiftLimit)
	}
	return thin
}
