// Package calibrate answers two questions about the tool itself on this machine:
// how many messages per second it can carry, its ceiling, and whether a
// measurement of something known gives the known answer.
//
// [Run] fills a report. Its cases are the engine's own against the loopback
// broker, once in this process and once with the broker in another one, which
// [ServePeer] is; result.AddCeilings reads them later. Its known answers come
// from brokers with a fault and from statistics of fixed numbers.
//
// It sets no goals. What a message, a connection and a rate may cost is the
// developers' business: see internal/interop/goals.
package calibrate

import (
	"context"
	_ "embed" // calibrate.yaml
	"fmt"
	"os/exec"
	"time"

	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

//go:embed calibrate.yaml
var scenarioFile []byte

// Options say what to measure, and how much of it.
type Options struct {
	RunID  string
	Rounds int           // interleaved; at least 1
	Time   time.Duration // of one measurement
	// Settings override the scenario's keys, such as transport, tls_max and curves.
	Settings []Setting
	// Peer makes the command that runs [ServePeer] as another process; its
	// standard input and output are set here.
	Peer func() *exec.Cmd
	// LoadAverage is that of the system before the run; nil if it is unknown.
	LoadAverage *float64
	// Progress, unless it is nil, is called with what is measured next.
	Progress func(what string)
}

// Setting is a value for one key of the scenario. Place says where it comes from,
// for errors.
type Setting struct {
	Place, Key string
	Values     []string
}

// Run measures everything and fills the scenario, the cases and the
// calibration of a report. A wrong answer is in it; an error means that something
// could not be measured at all.
func Run(ctx context.Context, o Options, r *result.Report) error {
	sc, err := o.Scenario()
	if err != nil {
		return err
	}
	r.Scenario, r.ScenarioHash = sc.Effective(), sc.Hash()
	peer, err := startPeer(o.Peer)
	if err != nil {
		return err
	}
	defer peer.close()
	o.tell("known answers")
	r.Calibration = &result.Calibration{Rounds: o.Rounds, LoadAverage: o.LoadAverage, Answers: knownAnswers(ctx)}
	b, local, err := startBroker()
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	for _, p := range []place{{result.PlaceIn, local}, {result.PlaceOwn, peer.broker}} {
		if err := p.measure(ctx, &o, r); err != nil {
			return fmt.Errorf("calibrate the engine, broker %s: %w", p.name, err)
		}
	}
	return nil
}

func (o *Options) tell(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// Scenario is the calibration's own scenario with the options in it. Its cases
// can be made: an error names the setting that is wrong.
func (o *Options) Scenario() (*scenarios.Scenario, error) {
	sc, err := scenarios.Parse("calibrate.yaml", scenarioFile)
	if err != nil {
		return nil, err
	}
	settings := append([]Setting{set("launches", fmt.Sprint(o.Rounds)), set("min_time", o.Time.String())}, o.Settings...)
	for _, s := range settings {
		if err := sc.SetFrom(s.Place, s.Key, s.Values...); err != nil {
			return nil, err
		}
	}
	_, err = sc.Cases()
	return sc, err
}

func set(key, value string) Setting { return Setting{"calibrate", key, []string{value}} }
