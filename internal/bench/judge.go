package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// Judge holds what the results of a run are measured against: gates and a
// baseline.
type Judge struct {
	Gates    []result.Gate
	Baseline []*result.Input // none: nothing is compared
	Options  result.CompareOptions
}

// Judgement is the outcome of a [Judge].
type Judgement struct {
	Comparison *result.Comparison // nil without a baseline
	Head       *result.Input      // the run as the comparison's head
	Faults     Faults
}

// thisRun is what a comparison calls the run that is judged.
const thisRun = "this run"

// Check refuses, before hours of load, a baseline from a run under different
// conditions: another machine, target or scenario, or other cases.
func (j *Judge) Check(planned *result.Report, cases []scenarios.Case) Faults {
	if len(j.Baseline) == 0 {
		return nil
	}
	r := *planned
	for _, c := range cases {
		r.Cases = append(r.Cases, result.Case{ID: c.ID, Params: c.Params})
	}
	in := result.InputOf(thisRun, &r)
	in.Target = plannedTarget(cases, j.Baseline[0].Target)
	for i := range in.Cells {
		in.Cells[i].Delivery = nil
	}
	c, err := result.Compare(j.Baseline, []*result.Input{in}, j.Options)
	if err != nil {
		return Faults{baselineFault(err)}
	}
	var bad Faults
	for _, m := range c.Missing {
		if m.Reason == "not in "+m.Side {
			bad.Add(Unlike, "run the cases that the baseline has", "--baseline: %s is %s", m.ID, missingFrom(m))
			break
		}
	}
	return bad
}

// plannedTarget describes the target before anything is sent; nil if there are
// several. What TLS will negotiate is unknown, so it is taken from the baseline.
func plannedTarget(cases []scenarios.Case, base *result.Target) *result.Target {
	t := &result.Target{Embedded: onEmbedded(cases), URL: firstURL(cases)}
	for _, c := range cases {
		if base == nil || len(c.Target.URLs) > 1 || !t.Embedded && c.Target.URLs[0].String() != t.URL {
			return nil
		}
	}
	t.TLS = base.TLS
	return t
}

func missingFrom(m result.MissingCell) string {
	if m.Side == "base" {
		return "not in the baseline"
	}
	return "in the baseline and not in this run"
}

// baselineFault is CompareFault in the words of a run.
func baselineFault(err error) Fault {
	var option *result.OptionError
	if errors.As(err, &option) && option.Option == "threshold" {
		return Faultf(Usage, "", "--max-regression: %s", option.Reason)
	}
	f := CompareFault(err)
	f.Msg = strings.Replace(f.Msg, "the runs are", "this run and the baseline are", 1)
	return f
}

// evaluate evaluates the gates into the report and compares it with the baseline.
func (j *Judge) evaluate(r *result.Report) (out Judgement) {
	for _, g := range j.Gates {
		r.Gates = append(r.Gates, g.Evaluate(r)...)
	}
	if len(j.Baseline) > 0 {
		out.Head = result.InputOf(thisRun, r)
		c, err := result.Compare(j.Baseline, []*result.Input{out.Head}, j.Options)
		if err != nil {
			out.Faults = append(out.Faults, baselineFault(err))
		} else {
			out.Comparison = c
			out.Faults = append(out.Faults, ComparisonFaults(c, false)...)
		}
	}
	out.Faults = append(out.Faults, GateFaults(r.Gates)...)
	return out
}

// GateFaults has one fault for each gate that failed, with the first case that
// failed it.
func GateFaults(gates []result.GateResult) (bad Faults) {
	var failed []result.GateResult
	more := map[string]int{}
	for _, g := range gates {
		if g.Passed {
			continue
		}
		if _, seen := more[g.Rule]; seen {
			more[g.Rule]++
			continue
		}
		more[g.Rule] = 0
		failed = append(failed, g)
	}
	for _, g := range failed {
		where := ""
		if g.Case != "" {
			where = " in " + g.Case
		}
		bad.Add(Gate, "", "gate %q failed: %s%s%s", g.Rule, g.Message, where, AndMore(more[g.Rule]))
	}
	return bad
}

// ComparisonFaults are the reasons why a comparison does not pass.
func ComparisonFaults(c *result.Comparison, strict bool) (bad Faults) {
	if len(c.Cells) == 0 {
		bad.Add(Unlike, "compare runs of the same cases", "no case has a counterpart: nothing was compared")
	} else if n := len(c.Missing); n > 0 {
		m := c.Missing[0]
		bad.Add(Unlike, "compare runs of the same cases", "%s without a counterpart: %s (%s)%s", text.Count(n, "case"), m.ID, m.Reason, AndMore(n-1))
	}
	if n := c.Verdicts(result.Inconclusive); strict && n > 0 {
		bad.Add(Unlike, "run more iterations or launches, on a quieter machine",
			"%d of %s inconclusive, which --strict treats as a failure", n, casesAre(len(c.Cells)))
	}
	if n := c.Regressions(); n > 0 {
		bad.Add(Regression, "", "%s in %s: %s%s", text.Count(n, "regression"), text.Count(len(c.Cells), "case"), firstRegression(c), AndMore(n-1))
	}
	return bad
}

func casesAre(n int) string {
	if n == 1 {
		return "1 case is"
	}
	return result.FormatInt(int64(n)) + " cases are"
}

// AndMore ends a sentence that names the first of several: ", and 2 more".
func AndMore(n int) string {
	if n < 1 {
		return ""
	}
	return fmt.Sprintf(", and %s more", result.FormatInt(int64(n)))
}

// firstRegression describes the first regression: how large it is, and the limit.
func firstRegression(c *result.Comparison) string {
	i := slices.IndexFunc(c.Cells, func(x result.CellComparison) bool { return x.Regression })
	if i < 0 {
		return ""
	}
	cell := &c.Cells[i]
	name := cell.ID
	if c.Across != "" {
		name = fmt.Sprintf("%s with %s=%s", result.CaseID(cell.Params), c.Across, cell.Head.Value)
	}
	if cell.Verdict == result.Slower {
		return fmt.Sprintf("%s takes %.1f %% more time per request, the limit is %.4g %%", name, 100*(*cell.Ratio-1), 100*c.Threshold)
	}
	worse := slices.IndexFunc(cell.Delivery, func(d result.DeliveryChange) bool { return d.Regression })
	return name + ": " + cell.Delivery[worse].Message
}

// CompareFault says why two runs cannot be compared.
func CompareFault(err error) Fault {
	var option *result.OptionError
	var unlike *result.UnlikeError
	switch {
	case errors.As(err, &option) && option.Option == "files":
		return Faultf(Usage, "", "%s", option.Reason)
	case errors.As(err, &option):
		return Faultf(Usage, "", "--%s: %s", option.Option, option.Reason)
	case errors.As(err, &unlike):
		var differences []string
		allow := ""
		for _, d := range unlike.Differences {
			differences = append(differences, d.String())
			if flag := " --allow " + d.Key; !strings.Contains(allow, flag) {
				allow += flag
			}
		}
		return Faultf(Unlike, "compare runs of the same conditions, or accept the differences:"+allow,
			"the runs are unlike: %s", strings.Join(differences, "; "))
	}
	return Faultf(Unlike, "", "%v", err)
}
