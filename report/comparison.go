package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
)

// ComparisonFormats are the formats of WriteComparison.
func ComparisonFormats() []string { return []string{"console", "markdown", "json", "html"} }

// WriteComparison writes c in one of ComparisonFormats, or an alias of it: a
// table of base, head, ratio with interval, p and verdict, and below it the reasons for
// verdicts and the warnings. The error names an unknown format, or is that of w.
func WriteComparison(w io.Writer, format string, c *result.Comparison) error {
	name, err := FormatName(format)
	if err != nil || !slices.Contains(ComparisonFormats(), name) {
		return &formatError{Name: format, Known: ComparisonFormats()}
	}
	switch name {
	case "json":
		return writeJSON(w, c)
	case "html":
		return HTMLComparison(w, c)
	case "markdown":
		return comparisonMarkdown(w, c)
	}
	return comparisonConsole(w, c)
}

// writeJSON writes v indented, with characters that do not print escaped.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode json: %w", err)
	}
	return flush(w, bytes.NewBuffer(printableJSON(b.Bytes())))
}

func comparisonConsole(w io.Writer, c *result.Comparison) error {
	var b bytes.Buffer
	writeLines(&b, comparedLines(c))
	t := comparisonTable(c)
	if t.Rows > 0 {
		b.WriteString("\n")
		if common := commonLines(t.Common); len(common) > 0 {
			writeLines(&b, append(common, ""))
		}
		if err := consoleGrid(&b, t); err != nil {
			return err
		}
	}
	b.WriteString("\n")
	writeLines(&b, outcomeLines(c))
	for _, s := range append(comparisonSections(c), section{"Legends", legendLines(t)}) {
		writeSection(&b, s)
	}
	return flush(w, &b)
}

func comparisonMarkdown(w io.Writer, c *result.Comparison) error {
	var b bytes.Buffer
	t := comparisonTable(c)
	b.WriteString("```\n")
	for _, l := range append(comparedLines(c), commonLines(t.Common)...) {
		b.WriteString(fenced(l) + "\n")
	}
	b.WriteString("```\n\n")
	if t.Rows > 0 {
		if err := markdownGrid(&b, t); err != nil {
			return err
		}
		b.WriteString("\n")
	}
	for _, l := range outcomeLines(c) {
		b.WriteString(markdownCell(l) + "  \n")
	}
	for _, s := range comparisonSections(c) {
		writeList(&b, s.name, s.lines)
	}
	return flush(w, &b)
}

// comparedLines name the compared files.
func comparedLines(c *result.Comparison) (lines []string) {
	side := func(name string, files []result.ComparedFile) {
		for _, f := range files {
			lines = append(lines, fmt.Sprintf("%s: %s", name, joined(", ", f.Source, f.Format, runOf(f))))
		}
	}
	if c.Across != "" {
		side("File", c.Base)
		return append(lines, "Across: "+text.Plain(c.Across))
	}
	side("Base", c.Base)
	side("Head", c.Head)
	return lines
}

func runOf(f result.ComparedFile) string {
	started := ""
	if !f.Started.IsZero() {
		started = f.Started.UTC().Format(time.DateTime)
	}
	if f.RunID == "" {
		return started
	}
	return joined(" of ", "run "+f.RunID, started)
}

// outcomeLines are the verdict over all cells and the numbers behind it.
func outcomeLines(c *result.Comparison) []string {
	lines := []string{"verdict: " + headline(c)}
	if len(c.Cells) == 0 {
		return lines
	}
	lines = append(lines, fmt.Sprintf("cells: %d faster, %d slower, %d same, %d inconclusive (threshold %.3g %%)",
		c.Verdicts(result.Faster), c.Verdicts(result.Slower), c.Verdicts(result.Same), c.Verdicts(result.Inconclusive), 100*c.Threshold))
	if c.GeoMeanMedian != nil || c.GeoMeanMean != nil {
		lines = append(lines, "geometric mean of the ratios: "+geoMeans(c))
	}
	if c.SmallestP != nil && c.HolmLimit != nil {
		lines = append(lines, fmt.Sprintf("smallest p: %s, significant below %s (Holm)", pValue(c.SmallestP), pValue(c.HolmLimit)))
	}
	return lines
}

func geoMeans(c *result.Comparison) string {
	var parts []string
	for _, g := range []struct {
		of string
		v  *float64
	}{{"medians", c.GeoMeanMedian}, {"means", c.GeoMeanMean}, {"means without unstable cells", c.GeoMeanSteady}} {
		if g.v != nil && (g.v != c.GeoMeanSteady || c.UnstableCells() > 0) {
			parts = append(parts, fmt.Sprintf("%s %.3f", g.of, *g.v))
		}
	}
	return strings.Join(parts, ", ")
}

// headline is the verdict in one line. It names cells that were not compared: they are
// never a pass.
func headline(c *result.Comparison) string {
	if len(c.Cells) == 0 {
		return "nothing was compared: no cell has a counterpart"
	}
	parts := []string{change(c)}
	if n := c.Verdicts(result.Inconclusive); n > 0 {
		parts[0] += fmt.Sprintf(", %d inconclusive", n)
	}
	if n := len(c.Missing); n > 0 {
		parts = append(parts, text.Count(n, "cell")+" without a counterpart")
	}
	if n := c.UnstableCells(); n > 0 {
		parts = append(parts, text.Count(n, "unstable cell"))
	}
	return strings.Join(parts, "; ")
}

func change(c *result.Comparison) string {
	faster, n := c.Verdicts(result.Faster), len(c.Cells)
	switch {
	case c.Regressions() > 0:
		return fmt.Sprintf("%s in %s", text.Count(c.Regressions(), "regression"), text.Count(n, "cell"))
	case faster > 0:
		return fmt.Sprintf("no regression in %s, %d faster", text.Count(n, "cell"), faster)
	case c.Verdicts(result.Same) == n:
		return fmt.Sprintf("the same in %s, within %.3g %%", text.Count(n, "cell"), 100*c.Threshold)
	case slices.ContainsFunc(c.Cells, func(x result.CellComparison) bool { return x.Significant }):
		return fmt.Sprintf("no regression in %s", text.Count(n, "cell"))
	}
	return fmt.Sprintf("no significant change in any of %s", text.Count(n, "cell"))
}

// comparisonSections explain the rows that need it.
func comparisonSections(c *result.Comparison) []section {
	var regressions, same, inconclusive, unstable, delivery, missing, differences []perCase
	ids := shortIDs(c)
	for i := range c.Cells {
		x := &c.Cells[i]
		if x.Regression {
			regressions = append(regressions, perCase{ids[i], regressionText(x)})
		}
		switch {
		case x.Verdict == result.Inconclusive:
			inconclusive = append(inconclusive, perCase{ids[i], x.Reason})
		case x.Verdict == result.Same && x.Reason != "":
			same = append(same, perCase{ids[i], x.Reason})
		}
		if len(x.Unstable) > 0 {
			unstable = append(unstable, perCase{ids[i], strings.Join(x.Unstable, "; ")})
		}
		for _, d := range x.Delivery {
			delivery = append(delivery, perCase{ids[i], d.Message})
		}
	}
	for _, m := range c.Missing {
		reason := m.Reason
		if !strings.HasSuffix(reason, " in "+m.Side) {
			reason = "not in " + m.Side + ": " + reason
		}
		missing = append(missing, perCase{m.ID, reason})
	}
	for _, d := range c.Allowed {
		differences = append(differences, perCase{d.Key, d.Base + ", " + d.Head})
	}
	return []section{
		{"Regressions", arrows(regressions)}, {"Missing", arrows(missing)}, {"Delivery", arrows(delivery)}, {"Inconclusive", arrows(gathered(inconclusive))},
		{"Same", arrows(gathered(same))}, {"Unstable", arrows(unstable)}, {"Allowed differences", arrows(differences)},
		{"Warnings", noticeLines(c.Warnings)},
	}
}

// shortIDs name the cells by the parameters in which they differ.
func shortIDs(c *result.Comparison) []string {
	var t table
	t.addParams(cellCases(c))
	ids := make([]string, len(c.Cells))
	for i, x := range c.Cells {
		ids[i] = result.CaseID(slices.DeleteFunc(slices.Clone(x.Params), func(p result.Param) bool { return t.column(p.Key) == nil }))
		if ids[i] == "" {
			ids[i] = x.ID
		}
	}
	return ids
}

// gathered says once what is true of many cells: the table marks them anyway.
func gathered(items []perCase) (out []perCase) {
	const many = 4
	count := map[string]int{}
	for _, it := range items {
		count[it.text]++
	}
	for _, it := range items {
		n := count[it.text]
		switch {
		case n >= many:
			out = append(out, perCase{text.Count(n, "cell"), it.text})
			count[it.text] = 0 // said
		case n > 0:
			out = append(out, it)
		}
	}
	return out
}

func noticeLines(warnings []result.Warning) []string {
	var items []perCase
	for _, w := range warnings {
		items = append(items, perCase{w.Code, joined(": ", w.Message, w.Hint)})
	}
	return arrows(items)
}

// regressionText says by how much x is worse.
func regressionText(x *result.CellComparison) string {
	var parts []string
	if x.Verdict == result.Slower && x.Ratio != nil {
		parts = append(parts, fmt.Sprintf("%.1f %% more time per request, ratio %.3f %s, p %s", 100*(*x.Ratio-1), *x.Ratio, intervalText(x), pValue(x.PHolm)))
	}
	for _, d := range x.Delivery {
		if d.Regression {
			parts = append(parts, d.Message)
		}
	}
	return strings.Join(parts, "; ")
}

// ratioDecimals show differences of 0.1 %.
const ratioDecimals = 3

func intervalText(x *result.CellComparison) string {
	if x.RatioLow == nil || x.RatioHigh == nil {
		return nA
	}
	return "[" + result.FormatFloat(*x.RatioLow, ratioDecimals) + ", " + result.FormatFloat(*x.RatioHigh, ratioDecimals) + "]"
}

// pValue has three digits, and is only bounded where p is too small to be trusted.
func pValue(p *float64) string {
	const least = 1e-6
	switch {
	case p == nil:
		return nA
	case *p < least:
		return "<0.000001"
	}
	return strconv.FormatFloat(*p, 'f', max(3, 2-exponent(*p)), 64)
}

// exponent is that of v in scientific notation: -3 of 0.00478.
func exponent(v float64) int {
	_, e, _ := strings.Cut(strconv.FormatFloat(v, 'e', 2, 64), "e")
	n, _ := strconv.Atoi(e)
	return n
}
