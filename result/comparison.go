package result

import (
	"fmt"
	"strings"
	"time"
)

// Verdict is the outcome of comparing one cell.
type Verdict string

// Verdicts. Same needs proof: the confidence interval of the ratio lies within the
// threshold. A cell that is shown neither to differ nor to be the same is inconclusive.
const (
	Faster       Verdict = "faster"
	Slower       Verdict = "slower"
	Same         Verdict = "same"
	Inconclusive Verdict = "inconclusive"
)

// Tests that a verdict may be based on.
const (
	MethodMannWhitney = "Mann-Whitney U"
	MethodWelch       = "Welch's t" // if a side has no samples
)

// Comparison is the outcome of Compare. Ratios are head over base of time per
// operation: below 1 is faster.
type Comparison struct {
	Base      []ComparedFile   `json:"base"`
	Head      []ComparedFile   `json:"head"`
	Across    string           `json:"across,omitempty"` // the parameter compared within the files
	Threshold float64          `json:"threshold"`        // 0.05 for 5 %
	Alpha     float64          `json:"alpha"`
	Cells     []CellComparison `json:"cells"`
	Missing   []MissingCell    `json:"missing"`
	Warnings  []Warning        `json:"warnings"`
	// Allowed are the differences between the runs that the options tolerate.
	Allowed []Difference `json:"allowed"`
	// GeoMeanMedian is the geometric mean of the ratios of medians, GeoMeanMean of
	// means, GeoMeanSteady of means without the unstable cells; null for no cell.
	GeoMeanMedian *float64 `json:"geomean_median"`
	GeoMeanMean   *float64 `json:"geomean_mean"`
	GeoMeanSteady *float64 `json:"geomean_steady"`
	// SmallestP is the least P of all cells, HolmLimit the bound below which
	// it is significant: Alpha over the number of tests. Null if nothing was tested.
	SmallestP *float64 `json:"smallest_p"`
	HolmLimit *float64 `json:"holm_limit"`
}

// ComparedFile is one file of a comparison.
type ComparedFile struct {
	Source  string    `json:"source"`
	Format  string    `json:"format"`
	RunID   string    `json:"run_id"`
	Started time.Time `json:"started,omitzero"`
}

// CellComparison compares one cell. A value that does not exist is null.
type CellComparison struct {
	ID     string    `json:"id"` // of the base
	Params []Param   `json:"params"`
	Base   SideStats `json:"base"`
	Head   SideStats `json:"head"`
	// Ratio is the median of all quotients of head and base samples, or of the
	// means if a side has no samples, with its confidence interval at 1 - alpha.
	Ratio      *float64 `json:"ratio"`
	RatioLow   *float64 `json:"ratio_low"`
	RatioHigh  *float64 `json:"ratio_high"`
	MedianOver *float64 `json:"median_ratio"` // head's median over base's
	MeanOver   *float64 `json:"mean_ratio"`
	// ShiftNS is Hodges and Lehmann's estimate of head - base, with its interval.
	ShiftNS     *float64 `json:"shift_ns"`
	ShiftLowNS  *float64 `json:"shift_low_ns"`
	ShiftHighNS *float64 `json:"shift_high_ns"`

	Test        string           `json:"test"`
	P           *float64         `json:"p"`
	PHolm       *float64         `json:"p_holm"` // adjusted for all cells
	Significant bool             `json:"significant"`
	Verdict     Verdict          `json:"verdict"`
	Reason      string           `json:"reason"` // why it is inconclusive, or the same
	Unstable    []string         `json:"unstable"`
	Latency     []LatencyDelta   `json:"latency"`
	Delivery    []DeliveryChange `json:"delivery"`
	// Regression is set if the head is slower, or its delivery is worse.
	Regression bool `json:"regression"`

	// GeneratorLimited says, by side, how the load generator was the limit: the target
	// may be faster than measured.
	GeneratorLimited []string `json:"generator_limited,omitempty"`

	leastP  float64 // the smallest P that so many samples can give; 0 if unknown
	overlap bool    // the launches differ among themselves as much as the sides do
	// baseBound and headBound are set if the load generator was the limit.
	baseBound, headBound bool
}

// SideStats are the numbers of one side of a cell.
type SideStats struct {
	Value    string   `json:"value,omitempty"` // of the parameter compared across
	N        int      `json:"n"`               // 0 if unknown
	Launches int      `json:"launches"`
	MeanNS   *float64 `json:"mean_ns"`
	StdDevNS *float64 `json:"stddev_ns"`
	MedianNS *float64 `json:"median_ns"`
	Req      *float64 `json:"req_per_sec"`
}

// LatencyDelta is one percentile of one latency histogram on both sides.
type LatencyDelta struct {
	Leg      string  `json:"leg"`      // "end_to_end"
	Quantile string  `json:"quantile"` // "p99"
	BaseNS   int64   `json:"base_ns"`
	HeadNS   int64   `json:"head_ns"`
	Ratio    float64 `json:"ratio"`
}

// DeliveryChange is a count of the delivery account that changed.
type DeliveryChange struct {
	Name       string `json:"name"` // "lost"
	Base       int64  `json:"base"`
	BaseOf     int64  `json:"base_of"` // the total that Base is a part of
	Head       int64  `json:"head"`
	HeadOf     int64  `json:"head_of"`
	Regression bool   `json:"regression"`
	Message    string `json:"message"`
}

// MissingCell is a cell that one side does not have or did not measure, or for which
// only the other side has a delivery account.
type MissingCell struct {
	ID     string `json:"id"`
	Side   string `json:"side"` // where it is missing: "base" or "head"
	Reason string `json:"reason"`
}

// Regressions counts the cells with a regression.
func (c *Comparison) Regressions() int {
	return c.count(func(x *CellComparison) bool { return x.Regression })
}

// Verdicts counts the cells with verdict v.
func (c *Comparison) Verdicts(v Verdict) int {
	return c.count(func(x *CellComparison) bool { return x.Verdict == v })
}

// UnstableCells counts the cells whose numbers depend on a few iterations.
func (c *Comparison) UnstableCells() int {
	return c.count(func(x *CellComparison) bool { return len(x.Unstable) > 0 })
}

// Complete reports whether every cell of either side has a complete counterpart, and
// there is at least one. An incomplete comparison never passes.
func (c *Comparison) Complete() bool { return len(c.Cells) > 0 && len(c.Missing) == 0 }

// Sentence is the outcome in one line: "no significant change in any of 12 cells
// (smallest p 0.00478, limit 0.00417); 1 unstable: ...; geometric mean of the
// ratios of medians 1.005".
func (c *Comparison) Sentence() string {
	if len(c.Cells) == 0 {
		return "nothing was compared: no cell has a counterpart"
	}
	var parts []string
	for _, v := range []Verdict{Slower, Faster, Same, Inconclusive} {
		if n := c.Verdicts(v); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	changed := c.count(func(x *CellComparison) bool { return x.Significant })
	head := fmt.Sprintf("significant change in %d of %d cells", changed, len(c.Cells))
	if changed == 0 {
		head = fmt.Sprintf("no significant change in any of %d cells", len(c.Cells))
	}
	if c.SmallestP != nil {
		head += fmt.Sprintf(" (smallest p %.3g, limit %.3g)", *c.SmallestP, *c.HolmLimit)
	}
	out := []string{head, strings.Join(parts, ", ")}
	if n := c.count(func(x *CellComparison) bool { return x.Regression && x.Verdict != Slower }); n > 0 {
		out = append(out, fmt.Sprintf("delivery is worse in %d", n))
	}
	if n := c.UnstableCells(); n > 0 {
		out = append(out, fmt.Sprintf("%d unstable", n))
	}
	if n := len(c.Missing); n > 0 {
		out = append(out, fmt.Sprintf("%d missing", n))
	}
	if c.GeoMeanMedian != nil {
		out = append(out, fmt.Sprintf("geometric mean of the ratios of medians %.3f", *c.GeoMeanMedian))
	}
	return strings.Join(out, "; ")
}

func (c *Comparison) count(is func(*CellComparison) bool) int {
	n := 0
	for i := range c.Cells {
		if is(&c.Cells[i]) {
			n++
		}
	}
	return n
}
