package result

import "testing"

// TestGateResultText: results have units, and the condition is what must hold.
func TestGateResultText(t *testing.T) {
	for rule, tt := range map[string]struct {
		value, limit float64
		want         string
	}{
		"fail if p99 > 20ms":           {3_190_000, 20e6, "p99 3.190 ms <= 20.00 ms"},
		"p99 < 20ms @ qos=1":           {3_190_000, 20e6, "p99 3.190 ms < 20.00 ms"},
		"fail if lost > 0":             {0, 0, "lost 0 <= 0"},
		"fail if lost != 0":            {0, 0, "lost 0 == 0"},
		"lost <= 0.5 %":                {0.25, 0.5, "lost 0.25 % <= 0.5 %"},
		"summary.bytes_per_sec >= 1kB": {2048, 1000, "summary.bytes_per_sec 2,048 B/s >= 1,000 B/s"},
		"messages_per_sec > 30k":       {40_000.5, 30_000, "messages_per_sec 40,000.50 > 30,000"},
	} {
		r := GateResult{Rule: rule, Value: &tt.value, Limit: tt.limit, Passed: true}
		metric, op, limit, ok := r.Condition()
		if got := metric + " " + r.ValueText() + " " + op + " " + limit; !ok || got != tt.want {
			t.Errorf("%s: %q, want %q", rule, got, tt.want)
		}
	}
	v := 7.0
	r := GateResult{Rule: "p42 of tomorrow", Value: &v}
	if _, _, _, ok := r.Condition(); ok || r.ValueText() != "7" {
		t.Errorf("a rule of a newer version: %t, %q", ok, r.ValueText())
	}
}
