package bench

import (
	"fmt"
	"strings"

	"github.com/mqttload/mqttload/internal/preflight"
)

// classOf is the class of the failed lines that takes precedence; 0 if none failed.
func classOf(lines []preflight.Line) Class {
	classes := map[preflight.Cause]Class{
		preflight.Here: Usage, preflight.Unreachable: Unreachable, preflight.Incomplete: Incomplete, preflight.Delivery: Delivery,
	}
	var bad Faults
	for _, l := range lines {
		if l.Status == preflight.Fail {
			bad = append(bad, Fault{Class: classes[l.Cause]})
		}
	}
	if len(bad) == 0 {
		return 0
	}
	return bad.InOrder()[0].Class
}

// CannotRun names the cases that cannot run, one line per reason.
func CannotRun(cells []preflight.Cell) []string {
	ids := map[string][]string{}
	var reasons, lines []string
	for _, c := range cells {
		if c.Runs {
			continue
		}
		if ids[c.Reason] == nil {
			reasons = append(reasons, c.Reason)
		}
		ids[c.Reason] = append(ids[c.Reason], c.ID)
	}
	for _, reason := range reasons {
		which := strings.Join(ids[reason], ", ")
		if n := len(ids[reason]); n == len(cells) && n > 1 {
			which = "any case"
		}
		lines = append(lines, fmt.Sprintf("cannot run %s: %s", which, reason))
	}
	return lines
}
