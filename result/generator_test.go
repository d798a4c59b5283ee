package result

import (
	"slices"
	"strings"
	"testing"
)

// limited is a report of one case of a closed loop, or an open one, with a mean
// around ns per request, and what limited it.
func limited(id string, ns int64, kind string, change func(*Report)) *Input {
	c := steady(15, 1e6*ns, 1_000_000)
	c.ID, c.Params = "qos=1", []Param{{"qos", "1"}}
	c.Bottleneck = &Bottleneck{Kind: kind, Detail: "CPU 97 % of 2 cores"}
	r := &Report{Cases: []Case{c}}
	r.Run.ID = id
	if change != nil {
		change(r)
	}
	return InputOf(id, r)
}

// TestGeneratorLimit: a target that the load generator limited may be faster, so
// that only a conclusion that is still valid is a verdict (KAT-11).
func TestGeneratorLimit(t *testing.T) {
	const g, b = "generator", "broker"
	embedded := func(r *Report) { r.Target.Embedded = true }
	open := func(r *Report) { embedded(r); r.Cases[0].Offered = &Offered{MessagesPerSec: 1000} }
	for _, tt := range []struct {
		name       string
		ns         int64 // of the head; the base has 1,000
		base, head string
		change     func(*Report)
		want       Verdict
		reason     string
	}{
		{"no limit", 1500, b, b, nil, Slower, ""},
		{"slow head", 1500, b, g, nil, Inconclusive, "measured as slower, but the load generator was the limit: head: CPU 97 % of 2 cores"},
		{"slower than a limited base", 1500, g, b, nil, Slower, ""},
		{"slow base", 700, g, b, nil, Inconclusive, "measured as faster, but the load generator was the limit: base: CPU 97 % of 2 cores"},
		{"faster though limited", 700, b, g, nil, Faster, ""},
		{"same at the limit", 1000, g, g, nil, Inconclusive, "measured as same, but the load generator was the limit: base: CPU 97 % of 2 cores; head: CPU 97 % of 2 cores"},
		{"both, slower", 1500, g, g, nil, Inconclusive, "measured as slower, but the load generator was the limit: base: CPU 97 % of 2 cores; head: CPU 97 % of 2 cores"},
		{"embedded", 1500, g, g, embedded, Slower, ""},
		{"embedded, open loop", 1500, g, g, open, Inconclusive, "measured as slower, but the load generator was the limit: base: CPU 97 % of 2 cores; head: CPU 97 % of 2 cores"},
	} {
		c := compareFiles(t, limited("a", 1000, tt.base, tt.change), limited("b", tt.ns, tt.head, tt.change), CompareOptions{})
		cell := c.Cells[0]
		if cell.Verdict != tt.want || cell.Reason != tt.reason || cell.Regression != (tt.want == Slower) {
			t.Errorf("%s: %s, %q, regression %t", tt.name, cell.Verdict, cell.Reason, cell.Regression)
		}
		counts := (tt.base == g || tt.head == g) && tt.name != "embedded"
		if got := slices.Contains(codes(c.Warnings), CodeGeneratorLimited); got != counts {
			t.Errorf("%s: warned %t of %v", tt.name, got, c.Warnings)
		}
	}
}

func TestGeneratorLimitIsOfAnyFile(t *testing.T) {
	c, err := Compare([]*Input{limited("a", 1000, "broker", nil)},
		[]*Input{limited("b", 1500, "broker", nil), limited("c", 1500, "generator", nil)}, CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Cells[0]; got.Verdict != Inconclusive {
		t.Errorf("%s: %s", got.Verdict, got.Reason)
	}
	if got := message(t, c.Warnings, CodeGeneratorLimited); !strings.Contains(got, "in 0 cells of base and 1 of head") {
		t.Error(got)
	}
}
