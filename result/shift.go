package result

import (
	"math"
	"slices"
)

// shiftLimit is the most values of a side that Hodges and Lehmann's estimator
// takes as they are: it needs all pairs.
const shiftLimit = 2000

// Interval is an estimate with the ends of its confidence interval; an end that
// the sample is too small for is infinite.
type Interval struct{ Estimate, Low, High float64 }

// HodgesLehmann estimates by how much y is shifted against x: the median of all
// differences y - x, with the confidence interval (0.95 for 95 %) that belongs
// to the Mann-Whitney test. Neither may be empty; above 2,000 values a side only
// evenly spaced order statistics are used. Hodges and Lehmann, Estimates of
// Location Based on Rank Tests, 1963; the interval as in Hollander and Wolfe,
// Nonparametric Statistical Methods, 4.3.
func HodgesLehmann(x, y []float64, confidence float64) Interval {
	return new(rankTables).shift(x, y, confidence)
}

func (t *rankTables) shift(x, y []float64, confidence float64) Interval {
	return t.pairs(x, y, confidence, func(x, y float64) float64 { return y - x })
}

// ratio is the shift of the logarithms, as a factor: the median of all y / x.
// Mann-Whitney gives the same P for both. All values are above 0.
func (t *rankTables) ratio(x, y []float64, confidence float64) Interval {
	i := t.pairs(x, y, confidence, func(x, y float64) float64 { return y / x })
	i.Low = max(i.Low, 0)
	return i
}

func (t *rankTables) pairs(x, y []float64, confidence float64, of func(x, y float64) float64) Interval {
	// How many pairs to cut at either end comes from the samples themselves;
	// thinned ones have fewer pairs, of which the same share is cut.
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
// largest k with 2 P(U < k) <= alpha; 0 where there is none.
func (t *rankTables) cut(x, y []float64, alpha float64) int {
	m, n := len(x), len(y)
	if m > ExactRankLimit || n > ExactRankLimit {
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
