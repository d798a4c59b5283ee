package cmd

import (
	"bytes"
	"errors"
	"slices"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/internal/file"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// readJudge reads the gates of the scenario, --gate and --fail-if, and the baseline.
func readJudge(s settings, sc *scenarios.Scenario, cases []scenarios.Case, outs outputs, bad *bench.Faults) bench.Judge {
	j := bench.Judge{Options: compareOptions(s, "max-regression", bad)}
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
	j.Gates = g.gates
	for _, name := range []string{"max-regression", "allow"} {
		if one, ok := s[name]; ok && len(s["baseline"].values) == 0 {
			bad.Usage("name the report with --baseline", "%s without a baseline to compare with", one.place)
		}
	}
	baseline := splitFiles(s["baseline"].values...)
	for _, path := range baseline {
		if o := outs.writing(path); o != "" {
			bad.Usage("write the report to another file, and replace the baseline when the run is good",
				"%s %s: the run would overwrite it with --output %s", s["baseline"].place, path, o)
		}
	}
	j.Baseline = readInputs(baseline, bad)
	return j
}

// gateReader collects gates and their faults.
type gateReader struct {
	known [][]result.Param // params of every case
	gates []result.Gate
	bad   *bench.Faults
}

// add adds one gate: a condition that must hold, or with failIf must not.
func (g *gateReader) add(place, text string, failIf bool) {
	gate, err := result.ParseGate(text, failIf)
	g.take(place, gate, err)
}

// take keeps a gate that is valid and applies to at least one case.
func (g *gateReader) take(place string, gate result.Gate, err error) {
	if err == nil {
		err = gate.Check(g.known)
	}
	if err != nil {
		g.bad.Usage("", "%s: %v", place, err)
		return
	}
	// The same rule from two places counts once.
	if !slices.ContainsFunc(g.gates, func(other result.Gate) bool { return other.String() == gate.String() }) {
		g.gates = append(g.gates, gate)
	}
}

// maxSmallFile bounds a file of gates or of certificates, in bytes.
const maxSmallFile = 1 << 20

// file adds the gates of a file.
func (g *gateReader) file(place, path string) {
	b, err := file.Read(path, maxSmallFile)
	if err != nil {
		g.bad.Usage("", "%s %s: %v", place, path, err)
		return
	}
	gates, err := result.ReadGates(bytes.NewReader(b))
	for _, one := range apart(err) {
		g.bad.Usage("", "%s: %v", path, one)
	}
	for _, gate := range gates {
		g.take(path, gate, nil)
	}
}

// apart lists the errors that errors.Join has joined.
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
