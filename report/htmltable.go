package report

import (
	"github.com/mqttload/mqttload/result"
)

// htmlTable is a grid of unescaped text.
type htmlTable struct {
	Label   string
	Columns []htmlColumn
	Rows    [][]htmlCell
}

type htmlColumn struct {
	Name   string
	Number bool
	Legend string
}

type htmlCell struct{ Text, Class string }

// Classes of cells in the style sheet.
const (
	classNumber = "n"
	classWide   = "wrap"
	classBad    = "bad"
	classGood   = "good"
)

func cell(text string) htmlCell   { return htmlCell{Text: text} }
func figure(text string) htmlCell { return htmlCell{Text: text, Class: classNumber} }
func wide(text string) htmlCell   { return htmlCell{Text: text, Class: classWide} }

// count is a number; a fault that is not 0 is marked.
func count(n int64, fault bool) htmlCell {
	c := figure(result.FormatInt(n))
	if fault && n != 0 {
		c.Class += " " + classBad
	}
	return c
}

func names(numbers bool, names ...string) (cols []htmlColumn) {
	for _, n := range names {
		cols = append(cols, htmlColumn{Name: n, Number: numbers})
	}
	return cols
}

// summaryTable is t, the table of every format.
func summaryTable(t *table) htmlTable {
	h := htmlTable{Label: "summary"}
	for _, c := range t.Columns {
		h.Columns = append(h.Columns, htmlColumn{c.Name, c.Number, c.Legend})
	}
	for i := range t.Rows {
		var row []htmlCell
		for j, text := range t.row(i) {
			one := cell(shorten(text))
			if t.Columns[j].Number {
				one.Class = classNumber
			}
			row = append(row, one)
		}
		h.Rows = append(h.Rows, row)
	}
	return h
}

// percentileTable has the numbers of the percentile curves.
func percentileTable(r *result.Report) htmlTable {
	h := htmlTable{Label: "latency percentiles", Columns: append(names(false, "case"),
		names(true, "messages", "min", "P50", "P90", "P99", "P99.9", "P99.99", "max")...)}
	for _, c := range r.Cases {
		l := c.Latency.EndToEnd
		if l == nil {
			continue
		}
		row := []htmlCell{cell(c.ID), figure(result.FormatInt(l.Count))}
		for _, ns := range []int64{l.MinNS, l.P50NS, l.P90NS, l.P99NS, l.P999NS, l.P9999NS, l.MaxNS} {
			row = append(row, figure(result.FormatNS(float64(ns))))
		}
		h.Rows = append(h.Rows, row)
	}
	return h
}

// ledgerTable is the complete delivery account.
func ledgerTable(r *result.Report) htmlTable {
	h := htmlTable{Label: "delivery", Columns: append(names(false, "case"), names(true, "scheduled", "sent", "unsent", "acked", "rejected",
		"expected", "received", "delivered", "lost", "duplicated", "reordered", "corrupted", "unexpected", "late")...)}
	for _, c := range r.Cases {
		d := c.Delivery
		h.Rows = append(h.Rows, []htmlCell{
			cell(c.ID), count(d.Scheduled, false), count(d.Sent, false), count(d.Unsent, true), count(d.Acked, false), count(d.Nacked, true),
			count(d.Expected, false), count(d.Received, false), count(d.Delivered, false), count(d.Lost, true), count(d.Duplicated, true),
			count(d.Reordered, true), count(d.Corrupted, true), count(d.Foreign, true), count(d.Late, true),
		})
	}
	return h
}

func gateTable(gates []result.GateResult) htmlTable {
	h := htmlTable{Label: "gates", Columns: append(names(false, "verdict", "gate", "case"), htmlColumn{Name: "value", Number: true}, htmlColumn{Name: "found"})}
	for _, g := range gates {
		verdict, rule := htmlCell{"FAILED", classBad}, g.Rule
		if g.Passed {
			verdict = htmlCell{"ok", classGood}
			if metric, op, limit, ok := g.Condition(); ok {
				rule = joined(" ", metric, op, limit)
			}
		}
		h.Rows = append(h.Rows, []htmlCell{verdict, cell(rule), cell(g.Case), figure(gateValue(g)), wide(g.Message)})
	}
	return h
}

func factTable(r *result.Report) htmlTable {
	h := htmlTable{Label: "environment", Columns: names(false, "what", "value")}
	for _, f := range facts(r) {
		h.Rows = append(h.Rows, []htmlCell{cell(f.Key), wide(f.Value)})
	}
	return h
}
