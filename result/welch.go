package result

import (
	"math"
	"slices"
)

// Moments are what Welch's test needs of a sample.
type Moments struct {
	N            int
	Mean, StdDev float64
}

// WelchTest is the outcome of Welch's two-sided t test.
type WelchTest struct{ T, DF, P float64 }

// Welch tests whether the means of a and b differ, their variances being
// unknown and unequal. T is above 0 where b's mean is the larger. ok is false
// where a side has fewer than two values. Welch, The Generalization of
// "Student's" Problem when Several Different Population Variances are Involved, 1947.
func Welch(a, b Moments) (w WelchTest, ok bool) {
	if a.N < 2 || b.N < 2 {
		return WelchTest{}, false
	}
	va, vb := a.errorSquared(), b.errorSquared()
	if va+vb == 0 {
		if a.Mean == b.Mean {
			return WelchTest{P: 1, DF: float64(a.N + b.N - 2)}, true
		}
		return WelchTest{T: math.Inf(int(math.Copysign(1, b.Mean-a.Mean))), DF: float64(a.N + b.N - 2)}, true
	}
	w.T = (b.Mean - a.Mean) / math.Sqrt(va+vb)
	w.DF = satterthwaite(va, vb, a.N, b.N)
	w.P = min(1, 2*StudentTTail(math.Abs(w.T), w.DF))
	return w, true
}

// errorSquared is the square of the standard error of the mean.
func (m Moments) errorSquared() float64 { return m.StdDev * m.StdDev / float64(m.N) }

// satterthwaite is the number of degrees of freedom of the sum of two variances
// of means. The shares keep the squares in range.
func satterthwaite(va, vb float64, na, nb int) float64 {
	a, b := va/(va+vb), vb/(va+vb)
	return 1 / (a*a/float64(na-1) + b*b/float64(nb-1))
}

// meanRatio is b's mean over a's, with its confidence interval by the delta
// method on the logarithm. Both means are above 0.
func meanRatio(a, b Moments, confidence float64) Interval {
	r := b.Mean / a.Mean
	if a.N < 2 || b.N < 2 {
		return Interval{r, 0, math.Inf(1)}
	}
	va, vb := a.errorSquared()/(a.Mean*a.Mean), b.errorSquared()/(b.Mean*b.Mean)
	if va+vb == 0 {
		return Interval{r, r, r}
	}
	t := StudentTQuantile((1+confidence)/2, satterthwaite(va, vb, a.N, b.N))
	width := math.Exp(t * math.Sqrt(va+vb))
	return Interval{r, r / width, r * width}
}

// Holm returns the P values ps adjusted for there being several: each may be
// compared with alpha by itself, and the chance of any false discovery stays
// below alpha. Holm, A Simple Sequentially Rejective Multiple Test Procedure, 1979.
func Holm(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case ps[a] < ps[b]:
			return -1
		case ps[a] > ps[b]:
			return 1
		}
		return 0
	})
	adjusted := make([]float64, len(ps))
	worst := 0.0
	for rank, i := range order {
		worst = max(worst, min(1, float64(len(ps)-rank)*ps[i]))
		adjusted[i] = worst
	}
	return adjusted
}
