package bench

import (
	"context"
	"errors"
	"slices"

	"github.com/mqttload/mqttload/internal/preflight"
	"github.com/mqttload/mqttload/scenarios"
)

// Check refuses a run that this machine cannot do, before anything is sent; with
// force, memory is not checked. The warnings are about limits that are nearly
// reached.
func (c *Config) Check(force bool) (warnings []string, bad Faults) {
	embedded := onEmbedded(c.Cases)
	for _, l := range checkHost(c.Cases, embedded, thisHost(), &bad) {
		warnings = append(warnings, l.Message+": "+l.Hint)
	}
	if !force {
		checkMemory(c.Cases, embedded, availableMemory(), &bad)
	}
	return warnings, bad
}

// CheckEnds refuses a case that would never end while others wait for it.
func CheckEnds(cases []scenarios.Case) (bad Faults) {
	for i := range cases {
		if unbounded(cases[i].Load) && len(cases) > 1 {
			bad.Usage("give --duration", "case %d of %d would never end, and the other cases would wait for it", i+1, len(cases))
			break
		}
	}
	return bad
}

// CheckList checks this host and, if the host can run the cases, the broker, with
// a few packets. worst is the class of the failed checks, 0 if none failed; the
// error is a [Fault].
func CheckList(ctx context.Context, cases []scenarios.Case, runID string) (list preflight.Checklist, worst Class, err error) {
	lines := thisHost().Check(cases, descriptors(cases, onEmbedded(cases)))
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
