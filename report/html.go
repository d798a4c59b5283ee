package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
)

//go:embed assets
var assets embed.FS

// page is the data of the template.
type page struct {
	Policy     template.HTML
	Style      template.CSS
	Script     template.JS
	Data       template.JS
	Runs       []htmlRun
	Cases      []string
	Comparison *htmlComparison
}

// writeHTML writes r as one self-contained page: tables of every number, and charts of
// latency by percentile, throughput and latency over time and every iteration.
// The page loads nothing: its Content-Security-Policy allows its own script and style, by
// their hashes, and forbids everything else. The error names the case of a damaged
// histogram, or is that of w.
func writeHTML(w io.Writer, r *result.Report) error {
	return writePage(w, nil, []*result.Report{r}, runLabels([]*result.Report{r}))
}

// writePage overlays several reports in the charts, matched by case, the last one in full
// lines.
func writePage(w io.Writer, c *htmlComparison, reports []*result.Report, labels []string) error {
	charts, err := chartsOf(reports, labels)
	if err != nil {
		return fmt.Errorf("write html: %w", err)
	}
	data, err := json.Marshal(charts) // escapes <, > and &: no name ends the element
	if err != nil {
		return fmt.Errorf("write html: %w", err)
	}
	frame, err := loadFrame()
	if err != nil {
		return fmt.Errorf("write html: %w", err)
	}
	p := page{Policy: frame.policy, Style: frame.style, Script: frame.script, Data: template.JS(data), Comparison: c}
	for i, r := range reports {
		p.Runs = append(p.Runs, htmlRunOf(r, charts.Reports[i]))
	}
	for _, c := range charts.Cases {
		p.Cases = append(p.Cases, c.ID)
	}
	var b bytes.Buffer
	if err := frame.template.Execute(&b, p); err != nil {
		return fmt.Errorf("write html: %w", err)
	}
	return flush(w, &b)
}

// frame is the part that all pages have in common.
type frame struct {
	template *template.Template
	style    template.CSS
	script   template.JS
	policy   template.HTML
}

// loadFrame reads the embedded files once.
var loadFrame = sync.OnceValues(func() (*frame, error) {
	t, err := template.New("report.html.tmpl").Funcs(template.FuncMap{"plain": text.Plain}).ParseFS(assets, "assets/report.html.tmpl")
	if err != nil {
		return nil, err
	}
	style := asset("uPlot.min.css") + "\n" + asset("report.css")
	script := "/*!\nThe charts are drawn by uPlot.\n" + asset("uPlot.LICENSE") + "*/\n" + asset("uPlot.iife.min.js") + "\n" + asset("report.js")
	return &frame{t, template.CSS(style), template.JS(script), policy(script, style)}, nil
})

// asset is an embedded file, which exists since it is part of the build.
func asset(name string) string {
	b, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// policy is the page's Content-Security-Policy, Level 3: it allows only the script and the
// style with these hashes.
func policy(script, style string) template.HTML {
	return template.HTML(fmt.Sprintf(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '%s'; style-src '%s'; base-uri 'none'; form-action 'none'">`,
		sourceHash(script), sourceHash(style)))
}

func sourceHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// htmlRun is one report as the template shows it.
type htmlRun struct {
	Label       string
	Header      []string
	Findings    []string
	Common      []string
	Summary     htmlTable
	Delivered   []string
	Percentiles htmlTable
	Gates       htmlTable
	Ledger      htmlTable
	Errors      []string
	Warnings    []htmlWarnings
	Limits      []htmlItem
	Facts       htmlTable
	Scenario    []string
	Legends     []string
}

type htmlWarnings struct {
	Code, Hint string
	Items      []htmlItem
}

type htmlItem struct{ ID, Text string }

func htmlRunOf(r *result.Report, label string) htmlRun {
	t := newTable(r)
	run := htmlRun{
		Label: label, Header: headerLines(r), Summary: summaryTable(t), Percentiles: percentileTable(r),
		Gates: gateTable(r.Gates), Ledger: ledgerTable(r), Facts: factTable(r),
		Errors: trimmed(errorLines(r.Cases)), Scenario: scenarioLines(r), Legends: trimmed(legendLines(t)),
	}
	for _, f := range findings(r) {
		run.Findings = append(run.Findings, about(f))
	}
	for _, p := range t.Common {
		run.Common = append(run.Common, p.Key+"="+shorten(p.Value))
	}
	if len(r.Cases) > 0 {
		run.Delivered = trimmed(deliveryLines(r.Cases))
	}
	run.addWarnings(r.Cases)
	for _, c := range r.Cases {
		if b := c.Bottleneck; b != nil && b.Detail != "" {
			run.Limits = append(run.Limits, htmlItem{c.ID, b.Kind + ": " + b.Detail})
		}
	}
	return run
}

func (run *htmlRun) addWarnings(cases []result.Case) {
	codes, by, hints := warningCodes(cases)
	for _, code := range codes {
		ws := htmlWarnings{Code: code, Hint: hints[code]}
		for _, it := range by[code] {
			ws.Items = append(ws.Items, htmlItem{it.id, it.text})
		}
		run.Warnings = append(run.Warnings, ws)
	}
}

func trimmed(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.TrimSpace(l)
	}
	return out
}

// scenarioLines is the effective scenario as indented JSON.
func scenarioLines(r *result.Report) []string {
	if r.Scenario == nil {
		return nil
	}
	b, err := json.MarshalIndent(r.Scenario, "", "  ")
	if err != nil {
		return nil
	}
	return strings.Split(string(b), "\n")
}
