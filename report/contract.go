package report

import (
	"fmt"

	"github.com/mqttload/mqttload/result"
)

// finding is one reason to fail a build: its kind, the id of its case, "" if it is about
// the run, and one line of text.
type finding struct{ kind, id, text string }

// findings are all reasons to fail r, those of the run first, then by case: an unfinished
// run, broken delivery contracts, failed gates.
func findings(r *result.Report) (fs []finding) {
	if text := runFault(r); text != "" {
		fs = append(fs, finding{"run", "", text})
	}
	for i := range r.Cases {
		fs = append(fs, caseFindings(r, &r.Cases[i])...)
	}
	return append(fs, strayGates(r)...)
}

// runFault says why the run as a whole is not a result, "" if it is complete.
func runFault(r *result.Report) string {
	switch {
	case r.Run.Status == result.StatusPartial:
		return "the run ended before everything was measured"
	case r.Run.Status != result.StatusComplete:
		return "the run failed: see its errors"
	case len(r.Cases) == 0:
		return "no case was run"
	}
	return ""
}

func caseFindings(r *result.Report, c *result.Case) (fs []finding) {
	for _, b := range c.Broken() {
		fs = append(fs, finding{"delivery", c.ID, b.String()})
	}
	for _, g := range r.Gates {
		if g.Case == c.ID && !g.Passed {
			fs = append(fs, finding{"gate", c.ID, gateText(g)})
		}
	}
	return fs
}

// strayGates are failed gates that no case of r has: a rule that selects nothing has not
// passed.
func strayGates(r *result.Report) (fs []finding) {
	known := map[string]bool{}
	for _, c := range r.Cases {
		known[c.ID] = true
	}
	for _, g := range r.Gates {
		if !known[g.Case] && !g.Passed {
			fs = append(fs, finding{"gate", g.Case, gateText(g)})
		}
	}
	return fs
}

func gateText(g result.GateResult) string {
	if g.Message != "" {
		return fmt.Sprintf("gate %s failed: %s", g.Rule, g.Message)
	}
	if g.Value == nil {
		return fmt.Sprintf("gate %s failed: the value does not exist", g.Rule)
	}
	return fmt.Sprintf("gate %s failed: the value is %s", g.Rule, gateValue(g))
}

// wasRun reports whether c was started.
func wasRun(c *result.Case) bool { return len(c.Iterations) > 0 || len(c.Errors) > 0 }
