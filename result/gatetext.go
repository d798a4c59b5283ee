package result

import (
	"math"
	"strings"
)

// opposites are the operators that hold where another does not.
var opposites = map[string]string{"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}

// Condition is what r asks for, with units: "p99", "<=", "20.00 ms", also where the rule
// states the failure, p99 > 20ms. ok is false for a rule of a newer version.
func (r GateResult) Condition() (metric, op, limit string, ok bool) {
	g, err := parseRule(r.Rule)
	if err != nil {
		return "", "", "", false
	}
	metric, op = strings.TrimSpace(g.Text[:strings.IndexAny(g.Text, "<>=!")]), g.Op
	if g.FailIf {
		op = opposites[op]
	}
	return metric, op, g.format(r.Limit), true
}

// ValueText is the value with its unit, or as a bare number if the rule is of a newer
// version; "" if there is no value.
func (r GateResult) ValueText() string {
	if r.Value == nil {
		return ""
	}
	if g, err := parseRule(r.Rule); err == nil {
		return g.format(*r.Value)
	}
	if *r.Value == math.Trunc(*r.Value) {
		return FormatFloat(*r.Value, 0)
	}
	return FormatFloat(*r.Value, Decimals(*r.Value))
}
