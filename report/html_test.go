package report

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/result"
)

var (
	scriptBlock = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	styleBlock  = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	dataBlock   = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)
	hash        = regexp.MustCompile(`sha256-[A-Za-z0-9+/=]+`)
)

// bare is a page without its script, style and their hashes, which have tests
// of their own and change with every line of theirs.
func bare(page string) string {
	page = scriptBlock.ReplaceAllString(page, "<script></script>")
	page = styleBlock.ReplaceAllString(page, "<style></style>")
	return hash.ReplaceAllString(page, "sha256-")
}

// TestHTMLPolicy: the page's policy names exactly its own script and style.
func TestHTMLPolicy(t *testing.T) {
	page := render(t, "html", matrixReport())
	script, style := scriptBlock.FindAllStringSubmatch(page, -1), styleBlock.FindAllStringSubmatch(page, -1)
	if len(script) != 1 || len(style) != 1 {
		t.Fatalf("%d scripts, %d styles", len(script), len(style))
	}
	want := `content="default-src 'none'; script-src '` + sourceHash(script[0][1]) + `'; style-src '` + sourceHash(style[0][1]) + `'; base-uri 'none'; form-action 'none'"`
	if !strings.Contains(page, want) {
		t.Errorf("no %s", want)
	}
	if i := strings.Index(page, "Content-Security-Policy"); i < 0 || i > strings.Index(page, "<style>") {
		t.Error("the policy does not come before what it is about")
	}
	for _, bad := range []string{"<link", "<iframe", "@import", "url(", " src=", " href=", "innerHTML", " style="} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if got := regexp.MustCompile(`https?://[^ )\s]+`).FindAllString(page, -1); len(got) != 1 || got[0] != "https://github.com/leeoniya/uPlot" {
		t.Errorf("addresses %q, want that of uPlot's copyright alone", got)
	}
	if !strings.Contains(page, "Copyright (c) 2022 Leon Sorokin") {
		t.Error("uPlot's licence is missing")
	}
}

// TestHTMLHostileNames: no name opens a tag, ends the data, or changes the title.
func TestHTMLHostileNames(t *testing.T) {
	for _, r := range []*result.Report{spitefulReport(), hostileReport()} {
		page := render(t, "html", r)
		if n := strings.Count(page, "<script"); n != 2 {
			t.Errorf("%d script tags, want 2", n)
		}
		if strings.Contains(page, "<img") || strings.Count(page, "<title>mqttload report</title>") != 1 {
			t.Error("a name became markup")
		}
		var data charts
		if err := json.Unmarshal([]byte(dataBlock.FindStringSubmatch(page)[1]), &data); err != nil {
			t.Fatal(err)
		}
		if len(data.Cases) != len(r.Cases) {
			t.Errorf("%d cases in the data, want %d", len(data.Cases), len(r.Cases))
		}
	}
}

// TestCurve compares the curves with the percentiles of the report.
func TestCurve(t *testing.T) {
	for _, n := range []int64{100, 1_000, 1_000_000, 123_457} {
		h := latency(54_321, n)
		ns, err := curve(h)
		if err != nil {
			t.Fatal(err)
		}
		for decade, want := range map[int]int64{1: h.P90NS, 2: h.P99NS, 3: h.P999NS, 4: h.P9999NS} {
			if k := decade * ticksPerDecade; k < len(ns) && ns[k] != want {
				t.Errorf("n=%d: %d ns at 10^%d, want %d", n, ns[k], decade, want)
			}
		}
		last := len(ns) - 1
		if ns[last] != h.MaxNS || gridX(last) < float64(h.Count) || gridX(last-1) >= float64(h.Count) {
			t.Errorf("n=%d: it ends with %d ns at %g, want %d at n or just above", n, ns[last], gridX(last), h.MaxNS)
		}
		for k := range ns[1:] {
			if ns[k] > ns[k+1] {
				t.Errorf("n=%d: it falls at %d", n, k)
			}
		}
	}
}

func TestChartsOverlay(t *testing.T) {
	base, head := matrixReport(), matrixReport()
	base.Run.ID, head.Run.ID = "b1", "h1"
	head.Cases = append(head.Cases[2:], newCase(params("qos", "9"), 3, 1000, 5000))
	reports := []*result.Report{base, head}
	ch, err := chartsOf(reports, runLabels(reports))
	if err != nil {
		t.Fatal(err)
	}
	if len(ch.Cases) != 7 || strings.Join(ch.Reports, ",") != "base b1,head h1" {
		t.Fatalf("%d cases of %q", len(ch.Cases), ch.Reports)
	}
	for i, c := range ch.Cases {
		if (c.Runs[0] != nil) != (i < 6) || (c.Runs[1] != nil) != (i >= 2) {
			t.Errorf("case %d %s: base %t, head %t", i, c.ID, c.Runs[0] != nil, c.Runs[1] != nil)
		}
	}
	var b bytes.Buffer
	if err := writePage(&b, nil, reports, runLabels(reports)); err != nil || !strings.Contains(b.String(), "<h1>mqttload comparison</h1>") {
		t.Errorf("error %v", err)
	}
}

func TestTickRate(t *testing.T) {
	c := result.Case{
		Iterations: []result.Iteration{{Stage: result.StageActual, StartNS: 100, ElapsedNS: 50}},
		Timeline:   []result.Tick{{TNS: 100, Received: 10}, {TNS: 300, Received: 10}, {TNS: 400, Received: 10}},
	}
	got := tickRates(c)
	for i, want := range []float64{10 * 1e9 / 50, 10 * 1e9 / 100} {
		if got[i] == nil || *got[i] != want {
			t.Errorf("tick %d: %v, want %v", i, got[i], want)
		}
	}
	if got[2] != nil {
		t.Errorf("the length of the last tick is not known, and its rate is %v", *got[2])
	}
}
