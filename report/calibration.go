package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
)

// writeCalibration writes what calibrate found: the figures with their goals,
// how far the tool goes here, and the known answers. grid writes a table, list
// the lines of a section.
func writeCalibration(r *result.Report, grid func(*table) error, list func(name string, lines []string)) error {
	c := r.Calibration
	if err := grid(figureTable(c)); err != nil {
		return err
	}
	list("Verdict", verdictLines(c))
	list("This tool's ceiling here, messages per second (best round)", nil)
	if err := grid(ceilingTable(r.Cases)); err != nil {
		return err
	}
	list("Known answers", answerLines(c.Answers))
	return nil
}

// consoleCalibration is the body of a calibration's console report.
func consoleCalibration(b *bytes.Buffer, r *result.Report) error {
	fmt.Fprintf(b, "%s\n\n", calibrationLine(r))
	return writeCalibration(r,
		func(t *table) error { return consoleGrid(b, t) },
		func(name string, lines []string) { writeHeading(b, name, lines) })
}

// writeHeading writes a section whose lines may be a table that follows.
func writeHeading(b *bytes.Buffer, name string, lines []string) {
	fmt.Fprintf(b, "\n// * %s *\n", name)
	writeLines(b, lines)
}

// markdownCalibration is the body of a calibration's Markdown report.
func markdownCalibration(b *bytes.Buffer, r *result.Report) error {
	fmt.Fprintf(b, "%s\n\n", calibrationLine(r))
	return writeCalibration(r,
		func(t *table) error { return markdownGrid(b, t) },
		func(name string, lines []string) {
			if len(lines) == 0 {
				fmt.Fprintf(b, "\n**%s**\n\n", name)
			}
			writeList(b, name, lines)
		})
}

// calibrationLine says how the figures came about.
func calibrationLine(r *result.Report) string {
	c := r.Calibration
	line := fmt.Sprintf("Calibration: %d interleaved rounds, medians (least-most); CPU is that of getrusage", c.Rounds)
	if c.LoadAverage != nil {
		line += fmt.Sprintf("; load average before %.1f", *c.LoadAverage)
	}
	return line
}

func figureTable(c *result.Calibration) *table {
	t := &table{Rows: len(c.Figures)}
	columns := []column{{Name: "What"}, {Name: "At"}, {Name: "Value", Number: true}, {Name: "Ratio", Number: true}, {Name: "Goal"}, {Name: "Verdict"}}
	for _, f := range c.Figures {
		for i, cell := range []string{f.Name, at(f.Params), spread(f.Value, f.Unit), ratio(f), goal(f), verdict(f)} {
			columns[i].Cells = append(columns[i].Cells, cell)
		}
	}
	t.Columns = columns
	return t
}

// at names the params by their values alone, with what makes a value clear.
func at(params []result.Param) string {
	var parts []string
	for _, p := range params {
		switch p.Key {
		case "qos":
			parts = append(parts, "QoS "+p.Value)
		case "payload":
			parts = append(parts, p.Value+" B")
		case "rate":
			parts = append(parts, p.Value+"/s")
		case "connections", "pairs":
			if p.Value == "1" {
				p.Key = strings.TrimSuffix(p.Key, "s")
			}
			parts = append(parts, p.Value+" "+p.Key)
		default:
			parts = append(parts, p.Value)
		}
	}
	return strings.Join(parts, ", ")
}

// spread is "34.91 ns (30.12-41.70)".
func spread(s *result.Spread, unit string) string {
	if s == nil {
		return nA
	}
	median := quantity(s.Median, unit)
	if s.Min == s.Max {
		return median
	}
	return fmt.Sprintf("%s (%s-%s)", median, quantity(s.Min, unit), quantity(s.Max, unit))
}

func ratio(f result.Figure) string {
	if f.Against == "" {
		return ""
	}
	if f.Ratio == nil {
		return nA
	}
	return fmt.Sprintf("%.2fx %s (%.2f-%.2f)", f.Ratio.Median, f.Against, f.Ratio.Min, f.Ratio.Max)
}

func goal(f result.Figure) string {
	unit := f.Unit
	if f.Against != "" {
		unit = "x"
	}
	switch {
	case f.Must == nil:
		return ""
	case f.Aim == nil:
		return "at most " + quantity(*f.Must, unit)
	}
	return fmt.Sprintf("at most %s, aim %s", quantity(*f.Must, unit), quantity(*f.Aim, unit))
}

func verdict(f result.Figure) string {
	if f.Reason != "" {
		return f.Verdict + ": " + f.Reason
	}
	return f.Verdict
}

// quantity prints v in unit: times and bytes in the size that suits them.
func quantity(v float64, unit string) string {
	switch unit {
	case "ns":
		return signed(v)
	case "bytes":
		return result.FormatFloat(v/1024, 1) + " KiB"
	case "/s":
		return result.FormatFloat(v, 0) + "/s"
	case "%":
		return fmt.Sprintf("%.3g %%", v)
	case "x":
		return fmt.Sprintf("%gx", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// signed is a time that may be a difference, with three digits.
func signed(ns float64) string {
	u := result.UnitFor(math.Abs(ns))
	return fmt.Sprintf("%.3g %s", ns/u.NS, u.Name)
}

func verdictLines(c *result.Calibration) []string {
	goals := len(c.Figures) - c.Count(result.FigureNoGoal)
	aim := c.Count(result.FigureAim)
	lines := []string{fmt.Sprintf("  %d of %d goals hold, %d of them reach what was aimed at; %d missed, %d not measured",
		aim+c.Count(result.FigureHolds), goals, aim, c.Count(result.FigureMisses), c.Count(result.FigureNotMeasured))}
	for _, f := range c.Figures {
		if f.Verdict != result.FigureMisses {
			continue
		}
		seen := ratio(f)
		if f.Against == "" {
			seen = spread(f.Value, f.Unit)
		}
		lines = append(lines, fmt.Sprintf("  missed: %s (%s): %s, %s", f.Name, at(f.Params), seen, goal(f)))
	}
	return lines
}

// ceilingTable has a row per transport, QoS and payload, and a column for each
// place of the broker.
func ceilingTable(cases []result.Case) *table {
	keys := []string{"transport", "qos", "payload", "protocol"}
	columns := make([]column, len(keys), len(keys)+2)
	for i, k := range keys {
		columns[i] = column{Name: k, Number: i > 0}
	}
	for _, name := range []string{result.PlaceIn, result.PlaceOwn} {
		columns = append(columns, column{Name: name, Number: true})
	}
	var rows []string
	for _, c := range cases {
		if paramValue(c, result.ParamWork) != result.WorkEngine {
			continue
		}
		var row []string
		for _, k := range keys {
			row = append(row, paramValue(c, k))
		}
		id := strings.Join(row, "/")
		at := slices.Index(rows, id)
		if at < 0 {
			at, rows = len(rows), append(rows, id)
			for i := range columns {
				columns[i].Cells = append(columns[i].Cells, append(row, nA, nA)[i])
			}
		}
		for i := range columns {
			if columns[i].Name == paramValue(c, result.ParamPlace) && c.BestPerSec() > 0 {
				columns[i].Cells[at] = result.FormatFloat(c.BestPerSec(), 0)
			}
		}
	}
	return &table{Rows: len(rows), Columns: columns}
}

func answerLines(answers []result.Answer) (lines []string) {
	for _, a := range answers {
		if a.Passed {
			lines = append(lines, fmt.Sprintf("  right  %s: %s", text.Plain(a.Name), text.Plain(a.Seen)))
			continue
		}
		lines = append(lines, fmt.Sprintf("  WRONG  %s: expected %s, seen %s", text.Plain(a.Name), text.Plain(a.Expected), text.Plain(a.Seen)))
	}
	return lines
}

// ceilingLines says for each case how much of the tool's own ceiling it reached.
func ceilingLines(cases []result.Case) []string {
	var items []perCase
	for _, c := range cases {
		if k := c.Ceiling; k != nil {
			items = append(items, perCase{c.ID, fmt.Sprintf("%.0f %% of the %s msg/s that this tool reaches on this machine",
				100*k.Share, result.FormatFloat(k.MessagesPerSec, 0))})
		}
	}
	return arrows(items)
}
