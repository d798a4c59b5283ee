package main

import (
	"slices"

	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/result/stats"
)

// Verdicts on a figure.
const (
	verdictAim         = "aim"          // reaches the aim
	verdictHolds       = "holds"        // within the bound
	verdictMisses      = "misses"       // beyond the bound
	verdictNotMeasured = "not measured" // Reason says why
	verdictNoGoal      = "-"            // there is no goal
)

// figure is one row of the table. Value is in Unit: "ns", "bytes", "/s",
// "%" or "" for plain numbers. Ratio is Value over what Against names, taken
// round by round. The goal is for the ratio, or for the value if there is no ratio:
// at most Must, better Aim.
type figure struct {
	Name    string
	Params  []result.Param
	Unit    string
	Value   *spread
	Ratio   *spread
	Against string
	Must    *float64
	Aim     *float64
	Verdict string
	Reason  string
}

// spread is the distribution of a number over the rounds.
type spread struct {
	Median float64
	Min    float64
	Max    float64
}

// spreadOf is the spread of xs, or nil if xs is empty.
func spreadOf(xs []float64) *spread {
	if len(xs) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(xs))
	return &spread{Median: stats.Quantile(sorted, 0.5), Min: sorted[0], Max: sorted[len(sorted)-1]}
}

// ratios divides a by b element by element, up to the shorter length. It omits
// elements whose divisor is not positive.
func ratios(a, b []float64) (rs []float64) {
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			rs = append(rs, a[i]/b[i])
		}
	}
	return rs
}

// judge sets the verdict from the median, Must and Aim. A figure with a Reason was
// not measured.
func (f *figure) judge() {
	s := f.Value
	if f.Against != "" {
		s = f.Ratio
	}
	switch {
	case s == nil || f.Reason != "":
		f.Verdict = verdictNotMeasured
		if f.Reason == "" {
			f.Reason = "no round gave a number"
		}
	case f.Must == nil:
		f.Verdict = verdictNoGoal
	case f.Aim != nil && s.Median <= *f.Aim:
		f.Verdict = verdictAim
	case s.Median <= *f.Must:
		f.Verdict = verdictHolds
	default:
		f.Verdict = verdictMisses
	}
}
