package stats

import (
	"math"
	"slices"
)

// Moments describe a sample by its size, mean and sample standard deviation: all
// that Welch's test needs.
type Moments struct {
	N            int
	Mean, StdDev float64
}

// WelchTest is the result of Welch's two-sided t test.
type WelchTest struct {
	T  float64 // difference of the means over its standard error
	DF float64 // degrees of freedom
	P  float64
}

// Welch tests whether the means of a and b differ, without assuming that their
// variances are equal. T is above 0 if b has the larger mean. ok is false if a
// side has fewer than two values. Welch, The Generalization of
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

// satterthwaite is the number of degrees of freedom of the sum of two squared
// standard errors. Their shares are squared, not they themselves, to stay in range.
func satterthwaite(va, vb float64, na, nb int) float64 {
	a, b := va/(va+vb), vb/(va+vb)
	return 1 / (a*a/float64(na-1) + b*b/float64(nb-1))
}

// MeanRatio is the mean of b over the mean of a, with a confidence interval (0.95
// for 95 %) by the delta method on the logarithm. Both means must be above 0.
func MeanRatio(a, b Moments, confidence float64) Interval {
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

// Holm adjusts the P values ps, in their order, for multiple testing. Compare each
// adjusted value with alpha: the chance of even one false discovery then stays
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
