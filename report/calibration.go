package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
)

// writeCalibration writes what calibrate found: the ceilings of the tool on this machine,
// and the known answers. grid writes a table, list the lines of a section.
func writeCalibration(r *result.Report, grid func(*table) error, list func(name string, lines []string)) error {
	list("This tool's ceiling here, messages per second (best round)", nil)
	if err := grid(ceilingTable(r.Cases)); err != nil {
		return err
	}
	list("Known answers", answerLines(r.Calibration.Answers))
	return nil
}

// consoleCalibration is the body of a calibration's console report.
func consoleCalibration(b *bytes.Buffer, r *result.Report) error {
	fmt.Fprintf(b, "%s\n\n", calibrationLine(r))
	return writeCalibration(r,
		func(t *table) error { return consoleGrid(b, t) },
		func(name string, lines []string) { writeHeading(b, name, lines) })
}

// writeHeading writes a section, or only its heading if a table follows.
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

// calibrationLine says how the numbers were measured.
func calibrationLine(r *result.Report) string {
	c := r.Calibration
	line := fmt.Sprintf("Calibration: %d interleaved rounds", c.Rounds)
	if c.LoadAverage != nil {
		line += fmt.Sprintf("; load average before %.1f", *c.LoadAverage)
	}
	return line
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
