package report

import (
	"io"
	"strings"

	"github.com/mqttload/mqttload/result"
)

// htmlComparison is a comparison as the template shows it.
type htmlComparison struct {
	Regressed bool
	Lines     []string
	Compared  []string
	Common    []string
	Table     htmlTable
	Sections  []htmlSection
}

type htmlSection struct {
	Name  string
	Lines []string
}

// HTMLComparison writes c as an HTML page, with the reports that went into it, if any, below
// and overlaid in the charts.
func HTMLComparison(w io.Writer, c *result.Comparison, reports ...*result.Report) error {
	t := comparisonTable(c)
	h := &htmlComparison{
		Regressed: !c.Complete() || c.Regressions() > 0, Lines: outcomeLines(c), Compared: comparedLines(c), Table: verdictTable(c, t),
	}
	for _, p := range t.Common {
		h.Common = append(h.Common, p.Key+"="+shorten(p.Value))
	}
	for _, s := range comparisonSections(c) {
		if len(s.lines) > 0 {
			h.Sections = append(h.Sections, htmlSection{s.name, trimmed(s.lines)})
		}
	}
	return writePage(w, h, reports, roles(c, reports))
}

// verdictTable marks the verdicts that are worse or better.
func verdictTable(c *result.Comparison, t *table) htmlTable {
	h := summaryTable(t)
	h.Label = "comparison"
	for i := range h.Rows {
		for j := range h.Rows[i] {
			if t.Columns[j].Name != "Verdict" {
				continue
			}
			switch {
			case c.Cells[i].Regression:
				h.Rows[i][j].Class = classBad
			case c.Cells[i].Verdict == result.Faster:
				h.Rows[i][j].Class = classGood
			}
		}
	}
	return h
}

// roles label reports by their side of the comparison; a single one needs no label.
func roles(c *result.Comparison, reports []*result.Report) []string {
	labels := make([]string, len(reports))
	for i, r := range reports {
		var side []string
		if among(c.Base, r) {
			side = append(side, "base")
		}
		if among(c.Head, r) {
			side = append(side, "head")
		}
		if len(reports) > 1 {
			labels[i] = joined(" ", strings.Join(side, " and "), r.Run.ID)
		}
	}
	return labels
}

// among reports whether r is one of the files.
func among(files []result.ComparedFile, r *result.Report) bool {
	for _, f := range files {
		if f.RunID != "" && f.RunID == r.Run.ID {
			return true
		}
	}
	return false
}
