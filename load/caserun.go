package load

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// caseRun runs the launches of one case.
type caseRun struct {
	spec        *scenarios.Case
	x           *Executor
	rec         *record
	index       int
	number      int // of the launch, from 1
	payload     []byte
	routes      *dial.Routes
	begun       bool
	failed      bool
	interrupted bool
	deadline    int64 // of a closed loop, on the clock; 0 is none
}

func newCaseRun(x *Executor, index int, c *scenarios.Case) *caseRun {
	return &caseRun{
		spec: c, x: x, rec: &record{spec: c, cfg: &x.cfg}, index: index,
		payload: payloadBytes(c.Payload), routes: dial.NewRoutes(c, x.cfg.Dial),
	}
}

// runLaunch runs one launch and reports it.
func (c *caseRun) runLaunch(ctx context.Context, n int) error {
	c.number = n
	err := c.enter(ctx, Connecting, 0)
	if !c.begun {
		c.begun = true
		c.rec.begin(c.x.clock())
		c.warnUnheeded()
	}
	if err == nil {
		err = c.iterate(ctx)
	}
	c.interrupted = ctx.Err() != nil
	c.fail(ctx, err)
	if done := c.x.cfg.Observer.LaunchDone; done != nil {
		done(c.index, c.result())
	}
	if last := c.enter(ctx, Ended, 0); err == nil {
		err = last
		c.fail(ctx, err)
	}
	return err
}

// fail records err and ends the case, unless err is nil or the run was told to
// end.
func (c *caseRun) fail(ctx context.Context, err error) {
	if err != nil && !interrupted(ctx, err) {
		c.failed = true
		if !errors.Is(err, ErrAllRejected) { // each rejection has been counted
			c.rec.errs.add(ErrorOf(err))
		}
	}
}

// result is the case's result so far.
func (c *caseRun) result() *result.Case { return c.rec.result(c.interrupted) }

// enter waits until the observer allows phase p.
func (c *caseRun) enter(ctx context.Context, p Phase, connections int) error {
	if c.x.cfg.Observer.Phase == nil {
		return nil
	}
	before := c.x.clock()
	err := c.x.cfg.Observer.Phase(ctx, p, Launch{Case: c.spec, Index: c.index, Number: c.number, Connections: connections})
	if c.deadline != 0 {
		c.deadline += c.x.clock() - before
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// newLaunch returns a launch without clients.
func (c *caseRun) newLaunch() *launch {
	x := c.x
	cn := &connector{
		spec: c.spec, runID: x.cfg.RunID, embedded: x.cfg.Embedded, routes: c.routes, sweeper: x.sweeper, keys: &x.keys, payload: c.payload,
		connections: &c.rec.connections, errs: &c.rec.errs, warnings: &c.rec.warnings, announce: x.announce,
	}
	x.serial++
	return &launch{
		rec: c.rec, spec: c.spec, clock: x.clock, number: c.number, serial: x.serial, began: x.clock(),
		connector: cn, links: &links{connector: cn, outages: &c.rec.outages},
	}
}

// open returns a launch whose clients have connected, and its workload. It
// fails when too few clients connected to run it.
func (c *caseRun) open(ctx context.Context) (*launch, workload, error) {
	l, work := c.newLaunch(), newWorkload(&c.spec.Load)
	if err := l.plan(); err != nil {
		return nil, nil, err
	}
	err := l.connectAll(ctx)
	if err == nil {
		err = c.enter(ctx, Publishing, int(l.connected.Load()))
	}
	if err != nil {
		l.close()
		return nil, nil, err
	}
	return l, work, nil
}

// iterate runs the iterations of a launch. The connections are made once or,
// with fresh iterations, anew for each.
func (c *caseRun) iterate(ctx context.Context) error {
	defer func() { c.rec.timeline.end(c.x.clock()) }()
	var l *launch
	var work workload
	defer func() {
		if l != nil {
			l.end()
		}
	}()
	return c.repeat(ctx, func(stage string, index int) (err error) {
		if l != nil && c.spec.Load.FreshIterations {
			l.end()
			l = nil
		}
		if l == nil {
			if l, work, err = c.open(ctx); err != nil {
				return err
			}
		}
		return work.iterate(ctx, newIteration(l, work, stage, index, c.deadline))
	})
}

// repeat calls run for each iteration of a closed loop, until the first error,
// or once where the clock ends the load.
func (c *caseRun) repeat(ctx context.Context, run func(stage string, index int) error) error {
	load := &c.spec.Load
	if newWorkload(load).byClock() {
		return run("", 0)
	}
	c.deadline = 0
	if load.Duration > 0 {
		c.deadline = c.x.clock() + int64(load.Duration)
	}
	total := load.Warmup + load.Iterations
	for i := 0; i < total && ctx.Err() == nil && !c.expired(c.x.clock()); i++ {
		stage, index := result.StageWarmup, i+1
		if i >= load.Warmup {
			stage, index = result.StageActual, i+1-load.Warmup
		}
		if err := run(stage, index); err != nil {
			return err
		}
	}
	return nil
}

// expired reports whether the duration of a closed loop is over.
func (c *caseRun) expired(now int64) bool { return c.deadline != 0 && now >= c.deadline }

// warnUnheeded warns of settings that the case's version of MQTT does not have.
func (c *caseRun) warnUnheeded() {
	if keys := c.spec.Unsupported(); keys != nil {
		c.rec.warnings.add(result.CodeMQTT5Only, fmt.Sprintf("MQTT %s has no %s: the case runs without it", c.spec.Protocol, strings.Join(keys, ", ")),
			"the rows of protocol 5 have it")
	}
}
