package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
)

// Console writes r as text for a terminal or a log: what was run and where, the
// table, and below it what a reader should know before trusting the numbers. Sections
// without content are left out. The error is that of w.
func writeConsole(w io.Writer, r *result.Report) error {
	var b bytes.Buffer
	writeLines(&b, headerLines(r))
	if len(r.Cases) == 0 {
		fmt.Fprintln(&b, "\nNo case was run.")
		return flush(w, &b)
	}
	if r.Calibration != nil {
		if err := consoleCalibration(&b, r); err != nil {
			return err
		}
		return flush(w, &b)
	}
	t := newTable(r)
	b.WriteString("\n")
	if common := commonLines(t.Common); len(common) > 0 {
		writeLines(&b, append(common, ""))
	}
	if err := consoleGrid(&b, t); err != nil {
		return err
	}
	if lines := deliveryLines(r.Cases); len(lines) > 0 {
		b.WriteString("\n")
		writeLines(&b, lines)
	}
	for _, s := range sections(r, t) {
		writeSection(&b, s)
	}
	return flush(w, &b)
}

func flush(w io.Writer, b *bytes.Buffer) error {
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func writeLines(b *bytes.Buffer, lines []string) {
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
}

// section is one "// * Name *" part below the table.
type section struct {
	name  string
	lines []string
}

func writeSection(b *bytes.Buffer, s section) {
	if len(s.lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n// * %s *\n", s.name)
	writeLines(b, s.lines)
}

func sections(r *result.Report, t *table) []section {
	return []section{
		{"Errors", errorLines(r.Cases)},
		{"Warnings", warningLines(r.Cases)},
		{"Hints", hintLines(r.Cases)},
		{"Limits", limitLines(r.Cases)},
		{"Ceiling", ceilingLines(r.Cases)},
		{"Gates", gateLines(r.Gates)},
		{"Legends", legendLines(t)},
	}
}

// commonLines prints Key=Value with two spaces after each, three to a line.
func commonLines(params []result.Param) (lines []string) {
	const perLine = 3
	for i, p := range params {
		if i%perLine == 0 {
			lines = append(lines, "")
		}
		lines[len(lines)-1] += text.Plain(p.Key) + "=" + text.Plain(shorten(p.Value)) + "  "
	}
	return lines
}

// perCase is a line about one case.
type perCase struct{ id, text string }

// arrowColumn is the last column of an aligned arrow; longer ids push theirs further.
const arrowColumn = 64

// arrows aligns "  id -> text" lines.
func arrows(items []perCase) (lines []string) {
	widest := 0
	for _, it := range items {
		widest = max(widest, min(width(text.Plain(it.id)), arrowColumn))
	}
	for _, it := range items {
		id := text.Plain(it.id)
		lines = append(lines, fmt.Sprintf("  %s%s -> %s", id, strings.Repeat(" ", max(0, widest-width(id))), text.Plain(it.text)))
	}
	return lines
}

// errorLines add up faults of the same kind and reason over all cases. An example
// that repeats the reason is left out.
func errorLines(cases []result.Case) (lines []string) {
	var sum []result.Error
	for _, c := range cases {
		sum = result.AddErrors(sum, c.Errors)
	}
	for _, e := range sum {
		line := fmt.Sprintf("  %s: %s (%s)", text.Plain(string(e.Kind)), text.Plain(e.Reason), text.Count(int(e.Count), "time"))
		if e.Example != "" && e.Example != e.Reason && e.Example != string(e.Kind)+": "+e.Reason {
			line += ", for example: " + text.Plain(e.Example)
		}
		lines = append(lines, line)
	}
	return lines
}

// warningCodes are the codes that occur, in the order of their first occurrence.
func warningCodes(cases []result.Case) (codes []string, by map[string][]perCase, hints map[string]string) {
	by, hints = map[string][]perCase{}, map[string]string{}
	for _, c := range cases {
		for _, w := range c.Warnings {
			if by[w.Code] == nil {
				codes = append(codes, w.Code)
				hints[w.Code] = w.Hint
			}
			by[w.Code] = append(by[w.Code], perCase{c.ID, w.Message})
		}
	}
	return codes, by, hints
}

func warningLines(cases []result.Case) (lines []string) {
	codes, by, _ := warningCodes(cases)
	for _, code := range codes {
		lines = append(lines, text.Plain(code))
		lines = append(lines, arrows(by[code])...)
	}
	return lines
}

func hintLines(cases []result.Case) []string {
	codes, _, hints := warningCodes(cases)
	var items []perCase
	for _, code := range codes {
		if hints[code] != "" {
			items = append(items, perCase{code, hints[code]})
		}
	}
	return arrows(items)
}

func limitLines(cases []result.Case) []string {
	var items []perCase
	for _, c := range cases {
		if b := c.Bottleneck; b != nil && b.Detail != "" {
			items = append(items, perCase{c.ID, b.Kind + ": " + b.Detail})
		}
	}
	return arrows(items)
}

func gateLines(gates []result.GateResult) (lines []string) {
	for _, g := range gates {
		lines = append(lines, gateLine(g))
	}
	return lines
}

// gateLine is a gate with its value: one that passed as the condition that holds, so that
// no rule of a failure stands beside "ok".
func gateLine(g result.GateResult) string {
	metric, op, limit, ok := g.Condition()
	switch {
	case g.Passed && ok && g.Value != nil:
		return fmt.Sprintf("  ok      %s %s %s %s  (%s)", text.Plain(metric), g.ValueText(), op, limit, text.Plain(g.Case))
	case g.Passed:
		return fmt.Sprintf("  ok      %s  (%s is %s)", text.Plain(g.Rule), text.Plain(g.Case), gateValue(g))
	}
	found := text.Plain(g.Case) + " is " + gateValue(g)
	if g.Message != "" {
		found = joined(": ", g.Case, g.Message)
	}
	return fmt.Sprintf("  FAILED  %s  (%s)", text.Plain(g.Rule), found)
}

// gateValue is the value of g with its unit.
func gateValue(g result.GateResult) string { return cmp.Or(g.ValueText(), nA) }

// legendLines explain the columns and units of t.
func legendLines(t *table) (lines []string) {
	var items [][2]string
	units := map[string]bool{}
	for _, c := range t.Columns {
		if c.Legend != "" {
			items = append(items, [2]string{c.Name, c.Legend})
		}
		units[c.Unit.Name] = true
	}
	for _, u := range result.TimeUnits {
		if units[u.Name] {
			items = append(items, [2]string{"1 " + u.Name, unitLegends[u.Name]})
		}
	}
	widest := 0
	for _, it := range items {
		widest = max(widest, width(it[0]))
	}
	for _, it := range items {
		lines = append(lines, fmt.Sprintf("  %s%s : %s", it[0], strings.Repeat(" ", widest-width(it[0])), it[1]))
	}
	return lines
}

var unitLegends = map[string]string{
	"ns": "1 Nanosecond (0.000000001 sec)", "μs": "1 Microsecond (0.000001 sec)",
	"ms": "1 Millisecond (0.001 sec)", "s": "1 Second (1 sec)",
}
