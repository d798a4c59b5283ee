package bench

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// Config is everything that a run needs to know. Cases and Report are required.
type Config struct {
	Cases  []scenarios.Case // at least one
	Report *result.Report   // as NewReport makes it; the run adds what it measures
	Judge  Judge
	// Calibration is the file with the last calibration, "" for none.
	Calibration string
	// Strict makes a rate that was not kept a fault.
	Strict bool
	// Live says that a user watches the run and interrupts it to end it: an
	// interrupt is then not a fault, and the broker is not checked beforehand.
	Live bool
	// Enough is the number of messages after which listeners end, 0 for no limit.
	Enough int64
	// Observer follows the run. When its LaunchDone is called, Report holds the
	// results so far.
	Observer load.Observer
	// Warn is called with warnings before the first message is sent; nil drops
	// them.
	Warn func(warning string)
}

// NewReport begins the report of a run of the scenario on this machine.
func NewReport(sc *scenarios.Scenario, tool result.Tool, command []string) *result.Report {
	return &result.Report{
		Schema: result.Schema, Tool: tool, Environment: Machine(),
		Scenario: sc.Effective(), ScenarioHash: sc.Hash(),
		Run: result.Run{ID: RunID(sc.Seed), Seed: sc.Seed, Command: command},
	}
}

// RunID makes eight characters, of those every broker takes in a client id,
// that differ for different seeds: the seed's bits are mixed first, so that
// 1 and 2 look no more alike than others do.
func RunID(seed uint64) string {
	hi, lo := bits.Mul64(seed^0x9e3779b97f4a7c15, 0xd1342543de82ef95)
	s := strconv.FormatUint(hi^lo, 36)
	if len(s) < 8 {
		s = strings.Repeat("0", 8-len(s)) + s
	}
	return s[len(s)-8:]
}
