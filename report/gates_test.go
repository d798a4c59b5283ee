package report

import (
	"strings"
	"testing"

	"github.com/mqttload/mqttload/result"
)

// TestGatesHaveUnits: no format shows the nanoseconds of a gate, nor a passed gate as the
// failure that its rule states.
func TestGatesHaveUnits(t *testing.T) {
	r := matrixReport()
	fast, slow := 3_190_000.0, 25e6
	r.Gates = []result.GateResult{
		{Rule: "fail if p99 > 20ms", Case: r.Cases[0].ID, Value: &fast, Limit: 20e6, Passed: true},
		{Rule: "fail if p99 > 20ms", Case: r.Cases[1].ID, Value: &slow, Limit: 20e6},
	}
	lines := gateLines(r.Gates)
	if want := "  ok      p99 3.190 ms <= 20.00 ms  (" + r.Cases[0].ID + ")"; lines[0] != want {
		t.Errorf("%q, want %q", lines[0], want)
	}
	if want := "  FAILED  fail if p99 > 20ms  (" + r.Cases[1].ID + " is 25.00 ms)"; lines[1] != want {
		t.Errorf("%q, want %q", lines[1], want)
	}
	const failed = "gate fail if p99 > 20ms failed: the value is 25.00 ms"
	if got := strings.Join(ErrorLines(r), "\n"); !strings.Contains(got, failed) {
		t.Errorf("GitHub: %s", got)
	}
	if got := render(t, "junit", r); !strings.Contains(got, "the value is 25.00 ms") {
		t.Errorf("JUnit lacks the value: %s", got)
	}
	rows := gateTable(r.Gates).Rows
	if rows[0][0].Text != "ok" || rows[0][1].Text != "p99 <= 20.00 ms" || rows[0][3].Text != "3.190 ms" || rows[1][3].Text != "25.00 ms" {
		t.Errorf("HTML: %+v", rows)
	}
}
