package bench

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/preflight"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

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
	if !onEmbedded(cfg.Cases) {
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

// Lines describe the target and the plan, one line each.
func (r *Run) Lines(ctx context.Context) []string {
	return []string{targetLine(ctx, r.cases, r.embedded != nil), planLine(r.cases)}
}

// Outcome is how a run went, in addition to the report in its Config.
type Outcome struct {
	// Faults are all that is wrong: with the run, and by its judge.
	Faults Faults
	// Judged is what the judge found; zero where nothing was measured.
	Judged Judgement
	// NoCeilings is why the calibration could not be used, if it could not.
	NoCeilings error
}

// Run checks the broker, measures the cases, completes the report and judges
// it. A context that ends with [ErrInterrupted] stops it in good order.
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
		out.Judged = r.cfg.Judge.evaluate(rep)
	}
	out.Faults = slices.Concat(o.verdict(), out.Judged.Faults)
	return out
}

// preflight connects to each target once, and warns of the cases that cannot run.
// If none can, nothing is sent, and the first reason is the outcome of the run.
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

// observer is the observer of the Config, called after the report is updated.
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
