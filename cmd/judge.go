package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// judge is what a run's results are held against: gates and a baseline. All of
// it is read and checked before the first connection.
type judge struct {
	gates    []result.Gate
	baseline []*result.Input
	options  result.CompareOptions
}

// readJudge reads gates of the scenario, of --gate and of --fail-if, and the baseline.
func readJudge(s settings, sc *scenarios.Scenario, cases []scenarios.Case, outs outputs, bad *faults) judge {
	j := judge{options: compareOptions(s, "max-regression", bad)}
	g := gateReader{bad: bad}
	for _, c := range cases {
		g.known = append(g.known, c.Params)
	}
	for i, text := range sc.Gates {
		g.add(sc.GatePlace(i), text, false)
	}
	for _, path := range s["gate"].values {
		g.file(s["gate"].place, path)
	}
	for _, text := range s["fail-if"].values {
		g.add(s["fail-if"].place, text, true)
	}
	j.gates = g.gates
	for _, name := range []string{"max-regression", "allow"} {
		if one, ok := s[name]; ok && len(s["baseline"].values) == 0 {
			bad.usage("name the report with --baseline", "%s without a baseline to compare with", one.place)
		}
	}
	baseline := splitFiles(s["baseline"].values...)
	for _, path := range baseline {
		if o := outs.writing(path); o != "" {
			bad.usage("write the report to another file, and replace the baseline when the run is good",
				"%s %s: the run would write over it with --output %s", s["baseline"].place, path, o)
		}
	}
	j.baseline = readInputs(baseline, bad)
	return j
}

// gateReader collects gates and what is wrong with them.
type gateReader struct {
	known [][]result.Param // params of every case
	gates []result.Gate
	bad   *faults
}

// add takes one gate: what must hold, or with failIf what must not.
func (g *gateReader) add(place, text string, failIf bool) {
	gate, err := result.ParseGate(text, failIf)
	g.take(place, gate, err)
}

// take keeps a gate that is sound and about cases that there are.
func (g *gateReader) take(place string, gate result.Gate, err error) {
	if err == nil {
		err = gate.Check(g.known)
	}
	if err != nil {
		g.bad.usage("", "%s: %v", place, err)
		return
	}
	// The same rule from two places is one.
	if !slices.ContainsFunc(g.gates, func(other result.Gate) bool { return other.String() == gate.String() }) {
		g.gates = append(g.gates, gate)
	}
}

// file takes the gates of a file.
func (g *gateReader) file(place, path string) {
	b, err := readSmall(path)
	if err != nil {
		g.bad.usage("", "%s %s: %v", place, path, err)
		return
	}
	gates, err := result.ReadGates(bytes.NewReader(b))
	for _, one := range apart(err) {
		g.bad.usage("", "%s: %v", path, one)
	}
	for _, gate := range gates {
		g.take(path, gate, nil)
	}
}

// apart lists what errors.Join has joined.
func apart(err error) []error {
	var many interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &many):
		return many.Unwrap()
	}
	return []error{err}
}

// check refuses, before hours of load, a baseline of a run that was unlike the
// one that begins: other machine, target or scenario, or other cases.
func (j *judge) check(planned *result.Report, cases []scenarios.Case) faults {
	if len(j.baseline) == 0 {
		return nil
	}
	r := *planned
	for _, c := range cases {
		r.Cases = append(r.Cases, result.Case{ID: c.ID, Params: c.Params})
	}
	in := result.InputOf("this run", &r)
	in.Target = plannedTarget(cases, j.baseline[0].Target)
	for i := range in.Cells {
		in.Cells[i].Delivery = nil
	}
	c, err := result.Compare(j.baseline, []*result.Input{in}, j.options)
	if err != nil {
		return faults{baselineFault(err)}
	}
	var bad faults
	for _, m := range c.Missing {
		if m.Reason == "not in "+m.Side {
			bad = append(bad, fault{exitUnlike, fmt.Sprintf("--baseline: %s is %s", m.ID, missingFrom(m)), "run the cases that the baseline has"})
			break
		}
	}
	return bad
}

// plannedTarget is what is known of the target in advance, nil where there are
// several. What TLS will negotiate is not: it is taken to be as it was.
func plannedTarget(cases []scenarios.Case, base *result.Target) *result.Target {
	t := &result.Target{Embedded: embedded(cases), URL: firstURL(cases)}
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

// baselineFault is compareFault in the words of run.
func baselineFault(err error) fault {
	var option *result.OptionError
	if errors.As(err, &option) && option.Option == "threshold" {
		return usageError("", "--max-regression: %s", option.Reason)
	}
	f := compareFault(err)
	f.msg = strings.Replace(f.msg, "the runs are", "this run and the baseline are", 1)
	return f
}

// judgement is what came of it.
type judgement struct {
	compared comparisons // none without a baseline
	faults   faults
}

// judge evaluates the gates into the report and compares it with the baseline.
func (j *judge) judge(r *result.Report) (out judgement) {
	for _, g := range j.gates {
		r.Gates = append(r.Gates, g.Evaluate(r)...)
	}
	if len(j.baseline) > 0 {
		in := result.InputOf("this run", r)
		c, err := result.Compare(j.baseline, []*result.Input{in}, j.options)
		if err != nil {
			out.faults = append(out.faults, baselineFault(err))
		} else {
			out.compared = comparisons{{base: j.baseline, head: []*result.Input{in}, outcome: c}}
			out.faults = append(out.faults, out.compared.verdict(false)...)
		}
	}
	out.faults = append(out.faults, gateFaults(r.Gates)...)
	return out
}

// gateFaults is one fault for every gate that failed, with the first case that broke it.
func gateFaults(gates []result.GateResult) (bad faults) {
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
		bad = append(bad, fault{exitGate, fmt.Sprintf("gate %q failed: %s%s%s", g.Rule, g.Message, where, andMore(more[g.Rule])), ""})
	}
	return bad
}
