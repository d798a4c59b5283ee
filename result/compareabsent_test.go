package result

import (
	"encoding/json"
	"slices"
	"testing"
)

// TestCompareZeroCell: a summary that was left in place does not stand in for
// iterations, so that a cell which measured nothing never passes.
func TestCompareZeroCell(t *testing.T) {
	for name, change := range map[string]func(*Case){
		"no iterations": func(c *Case) { c.Iterations = []Iteration{} },
		"warm-up only": func(c *Case) {
			for i := range c.Iterations {
				c.Iterations[i].Stage = StageWarmup
			}
		},
		"no time": func(c *Case) {
			for i := range c.Iterations {
				c.Iterations[i].ElapsedNS = 0
			}
		},
		"no operations": func(c *Case) {
			for i := range c.Iterations {
				c.Iterations[i].Operations = 0
			}
		},
	} {
		cells := map[string][]float64{"qos=0": {1000, 1010, 1020, 1005}, "qos=1": {2000, 2010, 2020, 2005}}
		base, head := sampled("base", cells), sampled("head", cells)
		for _, in := range []*Input{base, head} {
			for i := range in.Report.Cases {
				c := &in.Report.Cases[i]
				c.Summary = Summarize(c.Iterations, c.OperationsPerMessage)
			}
		}
		change(&head.Report.Cases[1])
		head = InputOf("head", head.Report)
		if head.Cells[1].measured() {
			t.Errorf("%s: the cell counts as measured", name)
		}
		c := compareFiles(t, base, head, CompareOptions{})
		if c.Complete() || len(c.Missing) != 1 || c.Missing[0].Side != "head" || c.Missing[0].ID != "qos=1" {
			t.Errorf("%s: complete %t, missing %+v", name, c.Complete(), c.Missing)
		}
	}
}

// TestCompareNoAccount: where one side has an account of delivery and the other
// none, new loss would not show.
func TestCompareNoAccount(t *testing.T) {
	counted := func(name string, lost int64) *Input {
		in := sampled(name, map[string][]float64{"qos=1": {1000, 1010, 1020, 1005}})
		in.Report.Cases[0].Delivery = Delivery{Scheduled: 9, Sent: 9, Expected: 9, Received: 9 - lost, Delivered: 9 - lost, Lost: lost}
		return InputOf(name, in.Report)
	}
	stripped := func(name string) *Input {
		in := counted(name, 3)
		var doc map[string]any
		b, err := json.Marshal(in.Report)
		if err == nil {
			err = json.Unmarshal(b, &doc)
		}
		if err != nil {
			t.Fatal(err)
		}
		doc["cases"].([]any)[0].(map[string]any)["delivery"] = nil
		if b, err = json.Marshal(doc); err != nil {
			t.Fatal(err)
		}
		if in, err = ParseInput(name, b); err != nil {
			t.Fatal(err)
		}
		return in
	}
	table := parseInput(t, "qos\tMean\tError\n1\t1.009 μs\t0.010 μs\n")
	for name, tt := range map[string]struct {
		base, head *Input
		missing    string
		warned     bool
	}{
		"both":     {counted("a", 0), counted("b", 3), "", false},
		"head":     {counted("a", 0), stripped("b"), "head", false},
		"base":     {stripped("a"), counted("b", 3), "base", false},
		"neither":  {stripped("a"), stripped("b"), "", false},
		"table":    {counted("a", 0), table, "", true},
		"a table":  {table, counted("b", 3), "", true},
		"stripped": {table, stripped("b"), "", false},
	} {
		c := compareFiles(t, tt.base, tt.head, CompareOptions{})
		side := ""
		if len(c.Missing) > 0 {
			side = c.Missing[0].Side
		}
		warned := slices.ContainsFunc(c.Warnings, func(w Warning) bool { return w.Code == CodeNoAccount })
		if side != tt.missing || c.Complete() != (tt.missing == "") || warned != tt.warned || len(c.Cells) != 1 {
			t.Errorf("%s: complete %t, missing %v, warnings %v", name, c.Complete(), c.Missing, c.Warnings)
		}
	}
	// One of several files of a side is enough.
	c, err := Compare([]*Input{counted("a", 0)}, []*Input{counted("b", 0), stripped("c")}, CompareOptions{})
	if err != nil || c.Complete() {
		t.Errorf("a pooled head: %+v %v", c, err)
	}
}
