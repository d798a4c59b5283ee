package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/result"
)

// comparisonTable is one row per cell. Times are medians over iterations, or means if
// a file has no medians.
func comparisonTable(c *result.Comparison) *table {
	t := &table{Rows: len(c.Cells)}
	if t.Rows == 0 {
		return t
	}
	t.addParams(cellCases(c))
	t.addAcross(c)
	t.addSizes(c)
	t.addSides(c)
	ratios := values(c.Cells, func(x *result.CellComparison) *float64 { return x.Ratio })
	t.number("Ratio", "Head / Base of time per request, below 1 is faster", format(ratios, 1, ratioDecimals, ""))
	t.number("Interval", fmt.Sprintf("%.4g%% confidence interval of Ratio", 100*(1-c.Alpha)), values(c.Cells, intervalText))
	t.addLatencyRatio(c, "P50 ratio", "p50")
	t.addLatencyRatio(c, "P99 ratio", "p99")
	t.number("p", "Chance of such a difference if both sides are equal, adjusted for the number of cells (Holm)",
		values(c.Cells, func(x *result.CellComparison) string { return pValue(x.PHolm) }))
	t.Columns = append(t.Columns, column{Name: "Verdict", Cells: values(c.Cells, verdictText),
		Legend: fmt.Sprintf("Slower and faster: significant and beyond %.3g%%; same: shown to be within it", 100*c.Threshold)})
	t.addDeliveryChange(c)
	return t
}

func (t *table) number(name, legend string, cells []string) {
	t.Columns = append(t.Columns, column{Name: name, Number: true, Cells: cells, Legend: legend})
}

// cellCases are the cells as cases that have only parameters.
func cellCases(c *result.Comparison) []result.Case {
	return values(c.Cells, func(x *result.CellComparison) result.Case { return result.Case{ID: x.ID, Params: x.Params} })
}

// addAcross names the values that are compared within one file.
func (t *table) addAcross(c *result.Comparison) {
	if c.Across != "" {
		t.Columns = append(t.Columns, column{Name: c.Across, Cells: values(c.Cells, func(x *result.CellComparison) string {
			return x.Base.Value + " -> " + x.Head.Value
		})})
	}
}

// addSizes shows how many iterations each side has, in the common line if it is the same
// in all rows.
func (t *table) addSizes(c *result.Comparison) {
	size := func(s result.SideStats) string {
		if s.N == 0 {
			return nA
		}
		return itoa(s.N)
	}
	cells := values(c.Cells, func(x *result.CellComparison) string { return size(x.Base) + "/" + size(x.Head) })
	if allEqual(cells) {
		t.Common = append(t.Common, result.Param{Key: "N", Value: cells[0]})
		return
	}
	t.number("N", "Iterations of Base/Head", cells)
}

func (t *table) addSides(c *result.Comparison) {
	// The ratio is that of medians, or of means if a side has no samples.
	what, of := "Median", func(s *result.SideStats) *float64 { return s.MedianNS }
	if slices.ContainsFunc(c.Cells, func(x result.CellComparison) bool { return x.Test == result.MethodWelch }) {
		what, of = "Mean", func(s *result.SideStats) *float64 { return s.MeanNS }
	}
	base := values(c.Cells, func(x *result.CellComparison) *float64 { return of(&x.Base) })
	head := values(c.Cells, func(x *result.CellComparison) *float64 { return of(&x.Head) })
	both := append(append([]*float64{}, base...), head...)
	unit := unitOf(both)
	decimals := precision(both, unit.NS)
	t.Columns = append(t.Columns, timeColumn("Base", base, unit, decimals, what+" over iterations of elapsed time / requests, before"),
		timeColumn("Head", head, unit, decimals, "... after"))
}

// addLatencyRatio adds the ratio of a percentile of end-to-end latency. There is
// no test: a histogram is one sample of its percentile.
func (t *table) addLatencyRatio(c *result.Comparison, name, quantile string) {
	vs := values(c.Cells, func(x *result.CellComparison) *float64 {
		for _, d := range x.Latency {
			if d.Leg == "end_to_end" && d.Quantile == quantile {
				return &d.Ratio
			}
		}
		return nil
	})
	t.addOptional(name, "Head / Base of that percentile of end-to-end latency; not tested", 1, vs, ratioDecimals)
}

func verdictText(x *result.CellComparison) string {
	s := string(x.Verdict)
	if len(x.Unstable) > 0 {
		s += ", unstable"
	}
	if x.Regression && x.Verdict != result.Slower {
		s += ", delivery worse"
	}
	return s
}

// addDeliveryChange adds a column if the delivery account of some cell changed.
func (t *table) addDeliveryChange(c *result.Comparison) {
	shown := false
	cells := values(c.Cells, func(x *result.CellComparison) string {
		var parts []string
		for _, d := range x.Delivery {
			parts = append(parts, fmt.Sprintf("%s %s -> %s", d.Name, result.FormatInt(d.Base), result.FormatInt(d.Head)))
		}
		shown = shown || len(parts) > 0
		return strings.Join(parts, ", ")
	})
	if shown {
		t.Columns = append(t.Columns, column{Name: "Delivery", Cells: cells, Legend: "What changed in the delivery account, base -> head"})
	}
}
