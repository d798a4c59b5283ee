package result

import (
	"fmt"
	"math"
	"slices"
)

// Level says how much a finding weighs.
type Level string

// Levels. A row with a failure states numbers that contradict each other; a
// warning is about numbers that are correct and misleading; a note is about form.
const (
	LevelFail Level = "fail"
	LevelWarn Level = "warning"
	LevelNote Level = "note"
)

// Finding is one thing that Audit found. Case is "" if it is about
// the whole file.
type Finding struct {
	Level   Level  `json:"level"`
	Code    string `json:"code"`
	Case    string `json:"case"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// Audit checks a file against itself. Of a table it recomputes n, Req/sec and the
// number of digits, and it looks for short iterations and for stalls that a mean
// hides. Of a report it recomputes every number that follows from iterations,
// counts and histograms.
func Audit(in *Input) []Finding {
	a := &auditor{in: in}
	if in.Report != nil {
		a.report(in.Report)
		return a.found
	}
	usual := in.usualN()
	for i := range in.Cells {
		a.cell(&in.Cells[i], usual)
	}
	a.precision()
	return a.found
}

// Passed counts the rows of in without a failure among the findings, and all rows.
func Passed(in *Input, findings []Finding) (passed, rows int) {
	failed := map[string]bool{}
	for _, f := range findings {
		if f.Level == LevelFail {
			failed[f.Case] = true
		}
	}
	for i := range in.Cells {
		if !failed[in.Cells[i].ID] {
			passed++
		}
	}
	return passed, len(in.Cells)
}

type auditor struct {
	in    *Input
	found []Finding
}

func (a *auditor) add(l Level, code, id, hint, format string, args ...any) {
	a.found = append(a.found, Finding{l, code, id, fmt.Sprintf(format, args...), hint})
}

func (a *auditor) cell(c *Cell, usual int) {
	if !c.measured() {
		a.add(LevelWarn, CodeZeroMeasurement, c.ID, "find out why it failed", "nothing was measured")
		return
	}
	if c.Stated != nil {
		a.restated(c.ID, *c.Stated, c.Summary)
	} else {
		a.count(c, usual)
	}
	a.rate(c)
	a.iterationTime(c)
	a.stall(c)
}

// count checks n, which follows from Error and StdDev.
func (a *auditor) count(c *Cell, usual int) {
	n := c.impliedN()
	ratio := 0.0
	if n.known() {
		ratio = *c.Summary.ErrorNS / *c.Summary.StdDevNS
	}
	switch {
	case !n.known():
	case n.Low > n.High:
		a.add(LevelFail, CodeErrorRatio, c.ID, "one of the two was changed, or is of other iterations",
			"Error is %.6f of StdDev, which no number of iterations gives at 99.9 %% confidence", ratio)
	case a.in.StatedN > 0 && !a.in.statedHolds(n):
		a.add(LevelFail, CodeNDiffers, c.ID, "the row comes from another run than its neighbours",
			"Error is %.6f of StdDev, so n = %d, but the header states %d", ratio, n.Best, a.in.StatedN)
	case a.in.StatedN == 0 && !a.in.VariableN && !n.holds(usual) && a.in.mostRest(usual):
		a.add(LevelWarn, CodeNDiffers, c.ID, "the row may come from another run than its neighbours",
			"Error is %.6f of StdDev, so n = %d, but most rows rest on %d", ratio, n.Best, usual)
	}
}

// rate checks that Req/sec is 1 over Mean, as far as both were rounded.
func (a *auditor) rate(c *Cell) {
	mean, ok := c.Printed["Mean"]
	rate, has := c.Printed["Req/sec"]
	if !has {
		rate, has = c.Printed["Op/s"]
	}
	if !ok || !has || mean.Value <= 0 {
		return
	}
	low, high := 1e9/(mean.Value+mean.Half)-rate.Half, math.Inf(1)
	if mean.Value > mean.Half {
		high = 1e9/(mean.Value-mean.Half) + rate.Half
	}
	const lastBits = 1e-12
	if rate.Value < low*(1-lastBits) || rate.Value > high*(1+lastBits) {
		a.add(LevelFail, CodeReqPerSec, c.ID, "one of the two was changed, or means something else",
			"Req/sec is %s, but a Mean of %s gives %s to %s", rate.Text, mean.Text, FormatFloat(low, rate.Decimals), FormatFloat(high, rate.Decimals))
	}
}

func (a *auditor) iterationTime(c *Cell) {
	ns := c.IterationNS
	if ns == nil && a.in.OperationsPerIteration > 0 && c.Summary.MeanNS != nil {
		total := *c.Summary.MeanNS * float64(a.in.OperationsPerIteration)
		ns = &total
	}
	if ns != nil && *ns < minIterationNS {
		a.add(LevelWarn, CodeMinIterationTime, c.ID, "more messages per iteration give steadier numbers",
			"the mean time of an iteration is %s, below %s", FormatNS(*ns), FormatNS(minIterationNS))
	}
}

// stall names stalled iterations: those that the samples show, or those without which
// Mean, StdDev and Median could not have these values.
func (a *auditor) stall(c *Cell) {
	if c.Stalled != nil {
		a.add(LevelWarn, c.Stalled.Code, c.ID, c.Stalled.Hint, "%s", c.Stalled.Message)
		return
	}
	s := c.Summary
	if s.StdDevNS == nil || s.MeanNS == nil || *s.StdDevNS <= unstableCV**s.MeanNS {
		return
	}
	if s.MedianNS != nil && len(c.Samples) == 0 {
		if h, ok := hiddenStall(s.N, *s.MeanNS, *s.StdDevNS, *s.MedianNS); ok {
			a.add(LevelWarn, CodeStalled, c.ID, "a stall is a lost packet, a retry timer or a pause of the host: read the Median", "%s",
				hiddenStallMessage(h, s.N, *s.MeanNS, a.in.OperationsPerIteration))
			return
		}
	}
	a.add(LevelWarn, CodeUnstable, c.ID, "a few iterations dominate the Mean: read the Median",
		"StdDev is %.0f %% of Mean", 100**s.StdDevNS / *s.MeanNS)
}

func hiddenStallMessage(h stall, n int, mean float64, operations int64) string {
	what := "1 iteration"
	if h.Count > 1 {
		what = fmt.Sprintf("%d iterations", h.Count)
	}
	long := FormatNS(h.OpNS) + " per operation"
	if operations > 0 {
		long = FormatNS(h.OpNS * float64(operations))
	}
	return fmt.Sprintf("Mean, StdDev and Median fit only if %s of %d stalled, for about %s: the Mean is %s, without it %s",
		what, n, long, FormatNS(mean), FormatNS(h.MeanNS))
}

// precision checks the decimals of a table's columns. BenchmarkDotNet chooses them
// by the smallest value of a column; Error and StdDev have as many as Mean, or one more.
func (a *auditor) precision() {
	mean := -1
	for _, col := range a.in.Columns {
		if !slices.Contains([]string{"Mean", "Error", "StdDev", "Median"}, col.Name) {
			continue
		}
		want, least, most := a.decimals(col.Name)
		if least < 0 {
			continue
		}
		switch {
		case col.Name == "Mean":
			mean = want
		case (col.Name == "Error" || col.Name == "StdDev") && mean >= 0:
			want = min(max(want, mean), mean+1)
		}
		if least != want || most != want {
			a.add(LevelNote, CodePrecision, "", "the table was edited, or its writer has other rules",
				"%s has %s, BenchmarkDotNet would print %d", col.Name, decimalsText(least, most), want)
		}
	}
}

func decimalsText(least, most int) string {
	if least == most {
		return fmt.Sprintf("%d decimals", least)
	}
	return fmt.Sprintf("%d to %d decimals", least, most)
}

// decimals returns how many decimals a column should have, and the fewest and most
// that it has: least is -1 for an empty column.
func (a *auditor) decimals(column string) (want, least, most int) {
	smallest := math.Inf(1)
	least = -1
	for i := range a.in.Cells {
		p, ok := a.in.Cells[i].Printed[column]
		if !ok {
			continue
		}
		if f := timeFactor(p.Unit); f > 0 {
			smallest = min(smallest, math.Abs(p.Value)/f)
		}
		if least < 0 {
			least, most = p.Decimals, p.Decimals
		}
		least, most = min(least, p.Decimals), max(most, p.Decimals)
	}
	return Decimals(smallest), least, most
}
