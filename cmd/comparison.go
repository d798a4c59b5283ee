package cmd

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/report"
	"github.com/mqttload/mqttload/result"
)

// comparison is one comparison with its inputs.
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

// separate writes what precedes item i of several; in JSON they form a list.
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

// reports are those of the files that this program wrote: an HTML page shows them
// in full.
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

func (list comparisons) verdict(strict bool) (bad bench.Faults) {
	for _, one := range list {
		bad = append(bad, bench.ComparisonFaults(one.outcome, strict)...)
	}
	return bad
}

// comparedWith is the comparison of a run with its baseline; none without one.
func comparedWith(baseline []*result.Input, j bench.Judgement) comparisons {
	if j.Comparison == nil {
		return nil
	}
	return comparisons{{base: baseline, head: []*result.Input{j.Head}, outcome: j.Comparison}}
}

// rendered writes r and, in the formats for people, its comparison with the
// baseline.
func rendered(r *result.Report, compared comparisons) render {
	return func(w io.Writer, format string) error {
		if len(compared) > 0 && format == "html" {
			return compared.write(w, format)
		}
		if err := report.Write(w, format, r); err != nil || len(compared) == 0 || format != "console" && format != "markdown" {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		return compared.write(w, format)
	}
}

// warnComparison prints comparisons to standard error, for runs whose standard
// output is for programs.
func (t *terminal) warnComparison(list comparisons) {
	var b bytes.Buffer
	if err := list.write(&b, "console"); err != nil {
		t.warn("warning: %v", err)
		return
	}
	for line := range strings.Lines(b.String()) {
		t.warn("%s", strings.TrimSuffix(line, "\n"))
	}
}

// summary is the comparisons as Markdown, for the summary of a GitHub step.
func (list comparisons) summary() string {
	var parts []string
	for _, one := range list {
		parts = append(parts, report.ComparisonSummary(one.outcome))
	}
	return strings.Join(parts, "\n")
}

// errorLines are GitHub workflow commands for comparisons that do not pass.
func (list comparisons) errorLines() (lines []string) {
	for _, one := range list {
		lines = append(lines, report.ComparisonErrorLines(one.outcome)...)
	}
	return lines
}

// compareOptions reads the flags that compare-reports shares with run.
func compareOptions(s settings, threshold string, bad *bench.Faults) result.CompareOptions {
	o := result.CompareOptions{Across: s["across"].value(), Ignore: s["ignore"].words(), Allow: s["allow"].words()}
	if t, ok := s[threshold]; ok {
		share, err := parsePercent(t.value())
		if err != nil {
			bad.Usage("write a percentage above zero, such as 5%", "%s %s: %v", t.place, t.value(), err)
		}
		o.Threshold = share
	}
	return o
}

// parsePercent reads "5%" as 0.05. A bare number is refused because it is
// ambiguous.
func parsePercent(text string) (float64, error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
	if !ok {
		return 0, errors.New("the percent sign is missing")
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err != nil || v != v:
		return 0, errors.New("not a number")
	case v <= 0 || v > 1e6:
		return 0, errors.New("out of range")
	}
	return v / 100, nil
}
