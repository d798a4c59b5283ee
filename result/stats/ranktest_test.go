package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMannWhitneyTables checks the critical values of U that textbooks print for
// a two-sided test at 0.05: the largest U that is significant.
func TestMannWhitneyTables(t *testing.T) {
	for _, tt := range []struct{ m, n, critical int }{
		{3, 5, 0}, {4, 4, 0}, {5, 5, 2}, {5, 10, 8}, {7, 9, 12}, {8, 8, 13}, {10, 10, 23}, {12, 18, 61}, {15, 15, 64}, {20, 20, 127},
	} {
		d := new(RankTests).distribution(tt.m, tt.n)
		at, next := twoTails(d, tt.critical), twoTails(d, tt.critical+1)
		if at > 0.05 || next <= 0.05 {
			t.Errorf("%d and %d values: P(U=%d) = %.4f and P(U=%d) = %.4f are not on both sides of 0.05",
				tt.m, tt.n, tt.critical, at, tt.critical+1, next)
		}
		sum := 0.0
		for _, p := range d {
			sum += p
		}
		near(t, "the sum of all probabilities", sum, 1, 1e-12)
	}
}

// TestMannWhitneyKnown is the example of Hollander and Wolfe, Nonparametric
// Statistical Methods, 4.1: permeability constants of the human chorioamnion.
func TestMannWhitneyKnown(t *testing.T) {
	x := []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	y := []float64{1.15, 0.88, 0.90, 0.74, 1.21}
	r := MannWhitney(y, x)
	if r.U != 35 || !r.Exact {
		t.Errorf("U = %g, exact %t, want 35 exactly", r.U, r.Exact)
	}
	near(t, "P", r.P, 2*0.1272, 1e-4)
	near(t, "shift", new(RankTests).HodgesLehmann(y, x, 0.95).Estimate, 0.305, 1e-9)
}

// enumerated is the two-sided P, computed from all ways to choose the values of y.
func enumerated(x, y []float64) float64 {
	all := slices.Concat(x, y)
	u := func(mask uint) (u float64) {
		for i, a := range all {
			for j, b := range all {
				if mask>>i&1 == 0 && mask>>j&1 == 1 {
					switch {
					case b > a:
						u++
					case b == a:
						u += 0.5
					}
				}
			}
		}
		return u
	}
	is := u((1<<len(y) - 1) << len(x))
	low, high, total := 0, 0, 0
	for mask := uint(0); mask < 1<<len(all); mask++ {
		if bits.OnesCount(mask) != len(y) {
			continue
		}
		total++
		if v := u(mask); v <= is {
			low++
			if v == is {
				high++
			}
		} else {
			high++
		}
	}
	return min(1, 2*float64(min(low, high))/float64(total))
}

func TestMannWhitneyEnumerated(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		x, y := make([]float64, 1+rng.IntN(6)), make([]float64, 1+rng.IntN(6))
		values := 3 + rng.IntN(40) // few values: many ties
		for i := range x {
			x[i] = float64(rng.IntN(values))
		}
		for i := range y {
			y[i] = float64(rng.IntN(values)) + 1
		}
		near(t, "P", MannWhitney(x, y).P, enumerated(x, y), 1e-12)
	}
}

func TestMannWhitneyProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{5, 15, 50, 51, 200} {
		x, y, tied := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], y[i] = 100+rng.NormFloat64(), 100.5+rng.NormFloat64()
			tied[i] = math.Round(y[i]*2) / 2
		}
		a, b := MannWhitney(x, y), MannWhitney(y, x)
		near(t, "P of exchanged sides", a.P, b.P, 1e-12)
		near(t, "U of both sides", a.U+b.U, float64(n*n), 1e-9)
		if a.Exact != (n <= ExactLimit) {
			t.Errorf("n=%d: exact is %t", n, a.Exact)
		}
		if self := MannWhitney(tied, tied); self.P != 1 {
			t.Errorf("n=%d: a sample differs from itself with P %g", n, self.P)
		}
		_, ties := doubledRanks(x, tied)
		approx := normalRankP(MannWhitney(x, tied).U, n, n, ties)
		if exact := MannWhitney(x, tied).P; n >= 15 && math.Abs(exact-approx) > 0.01 {
			t.Errorf("n=%d: P exact %g, approximated %g", n, exact, approx)
		}
	}
	near(t, "the least P of 5 and 5", MannWhitney([]float64{1, 2, 3, 4, 5}, []float64{6, 7, 8, 9, 10}).LeastP, 2.0/252, 1e-15)
}

// TestShiftIntervalIsTheTest: a shift is inside the interval if and only if the test
// does not reject it.
func TestShiftIntervalIsTheTest(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 40 {
		x, y := make([]float64, 4+rng.IntN(12)), make([]float64, 4+rng.IntN(12))
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		for i := range y {
			y[i] = 0.7 + rng.NormFloat64()
		}
		shifted := func(d float64) []float64 {
			z := slices.Clone(y)
			for i := range z {
				z[i] -= d
			}
			return z
		}
		s := new(RankTests).HodgesLehmann(x, y, 0.95)
		const step = 1e-9
		if p := MannWhitney(x, shifted(s.Low+step)).P; p <= 0.05 {
			t.Errorf("just inside of %+v P is %g", s, p)
		}
		if p := MannWhitney(x, shifted(s.Low-step)).P; p > 0.05 {
			t.Errorf("just below %+v P is %g", s, p)
		}
		if p := MannWhitney(x, shifted(s.High+step)).P; p > 0.05 {
			t.Errorf("just above %+v P is %g", s, p)
		}
		if !(s.Low < s.Estimate && s.Estimate < s.High) {
			t.Errorf("the estimate is not in its interval: %+v", s)
		}
	}
	if s := new(RankTests).HodgesLehmann([]float64{1, 2}, []float64{3, 4}, 0.95); !math.IsInf(s.Low, -1) || !math.IsInf(s.High, 1) || s.Estimate != 2 {
		t.Errorf("two values a side give %+v, want 2 without ends", s)
	}
}

func TestShiftOfMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	x, y := make([]float64, 5000), make([]float64, 3000)
	for i := range x {
		x[i] = 100 + rng.NormFloat64()
	}
	for i := range y {
		y[i] = 101 + rng.NormFloat64()
	}
	s := new(RankTests).HodgesLehmann(x, y, 0.95)
	near(t, "shift", s.Estimate, 1, 0.1)
	if s.High-s.Low < 0.05 || s.High-s.Low > 0.2 || s.Low > 1 || s.High < 1 {
		t.Errorf("interval %+v, want about 0.09 wide around 1", s)
	}
}

// TestWelchSleep compares with R's t.test of Student's sleep data.
func TestWelchSleep(t *testing.T) {
	moments := func(xs ...float64) Moments { return Moments{len(xs), Mean(xs), *StdDev(xs)} }
	w, ok := Welch(moments(1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4), moments(0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0))
	if !ok {
		t.Fatal("no test")
	}
	near(t, "t", w.T, -1.8608, 5e-5)
	near(t, "df", w.DF, 17.776, 5e-4)
	near(t, "p", w.P, 0.07939, 5e-6)
	if _, ok := Welch(Moments{1, 5, 0}, Moments{9, 5, 1}); ok {
		t.Error("one value was tested")
	}
	if w, _ := Welch(Moments{5, 5, 0}, Moments{5, 5, 0}); w.P != 1 {
		t.Errorf("equal constants give P %g", w.P)
	}
	if w, _ := Welch(Moments{5, 5, 0}, Moments{5, 6, 0}); w.P != 0 {
		t.Errorf("unequal constants give P %g", w.P)
	}
}

// TestHolm is the usual textbook example: 0.01, 0.04, 0.03, 0.005.
func TestHolm(t *testing.T) {
	for i, want := range []float64{0.03, 0.06, 0.06, 0.02} {
		near(t, "adjusted P", Holm([]float64{0.01, 0.04, 0.03, 0.005})[i], want, 1e-15)
	}
	if got := Holm([]float64{0.9, 0.8}); got[0] != 1 || got[1] != 1 {
		t.Errorf("P values above 1: %v", got)
	}
	if len(Holm(nil)) != 0 {
		t.Error("no P value gives some")
	}
}
