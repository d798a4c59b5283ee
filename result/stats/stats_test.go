package stats

import (
	"bufio"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %.12g, want %.12g within %g", what, got, want, tolerance)
	}
}

func TestStudentTQuantile(t *testing.T) {
	// t(0.9995, n-1) by n, from printed tables of six decimals. The twelve digits for
	// n = 100 below are those of two independent libraries.
	for n, want := range map[int]float64{
		3: 31.599055, 5: 8.610302, 10: 4.780913, 15: 4.140454, 20: 3.883406, 30: 3.659405,
		50: 3.500443, 100: 3.391529, 150: 3.357020, 200: 3.340087, 1000: 3.300292,
	} {
		near(t, "t for n="+strconv.Itoa(n), StudentTQuantile(0.9995, float64(n-1)), want, 5e-7)
	}
	near(t, "t for n=100", StudentTQuantile(0.9995, 99), 3.391528833364, 1e-12)
}

// TestStudentTClosedForms compares with the distributions that have a formula:
// 1, 2 and 4 degrees of freedom, and the normal distribution in the limit.
func TestStudentTClosedForms(t *testing.T) {
	for _, p := range []float64{0.5001, 0.6, 0.75, 0.9, 0.975, 0.9995, 0.999999, 1e-4, 0.3} {
		cauchy := math.Tan(math.Pi * (p - 0.5))
		near(t, "df 1", StudentTQuantile(p, 1), cauchy, 1e-9*math.Abs(cauchy))
		two := (2*p - 1) * math.Sqrt(2/(4*p*(1-p)))
		near(t, "df 2", StudentTQuantile(p, 2), two, 1e-9*math.Abs(two))
		a := math.Sqrt(4 * p * (1 - p))
		four := math.Copysign(2*math.Sqrt(math.Cos(math.Acos(a)/3)/a-1), p-0.5)
		// The formula itself loses digits near the middle.
		near(t, "df 4", StudentTQuantile(p, 4), four, 1e-9*math.Abs(four)+1e-11)
		z := math.Sqrt2 * math.Erfinv(2*p-1)
		near(t, "df 1e12", StudentTQuantile(p, 1e12), z, 1e-9*math.Abs(z))
	}
}

func TestStudentTIsConsistent(t *testing.T) {
	for _, df := range []float64{1, 3, 9, 99, 999, 9999, normalDF - 1} {
		for _, p := range []float64{0.6, 0.975, 0.9995} {
			q := StudentTQuantile(p, df)
			near(t, "tail", StudentTTail(q, df), 1-p, 1e-9*(1-p))
			near(t, "symmetry", StudentTQuantile(1-p, df), -q, 1e-9*q)
		}
	}
	below, at := StudentTQuantile(0.9995, normalDF-1), StudentTQuantile(0.9995, normalDF)
	if !(below > at) || below-at > 1e-8 {
		t.Errorf("t is not smooth at %g degrees of freedom: %.12g, %.12g", normalDF, below, at)
	}
	for _, bad := range [][2]float64{{0, 5}, {1, 5}, {0.5, 0}, {math.NaN(), 5}, {0.9, math.NaN()}, {0.9, -1}} {
		if q := StudentTQuantile(bad[0], bad[1]); !math.IsNaN(q) {
			t.Errorf("StudentTQuantile(%g, %g) = %g, want NaN", bad[0], bad[1], q)
		}
	}
}

func TestErrorOverStdDev(t *testing.T) {
	for n, want := range map[int]float64{
		3: 18.243723, 5: 3.850644, 10: 1.511857, 15: 1.069061, 20: 0.868356, 30: 0.668113,
		50: 0.495037, 100: 0.339153, 150: 0.274100, 200: 0.236180, 1000: 0.104364,
	} {
		near(t, "error/stddev for n="+strconv.Itoa(n), *MarginOfError(1, n), want, 5e-7)
	}
	if MarginOfError(1, 1) != nil {
		t.Error("one value has a margin of error")
	}
}

// TestMonitoringSample is the sample of BenchmarkDotNet's IntroMonitoring page;
// the quartiles are those of definition 7, which its later versions use.
func TestMonitoringSample(t *testing.T) {
	xs := []float64{61.5526, 10.1417, 10.4829, 50.4109, 10.4214, 20.5561, 70.4732, 50.5817, 10.5590, 70.4963}
	near(t, "mean", Mean(xs), 36.5676, 5e-5)
	near(t, "stddev", *StdDev(xs), 26.4747, 5e-5)
	near(t, "error", *MarginOfError(*StdDev(xs), len(xs)), 40.0260, 5e-5)
	f := TukeyFences(slices.Sorted(slices.Values(xs)))
	near(t, "Q1", f.Q1, 10.5019, 5e-5)
	near(t, "median", f.Median, 35.4835, 5e-5)
	near(t, "Q3", f.Q3, 58.8099, 5e-5)
}

func TestQuantile(t *testing.T) {
	xs := []float64{1, 2, 4, 8}
	for p, want := range map[float64]float64{0: 1, 0.25: 1.75, 0.5: 3, 0.75: 5, 1: 8, -1: 1, 2: 8} {
		near(t, "quantile", Quantile(xs, p), want, 1e-12)
	}
	near(t, "quantile of one", Quantile([]float64{7}, 0.3), 7, 0)
}

func TestMValueKnownShapes(t *testing.T) {
	normal := func(mu float64, n int) (xs []float64) {
		for i := range n { // the exact quantiles of a normal distribution
			xs = append(xs, mu+math.Sqrt2*math.Erfinv(2*(float64(i)+0.5)/float64(n)-1))
		}
		return xs
	}
	for _, c := range []struct {
		name     string
		xs       []float64
		low, top float64
	}{
		{"none", nil, 0, 0},
		{"constant", []float64{5, 5, 5, 5}, 2, 2},
		{"normal", normal(100, 100), 2, 2},
		{"two equal modes", slices.Concat(normal(100, 50), normal(115, 50)), 3.8, 4},
		{"three equal modes", slices.Concat(normal(100, 500), normal(115, 500), normal(130, 500)), 5, 6},
	} {
		slices.Sort(c.xs)
		if m := MValue(c.xs); m < c.low || m > c.top {
			t.Errorf("%s: mValue = %g, want %g to %g", c.name, m, c.low, c.top)
		}
	}
}

// TestMValueFalseAlarms bounds the share of samples with one mode that exceed
// MValueSeveralModes.
func TestMValueFalseAlarms(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const trials = 500
	for _, n := range []int{15, 30, 100} {
		alarms := 0
		for range trials {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = 100 + 10*rng.NormFloat64()
			}
			slices.Sort(xs)
			if MValue(xs) > MValueSeveralModes {
				alarms++
			}
		}
		if alarms > trials/20 {
			t.Errorf("n=%d: %d of %d normal samples are called multimodal", n, alarms, trials)
		}
	}
}

type seedRow struct{ mean, err, sd, median, rps float64 } // μs and 1/s

func seedRows(t *testing.T, name string) (rows []seedRow) {
	t.Helper()
	f, err := os.Open("../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan() // the header
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 9 {
			t.Fatalf("%s: %d fields in %q, want 9", name, len(fields), lines.Text())
		}
		var v [5]float64
		for i, s := range fields[4:] {
			s = strings.ReplaceAll(strings.TrimSuffix(s, " μs"), ",", "")
			if v[i], err = strconv.ParseFloat(s, 64); err != nil {
				t.Fatal(err)
			}
		}
		rows = append(rows, seedRow{v[0], v[1], v[2], v[3], v[4]})
	}
	return rows
}

// TestPublishedTables checks the formulas on all 24 rows of two published tables of 100
// iterations each, within the rounding of the printed numbers.
func TestPublishedTables(t *testing.T) {
	for _, name := range []string{"table-1.tsv", "table-2.tsv"} {
		rows := seedRows(t, name)
		if len(rows) != 12 {
			t.Fatalf("%s: %d rows, want 12", name, len(rows))
		}
		for i, r := range rows {
			want := *MarginOfError(r.sd, 100)
			near(t, name+" error of row "+strconv.Itoa(i+1), r.err, want, 0.339*0.0005+0.00005)
			near(t, name+" mean of row "+strconv.Itoa(i+1), r.mean, 1e6/r.rps, 0.0005+1e-9)
		}
	}
	near(t, "error/stddev", *MarginOfError(1, 100), 0.3391528833, 5e-11)
}
