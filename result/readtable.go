package result

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Printed is one number of a table as it was printed.
type Printed struct {
	Text     string
	Value    float64 // ns if the field has a unit of time
	Half     float64 // half of its last digit, in the same unit: what rounding hides
	Decimals int
	Unit     string // "μs"; "" for none
}

// PrintedColumn is a column of a printed table.
type PrintedColumn struct {
	Name string
	Unit string // if the header has it: "Mean [μs]"
}

// table is the rows of one printed table, header first.
type table struct {
	columns []PrintedColumn
	rows    [][]string
	lines   []int // number of each row's line, from 1
}

// parseTables reads every table with a Mean column among lines, and the header before the
// first. It returns nil if there is none.
func parseTables(lines []string) (*Input, error) {
	in := &Input{}
	for i := 0; i < len(lines); {
		fields, format := splitRow(lines[i])
		if !hasColumn(fields, "Mean") {
			in.header(lines[i])
			i++
			continue
		}
		t := table{columns: headerColumns(fields)}
		for i++; i < len(lines); i++ {
			row, f := splitRow(lines[i])
			if f != format {
				break
			}
			if !isRule(row) {
				t.rows, t.lines = append(t.rows, row), append(t.lines, i+1)
			}
		}
		if in.Format == "" {
			in.Format, in.Columns = format, t.columns
		}
		if err := in.addRows(t); err != nil {
			return nil, err
		}
	}
	if in.Format == "" {
		return nil, nil
	}
	in.applyHeader()
	return in, nil
}

// splitRow returns the fields of a line of a table, and its format; no fields
// for other lines.
func splitRow(line string) ([]string, string) {
	format := FormatTSV
	var fields []string
	switch {
	case strings.Contains(line, "\t"):
		fields = strings.Split(line, "\t")
	case strings.Contains(line, "|"):
		format = FormatMarkdown
		fields = splitBars(line)
	default:
		return nil, ""
	}
	for i, f := range fields {
		f = strings.TrimSpace(f)
		if len(f) > 4 && strings.HasPrefix(f, "**") && strings.HasSuffix(f, "**") {
			f = f[2 : len(f)-2] // the first row of a group is bold
		}
		fields[i] = f
	}
	return fields, format
}

// splitBars splits at bars that no backslash escapes; the outer ones are optional.
func splitBars(line string) []string {
	var fields []string
	var b strings.Builder
	line = strings.TrimPrefix(strings.TrimSpace(line), "|")
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line) && line[i+1] == '|':
			i++
			b.WriteByte('|')
		case line[i] == '|':
			fields = append(fields, b.String())
			b.Reset()
		default:
			b.WriteByte(line[i])
		}
	}
	if strings.TrimSpace(b.String()) != "" {
		fields = append(fields, b.String())
	}
	return fields
}

// isRule reports whether row is a line of dashes, or empty as between groups.
func isRule(row []string) bool {
	for _, f := range row {
		if strings.Trim(f, "-:") != "" {
			return false
		}
	}
	return true
}

var unitInHeader = regexp.MustCompile(`^(.*?) \[(\S+)\]$`)

func headerColumns(fields []string) []PrintedColumn {
	columns := make([]PrintedColumn, len(fields))
	for i, f := range fields {
		columns[i].Name = f
		if m := unitInHeader.FindStringSubmatch(f); m != nil && timeFactor(m[2]) > 0 {
			columns[i] = PrintedColumn{m[1], m[2]}
		}
	}
	return columns
}

func hasColumn(fields []string, name string) bool {
	for _, c := range headerColumns(fields) {
		if c.Name == name {
			return true
		}
	}
	return false
}

func (in *Input) addRows(t table) error {
	if err := t.pointed(); err != nil {
		return err
	}
	for n, row := range t.rows {
		if len(row) != len(t.columns) {
			return notReport("row %d has %d fields, the header has %d: is it truncated?", n+1, len(row), len(t.columns))
		}
		c, err := t.cell(row)
		if err != nil {
			return notReport("row %d: %v", n+1, err)
		}
		in.Cells = append(in.Cells, c)
	}
	return nil
}

// cell reads one row. BenchmarkDotNet prints parameters before Mean. Its Job is not one,
// because its name is random.
func (t table) cell(row []string) (Cell, error) {
	c := Cell{Printed: map[string]Printed{}}
	params := true
	for i, col := range t.columns {
		if col.Name == "Mean" {
			params = false
		}
		switch {
		case params && col.Name == "Job" && (row[i] == "DefaultJob" || strings.HasPrefix(row[i], "Job-")):
		case params:
			c.Params = append(c.Params, Param{Key: col.Name, Value: row[i]})
		default:
			p, ok, err := parsePrinted(row[i], col.Unit)
			if err != nil && c.summaryField(col.Name) != nil {
				return Cell{}, fmt.Errorf("%s: %w", col.Name, err)
			}
			if ok && err == nil {
				c.Printed[col.Name] = p
				c.set(col.Name, p)
			}
		}
	}
	c.ID = CaseID(c.Params)
	if m, ok := c.Printed["Mean"]; ok && m.Unit == "" {
		return Cell{}, fmt.Errorf("Mean %q has no unit of time", m.Text)
	}
	return c, checkSummary(c.Summary)
}

// summaryField is where the column of that name belongs, or nil.
func (c *Cell) summaryField(column string) **float64 {
	s := &c.Summary
	switch column {
	case "Mean":
		return &s.MeanNS
	case "Error":
		return &s.ErrorNS
	case "StdDev":
		return &s.StdDevNS
	case "Median":
		return &s.MedianNS
	case "Min":
		return &s.MinNS
	case "Req/sec", "Op/s":
		return &s.ReqPerSec
	}
	return nil
}

func (c *Cell) set(column string, p Printed) {
	if f := c.summaryField(column); f != nil {
		*f = &p.Value
	}
}

// number is how tables print one: with thousands separators or without.
var number = regexp.MustCompile(`^(-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d+))?)(?:\s*(\S+))?$`)

// parsePrinted reads "5.265 μs" or "189,944.65"; ok is false for a missing
// value ("NA", "?", "-"). The unit may come from the header of the column.
func parsePrinted(text, unit string) (p Printed, ok bool, err error) {
	switch strings.ToUpper(text) {
	case "", "NA", "N/A", "?", "-":
		return Printed{}, false, nil
	}
	m := number.FindStringSubmatch(text)
	if m == nil {
		return Printed{}, false, fmt.Errorf("%q is not a number", text)
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
	if err != nil {
		return Printed{}, false, fmt.Errorf("%q is not a number", text)
	}
	if m[3] != "" {
		unit = m[3]
	}
	p = Printed{Text: text, Value: v, Half: 0.5, Decimals: len(m[2]), Unit: unit}
	for range p.Decimals {
		p.Half /= 10
	}
	if unit != "" {
		f := timeFactor(unit)
		if f == 0 {
			return Printed{}, false, fmt.Errorf("%q has a unit that is not a time", text)
		}
		p.Value, p.Half = v*f, p.Half*f
	}
	return p, true, nil
}

// timeFactor is how many nanoseconds a unit has, 0 if it is not a unit of time.
// The micro sign comes as U+03BC, U+00B5 and u.
func timeFactor(unit string) float64 {
	switch unit {
	case "ns":
		return 1
	case "μs", "µs", "us":
		return 1e3
	case "ms":
		return 1e6
	case "s":
		return 1e9
	case "m":
		return 60e9
	}
	return 0
}
