package report

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mqttload/mqttload/result"
)

// facts are the names and values that identify a run and its environment. A fact
// without a value is left out.
func facts(r *result.Report) []result.Param {
	all := []result.Param{
		{Key: "tool", Value: joined(" ", tool(r.Tool), r.Tool.Commit)},
		{Key: "run", Value: r.Run.ID},
		{Key: "started", Value: stamp(r.Run.Started)},
		{Key: "status", Value: r.Run.Status},
		{Key: "command", Value: strings.Join(r.Run.Command, " ")},
		{Key: "seed", Value: strconv.FormatUint(r.Run.Seed, 10)},
		{Key: "scenario", Value: scenarioName(r)},
		{Key: "scenario hash", Value: r.ScenarioHash},
		{Key: "target", Value: target(r.Target)},
		{Key: "tls", Value: tlsFact(r)},
		{Key: "protocol", Value: joined(", ", protocols(r.Cases)...)},
		{Key: "in-flight", Value: windows(r.Cases)},
		{Key: "cpu", Value: joined(", ", r.Environment.CPU, cores(r.Environment))},
		{Key: "system", Value: joined(" ", r.Environment.OS, r.Environment.Kernel, r.Environment.Arch)},
		{Key: "go", Value: r.Tool.Go},
		{Key: "open files", Value: limit(r.Environment.NoFile)},
	}
	known := all[:0]
	for _, f := range all {
		if f.Value != "" {
			known = append(known, f)
		}
	}
	return known
}

func tlsFact(r *result.Report) string {
	if r.Target.TLS == nil {
		return ""
	}
	return tlsLine(r)
}

func limit(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d at most", n)
}

// scenarioName is the name in the effective scenario, "" if it has none.
func scenarioName(r *result.Report) string {
	var s struct {
		Name string `json:"name"`
	}
	b, err := json.Marshal(r.Scenario)
	if err != nil || json.Unmarshal(b, &s) != nil {
		return "" // not a scenario: a report may have anything there
	}
	return s.Name
}
