package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/mqttload/mqttload/result"
)

// render writes the table as Markdown, how many goals hold, and which do not.
func render(out io.Writer, m *measurement) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d interleaved rounds, medians (least-most); CPU is that of getrusage.\n\n", m.Rounds)
	b.WriteString("| What | At | Value | Ratio | Goal | Verdict |\n|---|---|---:|---:|---|---|\n")
	for i := range m.table {
		f := &m.table[i]
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", f.Name, at(f.Params), f.Value.text(f.Unit), f.ratio(), f.goal(), f.verdict())
	}
	b.WriteString("\n" + strings.Join(verdictLines(m.table), "\n") + "\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// at lists the values of the params, with a unit or a word if a value needs one.
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

// text is "34.91 ns (30.12-41.70)".
func (s *spread) text(unit string) string {
	if s == nil {
		return "NA"
	}
	median := quantity(s.Median, unit)
	if s.Min == s.Max {
		return median
	}
	return fmt.Sprintf("%s (%s-%s)", median, quantity(s.Min, unit), quantity(s.Max, unit))
}

func (f *figure) ratio() string {
	if f.Against == "" {
		return ""
	}
	if f.Ratio == nil {
		return "NA"
	}
	return fmt.Sprintf("%.2fx %s (%.2f-%.2f)", f.Ratio.Median, f.Against, f.Ratio.Min, f.Ratio.Max)
}

func (f *figure) goal() string {
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

func (f *figure) verdict() string {
	if f.Reason != "" {
		return f.Verdict + ": " + f.Reason
	}
	return f.Verdict
}

// quantity prints v in unit, scaled to a readable size.
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

func count(table []figure, verdict string) (n int) {
	for i := range table {
		if table[i].Verdict == verdict {
			n++
		}
	}
	return n
}

func verdictLines(table []figure) []string {
	goals, aim := len(table)-count(table, verdictNoGoal), count(table, verdictAim)
	lines := []string{fmt.Sprintf("%d of %d goals hold, %d of them reach the aim; %d missed, %d not measured.",
		aim+count(table, verdictHolds), goals, aim, count(table, verdictMisses), count(table, verdictNotMeasured))}
	for i := range table {
		f := &table[i]
		if f.Verdict != verdictMisses {
			continue
		}
		seen := f.ratio()
		if f.Against == "" {
			seen = f.Value.text(f.Unit)
		}
		lines = append(lines, fmt.Sprintf("- missed: %s (%s): %s, %s", f.Name, at(f.Params), seen, f.goal()))
	}
	return lines
}
