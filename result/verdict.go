package result

import (
	"fmt"
	"slices"

	"github.com/mqttload/mqttload/result/stats"
)

// judge adjusts the P values of all cells for their number and sets the verdicts.
func (c *comparer) judge() {
	var ps []float64
	var at []int
	for i, cell := range c.out.Cells {
		if cell.P != nil {
			ps, at = append(ps, *cell.P), append(at, i)
		}
	}
	for k, p := range stats.Holm(ps) {
		cell := &c.out.Cells[at[k]]
		cell.PHolm, cell.Significant = &p, p < c.o.Alpha
		if c.out.SmallestP == nil || *cell.P < *c.out.SmallestP {
			smallest := *cell.P
			c.out.SmallestP = &smallest
		}
	}
	limit := 0.0
	if len(ps) > 0 {
		limit = c.o.Alpha / float64(len(ps))
		c.out.HolmLimit = &limit
	}
	for i := range c.out.Cells {
		cell := &c.out.Cells[i]
		cell.Verdict, cell.Reason = c.verdict(cell, limit)
		cell.discountGenerator()
		cell.Regression = cell.Verdict == Slower
		for _, d := range cell.Delivery {
			cell.Regression = cell.Regression || d.Regression
		}
	}
}

// verdict needs significance and an effect beyond the threshold to tell a
// difference, and an interval inside the threshold to tell that there is none.
// The threshold is the same factor both ways.
func (c *comparer) verdict(cell *CellComparison, limit float64) (Verdict, string) {
	up := 1 + c.o.Threshold
	if cell.P == nil || cell.Ratio == nil {
		return Inconclusive, "one side has no spread to test: run more iterations"
	}
	inside := cell.RatioLow != nil && cell.RatioHigh != nil && *cell.RatioLow > 1/up && *cell.RatioHigh < up
	switch {
	case cell.Significant && cell.overlap && (*cell.Ratio > up || *cell.Ratio < 1/up):
		return Inconclusive, "the launches of one side differ as much as the sides do: run more launches"
	case cell.Significant && *cell.Ratio > up:
		return Slower, ""
	case cell.Significant && *cell.Ratio < 1/up:
		return Faster, ""
	case inside && cell.Significant:
		return Same, fmt.Sprintf("a difference is measurable, but within %s", percent(c.o.Threshold))
	case inside:
		return Same, ""
	case cell.Significant:
		return Inconclusive, fmt.Sprintf("it differs by about %s, which may be within %s or not", change(*cell.Ratio), percent(c.o.Threshold))
	case cell.leastP >= limit && cell.leastP > 0:
		return Inconclusive, fmt.Sprintf("too few iterations: %d and %d cannot give a p below %.2g, which %d cells need: run more",
			cell.Base.N, cell.Head.N, limit, len(c.out.Cells))
	case len(cell.Unstable) > 0:
		return Inconclusive, "not significant, and unstable: " + cell.Unstable[0]
	}
	return Inconclusive, fmt.Sprintf("not significant, but the interval is wider than %s", percent(c.o.Threshold))
}

// launchesForTest is the fewest launches per side whose medians a rank test can call
// different: 2 of the 70 ways to draw 4 of 8.
const launchesForTest = 4

// launchesOverlap reports whether the medians of the launches do not tell the
// sides apart. Iterations of a launch share its luck (its connections, its place on
// the cores, its minute of the day), so many of them prove nothing if a few launches would
// contradict them. A single launch never overlaps.
func (c *comparer) launchesOverlap(base, head []float64) bool {
	if min(len(base), len(head)) < 2 {
		return false
	}
	if min(len(base), len(head)) >= launchesForTest {
		return stats.MannWhitney(base, head).P >= c.o.Alpha
	}
	return slices.Max(base) >= slices.Min(head) && slices.Max(head) >= slices.Min(base)
}

// percent prints a share: "5 %".
func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }

// change prints a ratio as a change: "+4.5 %".
func change(ratio float64) string { return fmt.Sprintf("%+.1f %%", 100*(ratio-1)) }
