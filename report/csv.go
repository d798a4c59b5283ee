package report

import (
	"bytes"
	"encoding/csv"
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

// csvColumn is one column of CSV: its name, and its cell for a case.
type csvColumn struct {
	name string
	cell func(*result.Case) string
}

// writeCSV writes one row per case (RFC 4180, UTF-8, lines end in LF): "case", a
// column per parameter, then numbers under their names in the report file
// ("summary.mean_ns", "latency.end_to_end.p99_ns", "delivery.lost"), plain and
// in nanoseconds, and last what identifies the run. A value that does not exist
// is an empty cell. Text that a spreadsheet would run as a formula gets a
// leading apostrophe.
func writeCSV(w io.Writer, r *result.Report) error {
	columns := csvColumns(r)
	var b bytes.Buffer
	out := csv.NewWriter(&b)
	row := make([]string, len(columns))
	for i, c := range columns {
		row[i] = c.name
	}
	rows := [][]string{row}
	for i := range r.Cases {
		row := make([]string, len(columns))
		for j, c := range columns {
			row[j] = c.cell(&r.Cases[i])
		}
		rows = append(rows, row)
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write csv: %w", err)
	}
	return flush(w, &b)
}

func csvColumns(r *result.Report) []csvColumn {
	cols := []csvColumn{{"case", func(c *result.Case) string { return csvText(c.ID) }}}
	for _, key := range paramKeys(r.Cases) {
		cols = append(cols, csvColumn{csvText(key), func(c *result.Case) string { return csvParam(c, key) }})
	}
	cols = append(cols, csvSection("summary", func(c *result.Case) any { return c.Summary }, "n", "mean_ns", "error_ns", "stddev_ns",
		"median_ns", "min_ns", "max_ns", "req_per_sec", "messages_per_sec", "bytes_per_sec")...)
	if slices.ContainsFunc(r.Cases, func(c result.Case) bool { return c.Offered != nil }) {
		cols = append(cols, csvSection("offered", func(c *result.Case) any { return c.Offered }, "messages_per_sec", "achieved_per_sec")...)
	}
	for i, leg := range (result.Latency{}).All() {
		of := func(c *result.Case) any { return c.Latency.All()[i].Histogram }
		if slices.ContainsFunc(r.Cases, func(c result.Case) bool { return c.Latency.All()[i].Histogram != nil }) {
			cols = append(cols, csvSection("latency."+leg.Name, of, "count", "min_ns", "mean_ns", "p50_ns", "p90_ns", "p99_ns",
				"p999_ns", "p9999_ns", "max_ns")...)
		}
	}
	cols = append(cols, csvSection("delivery", func(c *result.Case) any { return c.Delivery }, "scheduled", "sent", "unsent", "acked",
		"nacked", "expected", "received", "delivered", "lost", "duplicated", "reordered", "corrupted", "foreign", "late", "counts_only")...)
	cols = append(cols, csvSection("clients", func(c *result.Case) any { return c.Clients }, "planned", "connected", "lost", "reconnects")...)
	cols = append(cols, csvSection("cpu", func(c *result.Case) any { return c.CPU }, "user_ns", "system_ns")...)
	return append(cols, csvTail(r)...)
}

// csvSection reads the named fields of one section from its JSON, so that a column and the
// report file cannot differ.
func csvSection(section string, of func(*result.Case) any, fields ...string) []csvColumn {
	cols := make([]csvColumn, len(fields))
	for i, field := range fields {
		cols[i] = csvColumn{section + "." + field, func(c *result.Case) string { return jsonField(of(c), field) }}
	}
	return cols
}

// jsonField is the field of v in JSON, "" if it is null or v is.
func jsonField(v any, field string) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "" // NaN or infinity: no value
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(b, &fields) != nil || string(fields[field]) == "null" {
		return ""
	}
	return string(fields[field])
}

func csvTail(r *result.Report) []csvColumn {
	same := func(s string) func(*result.Case) string { return func(*result.Case) string { return csvText(s) } }
	return []csvColumn{
		{"window", func(c *result.Case) string { return strconv.Itoa(c.Window) }},
		{"errors", func(c *result.Case) string { return strconv.FormatInt(faults(c), 10) }},
		{"warnings", func(c *result.Case) string { return csvText(strings.Join(codesOf(c), " ")) }},
		{"bottleneck", func(c *result.Case) string { return csvText(limitOf(c)) }},
		{"run.id", same(r.Run.ID)},
		{"run.started", same(stamp(r.Run.Started))},
		{"run.status", same(r.Run.Status)},
		{"tool.version", same(r.Tool.Version)},
		{"target.url", same(r.Target.URL)},
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// faults counts the faults of c of all kinds.
func faults(c *result.Case) (n int64) {
	for _, e := range c.Errors {
		n += e.Count
	}
	return n
}

func codesOf(c *result.Case) (codes []string) {
	for _, w := range c.Warnings {
		codes = append(codes, w.Code)
	}
	return codes
}

func limitOf(c *result.Case) string {
	if c.Bottleneck == nil {
		return ""
	}
	return c.Bottleneck.Kind
}

func csvParam(c *result.Case, key string) string {
	for _, p := range c.Params {
		if p.Key == key {
			return csvText(p.Value)
		}
	}
	return ""
}

// csvText makes text safe for terminals and for spreadsheets, which run cells
// that begin with one of = + - @ and their full-width forms (OWASP, CSV
// injection). A number is left alone: -1 is not a formula.
func csvText(s string) string {
	p := text.Plain(s)
	if _, err := strconv.ParseFloat(p, 64); err == nil {
		return p
	}
	if strings.ContainsAny(firstRune(strings.TrimLeft(p, " ")), "=+-@＝＋－＠") {
		return "'" + p
	}
	return p
}

func firstRune(s string) string {
	for _, r := range s {
		return string(r)
	}
	return ""
}
