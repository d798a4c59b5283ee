package result

import (
	"strings"
	"testing"
	"time"
)

// TestMergeGates: the gates of every report are judged on what they merge to, and
// no failure gets lost on the way.
func TestMergeGates(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	gated := func(id string, latency int64, rules ...string) *Report {
		r := machine(id, at, time.Second, latency)
		for _, text := range rules {
			g, err := parseRule(text)
			if err != nil {
				r.Gates = append(r.Gates, GateResult{Rule: text, Case: "qos=1", Message: "newer"})
				continue
			}
			r.Gates = append(r.Gates, g.Evaluate(r)...)
		}
		return r
	}
	const newer = "tail(latency) < 5 @ all"
	a := gated("a", 1_000_000, "p99 < 5ms", "fail if lost > 0", "sent >= 6000", newer)
	b := gated("b", 100_000_000, "p99 < 5ms", "lost == 0 @ qos=1", newer)
	m, err := Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		rule   string
		passed bool
	}{{"p99 < 5ms", false}, {"fail if lost > 0", true}, {"sent >= 6000", true}, {"lost == 0 @ qos=1", true}, {newer, false}}
	if len(m.Gates) != len(want) {
		t.Fatalf("gates %+v", m.Gates)
	}
	for i, w := range want {
		if g := m.Gates[i]; g.Rule != w.rule || g.Passed != w.passed || g.Case != "qos=1" {
			t.Errorf("gate %+v, want %+v", g, w)
		}
	}
	if v := *m.Gates[2].Value; v != 6000 {
		t.Errorf("the gate was not judged on the merged case: %g", v)
	}
	var warned []string
	for _, w := range m.Cases[0].Warnings {
		if w.Code == CodeGateFailed {
			warned = append(warned, w.Message)
		}
	}
	if len(warned) != 1 || !strings.HasPrefix(warned[0], `the gate "sent >= 6000" failed in run a (delivery.sent is 3,000)`) {
		t.Errorf("warnings %q", warned)
	}
	if fs := fails(Audit(InputOf("m", m))); len(fs) != 0 {
		t.Errorf("the merged report does not verify: %v", fs)
	}
	// A failure of a rule that had no case in one run, and none in the merged one.
	a, b = gated("a", 1000, "lost == 0 @ qos=2"), gated("b", 1000)
	if m, err = Merge(a, b); err != nil || len(m.Gates) != 1 || m.Gates[0].Passed || m.Gates[0].Case != "" {
		t.Errorf("gates %+v: %v", m.Gates, err)
	}
	// A failure on a case that the rule does not select is of another report.
	a.Gates[0].Case = "qos=2"
	if m, err = Merge(a, b); err != nil || len(m.Gates) != 2 || m.Gates[1].Case != "qos=2" || m.Gates[1].Passed {
		t.Errorf("gates %+v: %v", m.Gates, err)
	}
}
