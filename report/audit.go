package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
)

// AuditFormats are the formats of WriteAudit.
func AuditFormats() []string { return []string{"console", "markdown", "json"} }

// WriteAudit writes the findings of result.Audit, by level and code, and the number of
// rows that pass. format is one of AuditFormats or an alias of one. The error names an
// unknown format, or is that of w.
func WriteAudit(w io.Writer, format string, in *result.Input, findings []result.Finding) error {
	name, err := FormatName(format)
	if err != nil || !slices.Contains(AuditFormats(), name) {
		return &formatError{Name: format, Known: AuditFormats()}
	}
	passed, rows := result.Passed(in, findings)
	if name == "json" {
		if findings == nil {
			findings = []result.Finding{}
		}
		return writeJSON(w, struct {
			Source   string           `json:"source"`
			Format   string           `json:"format"`
			Passed   int              `json:"passed"`
			Rows     int              `json:"rows"`
			Findings []result.Finding `json:"findings"`
		}{in.Source, in.Format, passed, rows, findings})
	}
	head := fmt.Sprintf("%s: %d of %s pass", joined(", ", in.Source, in.Format), passed, text.Count(rows, "row"))
	var b bytes.Buffer
	if name == "markdown" {
		b.WriteString(markdownCell(head) + "\n")
		for _, s := range auditSections(findings) {
			writeList(&b, s.name, s.lines)
		}
		return flush(w, &b)
	}
	b.WriteString(head + "\n")
	for _, s := range auditSections(findings) {
		writeSection(&b, s)
	}
	return flush(w, &b)
}

func auditSections(findings []result.Finding) (all []section) {
	for _, l := range []struct {
		level result.Level
		name  string
	}{{result.LevelFail, "Failures"}, {result.LevelWarn, "Warnings"}, {result.LevelNote, "Notes"}} {
		all = append(all, section{l.name, findingLines(findings, l.level)})
	}
	return append(all, section{"Hints", findingHints(findings)})
}

// findingLines are the findings of one level under their codes.
func findingLines(findings []result.Finding, level result.Level) (lines []string) {
	var codes []string
	by := map[string][]perCase{}
	for _, f := range findings {
		if f.Level != level {
			continue
		}
		if by[f.Code] == nil {
			codes = append(codes, f.Code)
		}
		id := f.Case
		if id == "" {
			id = "the file"
		}
		by[f.Code] = append(by[f.Code], perCase{id, f.Message})
	}
	for _, code := range codes {
		lines = append(append(lines, text.Plain(code)), arrows(by[code])...)
	}
	return lines
}

// findingHints are the hints, without repetition.
func findingHints(findings []result.Finding) []string {
	var items []perCase
	for _, f := range findings {
		item := perCase{f.Code, f.Hint}
		if f.Hint != "" && !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	return arrows(items)
}
