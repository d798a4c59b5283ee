// Package calibrate measures the tool itself on this machine: what a message, a
// connection and an idle connection cost, how late its pacer is, each beside
// the least that the same work costs without MQTT, in interleaved rounds of one
// run; and whether measurements of something known give the known answer. CPU
// time, not wall time, is what it compares: that survives a busy machine.
package calibrate

import (
	"context"
	_ "embed" // calibrate.yaml
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

//go:embed calibrate.yaml
var scenarioFile []byte

// Options are what to measure, and how much of it.
type Options struct {
	RunID  string
	Rounds int           // interleaved; at least 1
	Time   time.Duration // of one measurement
	// Messages is over how many allocations are counted: enough for the few that
	// an iteration makes as such not to show.
	Messages int64
	// Connects is how many connections are made per round, kind and transport;
	// Idle how many are kept while memory is measured.
	Connects, Idle int
	// Full measures many connections and rates that are kept as well; Many is how
	// many connections at most.
	Full bool
	Many int
	// Settings override the scenario's keys, such as transport, tls_max and curves.
	Settings []Setting
	// Peer makes the command that runs [ServePeer] as another process; its
	// standard input and output are set here.
	Peer func() *exec.Cmd
	// LoadAverage is the system's before, nil where it is not known.
	LoadAverage *float64
	// Progress is told what is being measured; nil is nobody.
	Progress func(what string)
}

// Setting is one key of the scenario, and where its value comes from.
type Setting struct {
	Place, Key string
	Values     []string
}

// Run measures everything and fills the scenario, the cases and the
// calibration of a report. A goal that is missed or a wrong answer is in it; an
// error means that something could not be measured at all.
func Run(ctx context.Context, o Options, r *result.Report) error {
	sc, err := o.scenario()
	if err != nil {
		return err
	}
	r.Scenario, r.ScenarioHash = sc.Effective(), sc.Hash()
	m := &measurement{Options: o, cal: &result.Calibration{Rounds: o.Rounds, LoadAverage: o.LoadAverage}, transports: o.transports(sc)}
	r.Calibration = m.cal
	if err := m.run(ctx); err != nil {
		return err
	}
	for _, p := range m.places {
		r.Cases = append(r.Cases, p.results()...)
	}
	if m.full != nil {
		r.Cases = append(r.Cases, m.full.results()...)
	}
	r.Target = m.target
	m.figures()
	return nil
}

// scenario is the file with what was asked for.
func (o *Options) scenario() (*scenarios.Scenario, error) {
	sc, err := scenarios.Parse("calibrate.yaml", scenarioFile)
	if err != nil {
		return nil, err
	}
	set := func(key, value string) {
		if err == nil {
			err = sc.Set(key, value)
		}
	}
	set("launches", fmt.Sprint(o.Rounds))
	set("min_time", o.Time.String())
	for _, s := range o.Settings {
		if err == nil {
			err = sc.SetFrom(s.Place, s.Key, s.Values...)
		}
	}
	if err != nil {
		return nil, err
	}
	_, err = sc.Cases()
	return sc, err
}

// Check reports what is wrong with the settings.
func (o *Options) Check() error {
	_, err := o.scenario()
	return err
}

func (o *Options) transports(sc *scenarios.Scenario) (list []scenarios.Transport) {
	cases, _ := sc.Cases() // has just gone well
	for _, c := range cases {
		if !slices.Contains(list, c.Transport) {
			list = append(list, c.Transport)
		}
	}
	return list
}

// measurement is one run of calibrate.
type measurement struct {
	Options
	cal        *result.Calibration
	transports []scenarios.Transport
	places     []*place
	target     result.Target
	connects   map[scenarios.Transport]*connects
	idle       map[scenarios.Transport]idle
	recordings []recording
	pacers     []pacing
	full       *place           // where Full
	bare       []float64        // CPU per message of bare clients, in ns
	allocs     map[byte]float64 // per message, by QoS
}

func (m *measurement) tell(format string, args ...any) {
	if m.Progress != nil {
		m.Progress(fmt.Sprintf(format, args...))
	}
}

// run measures, in the order in which a reader asks: are the answers right,
// then what things cost.
func (m *measurement) run(ctx context.Context) error {
	peer, err := startPeer(m.Peer)
	if err != nil {
		return err
	}
	defer peer.close()
	m.tell("known answers")
	m.cal.Answers = knownAnswers(ctx)
	local, err := openEnds()
	if err != nil {
		return err
	}
	defer local.close()
	m.places = []*place{{name: result.PlaceIn, ends: &local.ends}, {name: result.PlaceOwn, ends: &peer.ends, peer: peer}}
	for _, p := range m.places {
		p.m = m
		if err := p.run(ctx); err != nil {
			return err
		}
	}
	if err := m.allocations(ctx); err != nil {
		return err
	}
	if err := m.recording(ctx); err != nil {
		return err
	}
	if err := m.connect(ctx, peer); err != nil {
		return err
	}
	if err := m.idleMemory(ctx, peer); err != nil {
		return err
	}
	if err := m.pacing(ctx); err != nil || !m.Full {
		return err
	}
	return m.runFull(ctx, peer)
}
