package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/preflight"
	"github.com/mqttload/mqttload/scenarios"
)

// Check refuses what this machine cannot do, before anything is sent; with force,
// memory may run out. The warnings say what it can barely do.
func (c *Config) Check(force bool) (warnings []string, bad Faults) {
	embedded := Embedded(c.Cases)
	for _, l := range checkHost(c.Cases, embedded, thisHost(), &bad) {
		warnings = append(warnings, l.Message+": "+l.Hint)
	}
	if !force {
		checkMemory(c.Cases, embedded, availableMemory(), &bad)
	}
	return warnings, bad
}

// CheckEnds refuses a case that would never end where others wait for it.
func CheckEnds(cases []scenarios.Case) (bad Faults) {
	for i := range cases {
		if unbounded(cases[i].Load) && len(cases) > 1 {
			bad.Usage("give --duration", "case %d of %d would never end, and the other cases would wait for it", i+1, len(cases))
			break
		}
	}
	return bad
}

// CheckList checks this host and, where that can run the cases, the broker, by
// sending a handful of packets. The class is that of what failed, 0 where
// nothing did; the error is a [Fault].
func CheckList(ctx context.Context, cases []scenarios.Case, runID string) (list preflight.Checklist, worst Class, err error) {
	lines := thisHost().Check(cases, descriptors(cases, Embedded(cases)))
	if worst = classOf(lines); worst != 0 {
		return preflight.Checklist{Lines: lines, Cells: preflight.NoCells(cases, "this host cannot run them")}, worst, nil
	}
	r, err := Open(Config{Cases: cases})
	if err != nil {
		return list, 0, err
	}
	defer r.Close()
	list = preflight.Brokers(ctx, r.cases, preflight.Options{RunID: runID})
	if errors.Is(context.Cause(ctx), ErrInterrupted) {
		return list, 0, Faultf(Interrupted, "", "interrupted")
	}
	list.Lines = slices.Concat(lines, list.Lines)
	return list, classOf(list.Lines), nil
}

// classOf is what the failed lines of a list of checks amount to; 0 where none
// failed.
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

// CannotRun names the cases that cannot run, a line for each reason.
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
