package result

import (
	"slices"

	"github.com/mqttload/mqttload/result/stats"
)

// Calibration is what `calibrate` has found beside its cases: the tool's cost
// against the least that the same bytes cost here, and whether it knows known
// answers.
type Calibration struct {
	Rounds int `json:"rounds"`
	// LoadAverage is that of the system over the minute before, nil where it is
	// not known: on a busy machine ceilings come out too low.
	LoadAverage *float64 `json:"load_average"`
	Figures     []Figure `json:"figures"`
	Answers     []Answer `json:"known_answers"`
}

// Verdicts on a figure.
const (
	FigureAim         = "aim"          // inside of what was aimed at
	FigureHolds       = "holds"        // inside of what must be
	FigureMisses      = "misses"       // outside
	FigureNotMeasured = "not measured" // Reason says why
	FigureNoGoal      = "-"            // nothing was asked of it
)

// Figure is one row of a calibration. Value is in Unit: "ns", "bytes", "/s",
// "%" or "" for plain numbers. Ratio is Value over what Against names, taken
// round by round. The goal is for the ratio where there is one, else for the
// value: at most Must, better Aim.
type Figure struct {
	Name    string   `json:"name"`
	Params  []Param  `json:"params"`
	Unit    string   `json:"unit"`
	Value   *Spread  `json:"value"`
	Ratio   *Spread  `json:"ratio"`
	Against string   `json:"against"`
	Must    *float64 `json:"must"`
	Aim     *float64 `json:"aim"`
	Verdict string   `json:"verdict"`
	Reason  string   `json:"reason"`
}

// Spread is a number over rounds.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Answer is one known answer: what a measurement of something known has to
// say, and what it said.
type Answer struct {
	Name     string `json:"name"`
	Expected string `json:"expected"`
	Seen     string `json:"seen"`
	Passed   bool   `json:"passed"`
}

// SpreadOf is the spread of xs, nil for none.
func SpreadOf(xs []float64) *Spread {
	if len(xs) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(xs))
	return &Spread{Median: stats.Quantile(sorted, 0.5), Min: sorted[0], Max: sorted[len(sorted)-1]}
}

// Ratios divides a by b element by element, as far as both go; elements whose
// divisor is not positive are left out.
func Ratios(a, b []float64) (rs []float64) {
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			rs = append(rs, a[i]/b[i])
		}
	}
	return rs
}

// Judge sets the verdict from the median, must and aim. A figure with a reason
// was not measured.
func (f *Figure) Judge() {
	s := f.Value
	if f.Against != "" {
		s = f.Ratio
	}
	switch {
	case s == nil || f.Reason != "":
		f.Verdict = FigureNotMeasured
		if f.Reason == "" {
			f.Reason = "no round gave a number"
		}
	case f.Must == nil:
		f.Verdict = FigureNoGoal
	case f.Aim != nil && s.Median <= *f.Aim:
		f.Verdict = FigureAim
	case s.Median <= *f.Must:
		f.Verdict = FigureHolds
	default:
		f.Verdict = FigureMisses
	}
}

// Count is how many figures have the verdict.
func (c *Calibration) Count(verdict string) (n int) {
	for _, f := range c.Figures {
		if f.Verdict == verdict {
			n++
		}
	}
	return n
}

// Wrong are the known answers that were not given.
func (c *Calibration) Wrong() (list []Answer) {
	for _, a := range c.Answers {
		if !a.Passed {
			list = append(list, a)
		}
	}
	return list
}
