package report

import (
	"fmt"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
)

// BDNLine is one line of BenchmarkDotNet's live log, which its readers and
// tools parse: "WorkloadWarmup   1: 2000 op, 5926793600.00 ns, 2.9634 ms/op".
// stage is result.StageWarmup or result.StageActual.
func BDNLine(stage string, index int, ops int64, elapsedNS int64) string {
	name := "Workload" + strings.ToUpper(stage[:min(1, len(stage))]) + stage[min(1, len(stage)):]
	return fmt.Sprintf("%-15s %2d: %d op, %.2f ns, %s/op", name, index, ops, float64(elapsedNS), average(elapsedNS, ops))
}

// average is the elapsed time per operation in its best unit; the log is ASCII, so
// microseconds are "us".
func average(elapsedNS, ops int64) string {
	if ops <= 0 {
		return nA
	}
	each := float64(elapsedNS) / float64(ops)
	unit := result.UnitFor(each)
	return result.FormatFloat(each/unit.NS, 4) + " " + strings.ReplaceAll(unit.Name, "μ", "u")
}

// Step is the position of a run. Counts are from 1; an unknown total is 0.
type Step struct {
	Case, Cases           int
	ID                    string
	Launch, Launches      int
	Stage                 string // result.StageWarmup or result.StageActual
	Iteration, Iterations int
	MessagesPerSec        float64 // of the current or last iteration; 0 if unknown
}

// Progress is one line about a run in progress:
// "[3/12] qos=1/payload=1024  launch 1/2  actual 4/15  41,234 msg/s".
// The launch is left out if there is only one.
func Progress(s Step) string {
	parts := []string{fmt.Sprintf("[%s] %s", of(s.Case, s.Cases), text.Plain(s.ID))}
	if s.Launches > 1 {
		parts = append(parts, "launch "+of(s.Launch, s.Launches))
	}
	if s.Stage != "" {
		parts = append(parts, s.Stage+" "+of(s.Iteration, s.Iterations))
	}
	if s.MessagesPerSec > 0 {
		parts = append(parts, result.FormatFloat(s.MessagesPerSec, 0)+" msg/s")
	}
	return strings.Join(parts, "  ")
}

func of(k, n int) string {
	if n <= 0 {
		return itoa(k)
	}
	return fmt.Sprintf("%d/%d", k, n)
}
