package result

import (
	"fmt"
	"slices"
)

// mergedGates judges the cases of out by every rule of the reports. No failure of a
// report gets lost: if the rule holds for the merged case, the case gets a warning; if
// it cannot be judged again, the failure stays.
func mergedGates(out *Report, reports []*Report) []GateResult {
	rules := gateRules(reports)
	judged := evaluateAll(rules, out)
	var kept []GateResult
	for _, r := range reports {
		for _, g := range r.Gates {
			if !g.Passed && !failureShown(out, judged, g, r.Run.ID) && !slices.ContainsFunc(kept, g.sameAs) {
				kept = append(kept, g)
			}
		}
	}
	// Judged again: a gate may count the warnings that were just added.
	return append(evaluateAll(rules, out), kept...)
}

func (g GateResult) sameAs(o GateResult) bool { return g.Rule == o.Rule && g.Case == o.Case }

// gateRules are the rules of all reports that this build understands, each once.
func gateRules(reports []*Report) (rules []Gate) {
	for _, r := range reports {
		for _, g := range r.Gates {
			gate, err := parseRule(g.Rule)
			if err != nil || slices.ContainsFunc(rules, func(o Gate) bool { return o.String() == gate.String() }) {
				continue
			}
			rules = append(rules, gate)
		}
	}
	return rules
}

func evaluateAll(rules []Gate, r *Report) (all []GateResult) {
	for _, g := range rules {
		all = append(all, g.Evaluate(r)...)
	}
	return all
}

// failureShown reports whether the failure g of a run shows in the merged report
// out: as a failure among judged, or else as a warning, which it adds.
func failureShown(out *Report, judged []GateResult, g GateResult, run string) bool {
	gate, err := parseRule(g.Rule)
	if err != nil {
		return false
	}
	shown := false
	for _, is := range judged {
		// A failure without a case is of a rule that had none to judge.
		if is.Rule != gate.String() || g.Case != "" && is.Case != g.Case {
			continue
		}
		shown = true
		i := slices.IndexFunc(out.Cases, func(c Case) bool { return c.ID == is.Case })
		if is.Passed && i >= 0 {
			out.Cases[i].Warnings = append(out.Cases[i].Warnings, failedInPart(g, run))
		}
	}
	return shown
}

func failedInPart(g GateResult, run string) Warning {
	why := g.Message
	if why == "" {
		why = "value " + floatText(g.Value)
	}
	return Warning{
		Code:    CodeGateFailed,
		Message: fmt.Sprintf("the gate %q failed in run %s (%s) and passes for all runs together", g.Rule, run, why),
		Hint:    "look at the report of that run",
	}
}
