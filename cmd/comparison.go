package cmd

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/report"
	"github.com/mqttload/mqttload/result"
)

// comparison is one outcome with what went into it.
type comparison struct {
	base, head []*result.Input
	outcome    *result.Comparison
}

type comparisons []comparison

// write renders them in a format: JSON is an object, for several a list.
func (list comparisons) write(w io.Writer, format string) error {
	var b bytes.Buffer
	for i, one := range list {
		separate(&b, format, i, len(list))
		if err := one.write(&b, format); err != nil {
			return err
		}
	}
	closeList(&b, format, len(list))
	_, err := w.Write(b.Bytes())
	return err
}

// separate stands before item i of several: in JSON they are a list.
func separate(b *bytes.Buffer, format string, i, of int) {
	switch {
	case format != "json":
		b.WriteString([]string{"", "\n"}[min(i, 1)])
	case of > 1:
		b.WriteString([]string{"[\n", ",\n"}[min(i, 1)])
	}
}

func closeList(b *bytes.Buffer, format string, of int) {
	if format == "json" && of > 1 {
		b.WriteString("]\n")
	}
}

func (one comparison) write(w io.Writer, format string) error {
	if format == "html" {
		return report.HTMLComparison(w, one.outcome, one.reports()...)
	}
	return report.WriteComparison(w, format, one.outcome)
}

// reports are the files that are reports of this program: a page shows them
// whole, and others not.
func (one comparison) reports() (list []*result.Report) {
	for _, in := range slices.Concat(one.base, one.head) {
		if in.Report != nil {
			list = append(list, in.Report)
		}
	}
	return list
}

// files are all files that were compared.
func (list comparisons) files() (files []*result.Input) {
	for _, one := range list {
		for _, in := range slices.Concat(one.base, one.head) {
			if !slices.Contains(files, in) {
				files = append(files, in)
			}
		}
	}
	return files
}

func (list comparisons) verdict(strict bool) (bad faults) {
	for _, one := range list {
		bad = append(bad, comparisonFaults(one.outcome, strict)...)
	}
	return bad
}

// comparisonFaults are the reasons for which a comparison is no pass.
func comparisonFaults(c *result.Comparison, strict bool) (bad faults) {
	if len(c.Cells) == 0 {
		bad = append(bad, fault{exitUnlike, "not one case has a counterpart: nothing was compared", "compare runs of the same cases"})
	} else if n := len(c.Missing); n > 0 {
		m := c.Missing[0]
		bad = append(bad, fault{exitUnlike, fmt.Sprintf("%s without a counterpart: %s (%s)%s", plural(n, "case"), m.ID, m.Reason, andMore(n-1)),
			"compare runs of the same cases"})
	}
	if n := c.Verdicts(result.Inconclusive); strict && n > 0 {
		bad = append(bad, fault{exitUnlike, fmt.Sprintf("%d of %s inconclusive, and --strict takes that for a failure", n, casesAre(len(c.Cells))),
			"run more iterations or launches, on a quieter machine"})
	}
	if n := c.Regressions(); n > 0 {
		bad = append(bad, fault{exitRegression, fmt.Sprintf("%s in %s: %s%s", plural(n, "regression"), plural(len(c.Cells), "case"), firstRegression(c), andMore(n-1)), ""})
	}
	return bad
}

func casesAre(n int) string {
	if n == 1 {
		return "1 case is"
	}
	return result.FormatInt(int64(n)) + " cases are"
}

func andMore(n int) string {
	if n < 1 {
		return ""
	}
	return fmt.Sprintf(", and %s more", result.FormatInt(int64(n)))
}

// firstRegression says of the first one how much, and by what it is judged.
func firstRegression(c *result.Comparison) string {
	i := slices.IndexFunc(c.Cells, func(x result.CellComparison) bool { return x.Regression })
	if i < 0 {
		return ""
	}
	cell := &c.Cells[i]
	name := cell.ID
	if c.Across != "" {
		name = fmt.Sprintf("%s with %s=%s", result.CaseID(cell.Params), c.Across, cell.Head.Value)
	}
	if cell.Verdict == result.Slower {
		return fmt.Sprintf("%s takes %.1f %% more time per request, the limit is %.4g %%", name, 100*(*cell.Ratio-1), 100*c.Threshold)
	}
	worse := slices.IndexFunc(cell.Delivery, func(d result.DeliveryChange) bool { return d.Regression })
	return name + ": " + cell.Delivery[worse].Message
}

// render shows r, and in the formats for reading also what it was compared with.
func (j judgement) render(r *result.Report) render {
	return func(w io.Writer, format string) error {
		if len(j.compared) > 0 && format == "html" {
			return j.compared.write(w, format)
		}
		if err := report.Write(w, format, r); err != nil || len(j.compared) == 0 || format != "console" && format != "markdown" {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		return j.compared.write(w, format)
	}
}

// warnComparison prints comparisons to standard error, where standard output
// holds something for programs.
func (a *app) warnComparison(list comparisons) {
	var b bytes.Buffer
	if err := list.write(&b, "console"); err != nil {
		a.warn("warning: %v", err)
		return
	}
	for line := range strings.Lines(b.String()) {
		a.warn("%s", strings.TrimSuffix(line, "\n"))
	}
}

// summary is the comparisons as markdown for the summary of a step.
func (list comparisons) summary() string {
	var parts []string
	for _, one := range list {
		parts = append(parts, report.ComparisonSummary(one.outcome))
	}
	return strings.Join(parts, "\n")
}

// errorLines are GitHub's workflow commands for what is no pass.
func (list comparisons) errorLines() (lines []string) {
	for _, one := range list {
		lines = append(lines, report.ComparisonErrorLines(one.outcome)...)
	}
	return lines
}
