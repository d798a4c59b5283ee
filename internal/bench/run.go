package bench

import (
	"context"
	"errors"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/preflight"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// Config is a run that has been decided on. Cases and Report are required.
type Config struct {
	Cases  []scenarios.Case // at least one
	Report *result.Report   // as NewReport makes it; the run adds what it measures
	Judge  Judge
	// Calibration is the file with the last calibration, "" for none.
	Calibration string
	// Strict makes a rate that was not kept a fault.
	Strict bool
	// Live is a run that is watched: being stopped is how it is meant to end, and
	// its own connections are the check of the broker.
	Live bool
	// Enough is the number of messages after which listeners end, 0 for no limit.
	Enough int64
	// Observer is told how the run goes. When its LaunchDone is called, Report
	// holds the results so far.
	Observer load.Observer
	// Warn is given what the user should know before the first message; nil
	// drops it.
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

// Run is a run whose broker is known.
type Run struct {
	cfg      Config
	cases    []scenarios.Case // of cfg, with the embedded broker as target
	embedded *broker.Broker   // nil where no case needs it
	done     []*result.Case   // by index of the case
}

// Open starts the embedded broker, where a case has no target. Close ends it.
func Open(cfg Config) (*Run, error) {
	r := &Run{cfg: cfg, cases: cfg.Cases, done: make([]*result.Case, len(cfg.Cases))}
	if !Embedded(cfg.Cases) {
		return r, nil
	}
	var err error
	if r.embedded, r.cases, err = StartEmbedded(cfg.Cases); err != nil {
		return nil, Faultf(Internal, "", "%v", err)
	}
	return r, nil
}

// Close ends the embedded broker.
func (r *Run) Close() {
	if r.embedded != nil {
		_ = r.embedded.Close()
	}
}

// Lines say what is loaded, and how.
func (r *Run) Lines(ctx context.Context) []string {
	return []string{targetLine(ctx, r.cases, r.embedded != nil), planLine(r.cases)}
}

// Outcome is how a run went; its report is the Config's.
type Outcome struct {
	// Faults are all that is wrong: with the run, and by its judge.
	Faults Faults
	// Judged is what the judge found; zero where nothing was measured.
	Judged Judgement
	// NoCeilings is why the calibration could not be used, if it could not.
	NoCeilings error
}

// Run checks the broker, measures the cases, completes the report and judges
// it. A cause of [ErrInterrupted] ends it in good order.
func (r *Run) Run(ctx context.Context) (out Outcome) {
	rep := r.cfg.Report
	rep.Target = result.Target{URL: firstURL(r.cases), Embedded: r.embedded != nil}
	o := outcome{planned: r.cases, strict: r.cfg.Strict}
	reached, err := r.preflight(ctx)
	rep.Run.Started = time.Now().UTC()
	rep.Run.Status = result.StatusPartial // until it is known to be more
	if reached {
		rep.Cases, err = r.measure(ctx)
	}
	o.cases, o.err = rep.Cases, err
	rep.Run.Status = o.status()
	now := time.Now().UTC()
	rep.Run.Finished = &now
	out.NoCeilings = addCeilings(r.cfg.Calibration, rep)
	if o.measured() {
		out.Judged = r.cfg.Judge.Evaluate(rep)
	}
	out.Faults = slices.Concat(o.verdict(), out.Judged.Faults)
	return out
}

// preflight connects to every target of a run once, and warns of the cases that
// cannot run. Where none can, nothing shall be sent: the first reason is the
// run's outcome.
func (r *Run) preflight(ctx context.Context) (reached bool, err error) {
	if r.embedded != nil || r.cfg.Live {
		return true, nil
	}
	rep := r.cfg.Report
	cells := preflight.Brokers(ctx, r.cases, preflight.Options{RunID: rep.Run.ID, Short: true}).Cells
	if ctx.Err() != nil { // measuring ends with it
		return true, nil
	}
	if slices.ContainsFunc(cells, func(c preflight.Cell) bool { return c.Runs }) {
		for _, line := range CannotRun(cells) {
			r.warn(line)
		}
		return true, nil
	}
	first, err := r.cases[0], cells[0].Err
	rep.Cases = []result.Case{{ID: first.ID, Params: first.Params, Errors: []result.Error{load.ErrorOf(err)}}}
	return false, err
}

func (r *Run) warn(line string) {
	if r.cfg.Warn != nil {
		r.cfg.Warn(line)
	}
}

// measure runs the cases.
func (r *Run) measure(ctx context.Context) ([]result.Case, error) {
	x := load.New(load.Config{
		RunID: r.cfg.Report.Run.ID, Observer: r.observer(), Embedded: r.embedded != nil, Enough: r.cfg.Enough,
	})
	cases, err := x.Run(ctx, r.cases)
	if r.cfg.Live && errors.Is(err, ErrInterrupted) && unbounded(r.cases[0].Load) {
		err = nil // it ended as it was meant to
	}
	return cases, err
}

// observer is the Config's, after the report has taken what it is told.
func (r *Run) observer() load.Observer {
	o := r.cfg.Observer
	connected, done, before := o.Connected, o.LaunchDone, false
	o.Connected = func(t result.Target) {
		// A later call adds what the first connection could not know.
		if before {
			r.cfg.Report.Target.TLS = t.TLS
		} else {
			r.cfg.Report.Target, before = t, true
		}
		if connected != nil {
			connected(t)
		}
	}
	o.LaunchDone = func(index int, c *result.Case) {
		r.done[index] = c
		r.cfg.Report.Cases = r.results()
		if done != nil {
			done(index, c)
		}
	}
	return o
}

func (r *Run) results() []result.Case {
	var list []result.Case
	for _, c := range r.done {
		if c != nil {
			list = append(list, *c)
		}
	}
	return list
}
