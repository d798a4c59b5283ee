package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
)

func number(v float64) *float64 { return &v }

// compared is a comparison with one cell of every kind.
func compared() *result.Comparison {
	cell := func(payload string, ratio, p float64, v result.Verdict) result.CellComparison {
		ps := params("qos", "1", "payload", payload)
		return result.CellComparison{
			ID: result.CaseID(ps), Params: ps, Ratio: number(ratio), RatioLow: number(ratio - 0.02), RatioHigh: number(ratio + 0.02),
			Base: result.SideStats{N: 15, MedianNS: number(5_260)}, Head: result.SideStats{N: 15, MedianNS: number(5_260 * ratio)},
			P: number(p / 5), PHolm: number(p), Significant: p < 0.05, Verdict: v, Test: result.MethodMannWhitney,
			Latency: []result.LatencyDelta{{Leg: "end_to_end", Quantile: "p99", BaseNS: 100, HeadNS: 110, Ratio: 1.1}},
		}
	}
	slow := cell("10", 1.123, 0.0000001, result.Slower)
	slow.Regression = true
	same := cell("1024", 1.001, 0.5, result.Same)
	unsure := cell("2048", 0.95, 0.06, result.Inconclusive)
	unsure.Reason, unsure.Unstable = "not significant, but the interval is wider than 5 %", []string{"head: 1 of 15 iterations stalled"}
	lossy := cell("8192", 0.9, 0.001, result.Faster)
	lossy.Regression = true
	lossy.Delivery = []result.DeliveryChange{{Name: "lost", Head: 3, HeadOf: 1000, BaseOf: 1000, Regression: true, Message: "new: lost at QoS 1 3 of 1,000 (0.30 %), was 0 (0 %)"}}
	blank := cell("9000", 1, 1, result.Inconclusive)
	blank.Ratio, blank.RatioLow, blank.RatioHigh, blank.P, blank.PHolm, blank.Base.MedianNS, blank.Latency = nil, nil, nil, nil, nil, nil, nil
	blank.Reason = "a side has no spread to test with: run more iterations"
	return &result.Comparison{
		Base: []result.ComparedFile{{Source: "old.json", Format: result.FormatReport, RunID: "b1"}}, Head: []result.ComparedFile{{Source: "new.json", RunID: "h1"}},
		Threshold: 0.05, Alpha: 0.05, Cells: []result.CellComparison{slow, same, unsure, lossy, blank},
		Missing:  []result.MissingCell{{ID: "qos=2/payload=10", Side: "head", Reason: "no such cell"}},
		Warnings: []result.Warning{{Code: result.CodeSwapped, Message: "the head is older", Hint: "give the older run first"}},
		Allowed:  []result.Difference{{Key: "cpu", Base: "A", Head: "B"}}, GeoMeanMedian: number(0.9912), GeoMeanMean: number(0.99), GeoMeanSteady: number(1.01),
		SmallestP: number(0.00000002), HolmLimit: number(0.0125),
	}
}

func spitefulComparison() *result.Comparison {
	c := &result.Comparison{Base: []result.ComparedFile{{Source: spiteful[11]}}, Across: spiteful[15], Alpha: 0.05}
	for _, v := range spiteful {
		ps := params("topic", v)
		c.Cells = append(c.Cells, result.CellComparison{
			ID: result.CaseID(ps), Params: ps, Verdict: result.Inconclusive, Reason: v, Unstable: []string{v}, Regression: true,
			Base: result.SideStats{Value: v}, Delivery: []result.DeliveryChange{{Name: v, Message: v, Regression: true}},
		})
		c.Missing = append(c.Missing, result.MissingCell{ID: v, Side: "head", Reason: v})
		c.Warnings = append(c.Warnings, result.Warning{Code: v, Message: v, Hint: v})
	}
	return c
}

// comparedAs adapts a comparison to the golden files' writers.
func comparedAs(format string, c *result.Comparison) func(io.Writer, *result.Report) error {
	return func(w io.Writer, _ *result.Report) error {
		var b bytes.Buffer
		if err := WriteComparison(&b, format, c); err != nil {
			return err
		}
		text := b.String()
		if format == "html" {
			text = bare(text)
		}
		_, err := io.WriteString(w, text)
		return err
	}
}

func TestComparisonGoldens(t *testing.T) {
	for ext, format := range map[string]string{"txt": "console", "md": "markdown", "html": "html"} {
		golden(t, "compared."+ext, nil, comparedAs(format, compared()))
		golden(t, "compared-spiteful."+ext, nil, comparedAs(format, spitefulComparison()))
		golden(t, "compared-nothing."+ext, nil, comparedAs(format, &result.Comparison{Missing: []result.MissingCell{{ID: "a=1", Side: "head", Reason: "not there"}}}))
	}
}

func TestComparisonIsSafeToPrint(t *testing.T) {
	for _, format := range ComparisonFormats() {
		var b bytes.Buffer
		if err := WriteComparison(&b, format, spitefulComparison()); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(b.String(), func(r rune) bool { return r != '\n' && r != '\t' && text.Plain(string(r)) != string(r) }); i >= 0 {
			t.Errorf("%s: %q got through", format, b.String()[i:i+8])
		}
	}
}

func TestComparisonJSON(t *testing.T) {
	var b bytes.Buffer
	if err := WriteComparison(&b, "json", compared()); err != nil {
		t.Fatal(err)
	}
	var back result.Comparison
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || len(back.Cells) != 5 || back.Cells[0].Verdict != result.Slower || *back.Cells[0].Ratio != 1.123 {
		t.Errorf("%v, %+v", err, back.Cells)
	}
}

// TestPublishedComparison is the comparison of the two published tables: nothing
// changed significantly, and one cell is unstable.
func TestPublishedComparison(t *testing.T) {
	base, head := published12(t, "table-1.tsv"), published12(t, "table-2.tsv")
	c, err := result.Compare([]*result.Input{base}, []*result.Input{head}, result.CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"verdict: no significant change in any of 12 cells, 12 inconclusive; 1 unstable cell",
		"cells: 0 faster, 0 slower, 0 same, 12 inconclusive (threshold 5 %)",
		"geometric mean of the ratios: medians 1.005, means 1.068, means without unstable cells 1.015",
		"smallest p: 0.00478, significant below 0.00417 (Holm)",
	}
	if got := outcomeLines(c); !slices.Equal(got, want) {
		t.Errorf("got:\n%s", strings.Join(got, "\n"))
	}
	if lines := ComparisonErrorLines(c); lines != nil {
		t.Errorf("errors %q", lines)
	}
	row := comparisonTable(c).row(7)
	if got := strings.Join(row, " | "); got != "AtLeastOnce | 8192 | 34.313 μs | 64.682 μs | 1.885 | "+intervalText(&c.Cells[7])+" | 1.000 | inconclusive, unstable" {
		t.Errorf("row %s", got)
	}
	var b bytes.Buffer
	if err := WriteAudit(&b, "console", head, result.Audit(head)); err != nil || !strings.HasPrefix(b.String(), head.Source+", tab-separated table: 12 of 12 rows pass\n") ||
		!strings.Contains(b.String(), "stalled") {
		t.Errorf("audit %v:\n%s", err, b.String())
	}
}

func published12(t *testing.T, name string) *result.Input {
	t.Helper()
	in, err := result.ReadAny("../result/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestHeadline(t *testing.T) {
	cells := func(vs ...result.Verdict) *result.Comparison {
		c := &result.Comparison{Threshold: 0.05}
		for _, v := range vs {
			c.Cells = append(c.Cells, result.CellComparison{Verdict: v, Regression: v == result.Slower, Significant: v == result.Slower || v == result.Faster})
		}
		return c
	}
	for _, c := range []struct {
		c    *result.Comparison
		want string
	}{
		{cells(), "nothing was compared: no cell has a counterpart"},
		{cells(result.Same, result.Same), "the same in 2 cells, within 5 %"},
		{cells(result.Same, result.Inconclusive), "no significant change in any of 2 cells, 1 inconclusive"},
		{cells(result.Faster, result.Same), "no regression in 2 cells, 1 faster"},
		{cells(result.Slower), "1 regression in 1 cell"},
		{compared(), "2 regressions in 5 cells, 2 inconclusive; 1 cell without a counterpart; 1 unstable cell"},
	} {
		if got := headline(c.c); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestComparisonForGitHub(t *testing.T) {
	want := []string{
		"::error title=mqttload%3A regression::qos=1/payload=10: 12.3 %25 more time per request, ratio 1.123 [1.103, 1.143], p <0.000001",
		"::error title=mqttload%3A regression::qos=1/payload=8192: new: lost at QoS 1 3 of 1,000 (0.30 %25), was 0 (0 %25)",
		"::error title=mqttload%3A not compared::qos=2/payload=10: not in head: no such cell",
	}
	if got := ComparisonErrorLines(compared()); !slices.Equal(got, want) {
		t.Errorf("got:\n%s", strings.Join(got, "\n"))
	}
	if got := ComparisonErrorLines(&result.Comparison{}); len(got) != 1 || !strings.Contains(got[0], "nothing was compared") {
		t.Errorf("no cell: %q", got)
	}
	if s := ComparisonSummary(compared()); !strings.HasPrefix(s, "### ❌ mqttload comparison: 2 regressions in 5 cells") || !strings.Contains(s, "| payload |") {
		t.Errorf("got:\n%s", s)
	}
	good := compared()
	good.Missing, good.Cells = nil, good.Cells[1:2]
	if s := ComparisonSummary(good); !strings.HasPrefix(s, "### ✅ mqttload comparison: the same in 1 cell, within 5 %\n") {
		t.Errorf("got:\n%s", s)
	}
}

func TestPValue(t *testing.T) {
	for _, c := range []struct {
		p    *float64
		want string
	}{{nil, nA}, {number(1), "1.000"}, {number(0.5), "0.500"}, {number(0.0478), "0.0478"}, {number(0.00478), "0.00478"}, {number(0.0000123), "0.0000123"}, {number(1e-9), "<0.000001"}, {number(0), "<0.000001"}} {
		if got := pValue(c.p); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestComparisonFormatNames(t *testing.T) {
	var unknown *formatError
	if err := WriteComparison(io.Discard, "junit", compared()); !errors.As(err, &unknown) || len(unknown.Known) != 4 {
		t.Errorf("error %v", err)
	}
	if err := WriteAudit(io.Discard, "html", &result.Input{}, nil); !errors.As(err, &unknown) || len(unknown.Known) != 3 {
		t.Errorf("error %v", err)
	}
	for _, format := range ComparisonFormats() {
		if err := WriteComparison(brokenWriter{}, format, compared()); !errors.Is(err, errBroken) {
			t.Errorf("%s: error %v", format, err)
		}
	}
	for _, format := range AuditFormats() {
		if err := WriteAudit(brokenWriter{}, format, &result.Input{}, nil); !errors.Is(err, errBroken) {
			t.Errorf("%s: error %v", format, err)
		}
	}
}

func TestAuditGoldens(t *testing.T) {
	in := &result.Input{Source: "r.tsv", Format: result.FormatTSV, Cells: []result.Cell{{ID: "a=1"}, {ID: "a=2"}}}
	findings := []result.Finding{
		{Level: result.LevelFail, Code: result.CodeReqPerSec, Case: "a=1", Message: "Req/sec does not follow from Mean", Hint: "look at the table"},
		{Level: result.LevelWarn, Code: result.CodeStalled, Case: "a=1", Message: spiteful[11], Hint: "read the Median"},
		{Level: result.LevelWarn, Code: result.CodeStalled, Case: "a=2", Message: spiteful[15], Hint: "read the Median"},
		{Level: result.LevelNote, Code: result.CodePrecision, Message: "the column has 3 decimals"},
	}
	for ext, format := range map[string]string{"txt": "console", "md": "markdown", "json": "json"} {
		golden(t, "audit."+ext, nil, func(w io.Writer, _ *result.Report) error { return WriteAudit(w, format, in, findings) })
	}
}

// TestHTMLComparisonLabels: reports are labelled by the side that they are on.
func TestHTMLComparisonLabels(t *testing.T) {
	base, head := matrixReport(), partialReport()
	base.Run.ID, head.Run.ID = "b1", "h1"
	var b bytes.Buffer
	if err := HTMLComparison(&b, compared(), head, base); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<h1>mqttload comparison</h1>", "<strong>head h1</strong>", "Summary: base b1", `"reports":["head h1","base b1"]`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s", want)
		}
	}
}
