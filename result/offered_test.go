package result

import (
	"strings"
	"testing"
)

func TestRateKept(t *testing.T) {
	rate := func(x float64) *float64 { return &x }
	for name, tt := range map[string]struct {
		c    Case
		kept bool
	}{
		"closed loop":      {Case{}, true},
		"kept":             {Case{Offered: &Offered{1000, rate(1000)}}, true},
		"just kept":        {Case{Offered: &Offered{1000, rate(980)}}, true},
		"missed":           {Case{Offered: &Offered{1000, rate(979.9)}}, false},
		"something unsent": {Case{Offered: &Offered{1000, rate(1000)}, Delivery: Delivery{Unsent: 1}}, false},
		"nothing measured": {Case{Offered: &Offered{1000, nil}}, false},
	} {
		if got := tt.c.RateKept(); got != tt.kept {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestMergedOffered(t *testing.T) {
	a, b := 90.0, 70.0
	parts := []*Offered{{100, &a}, {100, &b}}
	if o := mergedOffered(parts, true); o.MessagesPerSec != 200 || *o.Achieved != 160 {
		t.Errorf("side by side: %+v", o)
	}
	if o := mergedOffered(parts, false); o.MessagesPerSec != 100 || *o.Achieved != 80 {
		t.Errorf("one after the other: %+v", o)
	}
	if o := mergedOffered([]*Offered{{100, &a}, nil}, true); o != nil {
		t.Errorf("with a closed loop: %+v", o)
	}
	if l := addedLosses(&Losses{First: 5, Last: 7, Acked: 1}, &Losses{First: 2, Last: 3, Unacked: 4}); *l != (Losses{First: 2, Last: 7, Acked: 1, Unacked: 4}) {
		t.Errorf("losses %+v", l)
	}
	if l := addedLosses(nil, &Losses{First: 2}); l == nil || l.First != 2 {
		t.Errorf("losses %+v", l)
	}
}

// TestAuditRequests: operations are requests, which fan-out has fewer of than
// deliveries; the windows of an open loop need not sum up to its account.
func TestAuditRequests(t *testing.T) {
	c := Case{
		ID: "qos=0", Params: []Param{{"qos", "0"}}, OperationsPerMessage: 1,
		Iterations: []Iteration{{Launch: 1, Stage: StageActual, Index: 1, ElapsedNS: 1e9, Operations: 10, Requests: 10, Sent: 10, Received: 50}},
		Delivery:   Delivery{Scheduled: 11, Sent: 11, Expected: 55, Received: 55, Delivered: 55},
		Offered:    &Offered{MessagesPerSec: 11},
	}
	c.Summary = Summarize(c.Iterations, 1)
	r := Report{Run: Run{Status: StatusComplete}, Cases: []Case{c}}
	fails := func() (out []string) {
		for _, f := range Audit(&Input{Report: &r}) {
			if f.Level == LevelFail {
				out = append(out, f.Message)
			}
		}
		return out
	}
	if f := fails(); f != nil {
		t.Errorf("%q", f)
	}
	r.Cases[0].Iterations[0].Operations = 50
	r.Cases[0].Summary = Summarize(r.Cases[0].Iterations, 1)
	if f := fails(); len(f) != 1 || !strings.Contains(f[0], "50 operations, but 10 requests of 1 each") {
		t.Errorf("%q", f)
	}
	if d := c.Summary.DeliveriesPerSec; d == nil || *d != 50 || *c.Summary.MessagesPerSec != 10 {
		t.Errorf("%+v", c.Summary)
	}
}
