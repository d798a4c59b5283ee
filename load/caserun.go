package load

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// caseRun gathers what the launches of one case have come to.
type caseRun struct {
	spec        *scenarios.Case
	x           *Executor
	index       int
	number      int // of the launch, from 1
	payload     []byte
	routes      *dial.Routes
	begun       bool
	failed      bool
	interrupted bool
	start       int64 // on the clock
	deadline    int64 // of a closed loop, on the clock; 0 is none

	iterations  []result.Iteration
	delivery    result.Delivery
	connections connections
	outages     outages
	used        used
	rate        rate
	timeline    []result.Tick
	period      period
	legs        legs
	missed      span
	byPublisher clientMeans
	byReceiver  clientMeans
	untimed     int64         // deliveries that are in no latency
	busy        time.Duration // elapsed time of the actual iterations
	errs        errorSet
	warnings    warnings
}

func newCaseRun(x *Executor, index int, c *scenarios.Case) *caseRun {
	return &caseRun{spec: c, x: x, index: index, payload: payloadBytes(c.Payload), routes: dial.NewRoutes(c, x.cfg.Dial)}
}

// launch runs one launch and reports it.
func (c *caseRun) runLaunch(ctx context.Context, n int) error {
	c.number = n
	err := c.enter(ctx, Connecting, 0)
	if !c.begun {
		c.begun, c.start = true, c.x.clock()
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

// fail ends the case with err, unless that is nil or the run was told to end.
func (c *caseRun) fail(ctx context.Context, err error) {
	if err != nil && !interrupted(ctx, err) {
		c.failed = true
		c.errs.add(ErrorOf(err))
	}
}

// iterate runs the iterations of a launch over connections that are made once
// or, with fresh iterations, anew for each.
func (c *caseRun) iterate(ctx context.Context) error {
	defer c.endTimeline()
	var l *launch
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
			if l, err = openLaunch(ctx, c); err != nil {
				return err
			}
		}
		return l.work.iterate(ctx, newIteration(l, stage, index))
	})
}

// repeat calls run for each iteration of a closed loop, up to the first error,
// and once where the clock ends the load.
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

// add takes an iteration that has ended into the case.
func (c *caseRun) add(it result.Iteration, d result.Delivery) {
	it.Operations = it.Requests * int64(c.spec.Load.OperationsPerMessage)
	c.iterations = append(c.iterations, it)
	if it.Stage == result.StageActual {
		c.delivery.Add(d)
		c.busy += time.Duration(it.ElapsedNS)
	}
	if told := c.x.cfg.Observer.Iteration; told != nil {
		told(c.spec, it)
	}
}

// result is the case's result so far, with what the analysers make of it.
func (c *caseRun) result() *result.Case {
	r := &result.Case{
		ID: c.spec.ID, Params: c.spec.Params,
		Kind: c.spec.Load.Shape.Kind, PersistentSessions: c.spec.Clients.Persistent(c.spec.Protocol),
		Iterations: append([]result.Iteration(nil), c.iterations...),
		Summary:    result.Summarize(c.iterations, c.spec.Load.OperationsPerMessage),
		Latency:    c.legs.latency(),
		Delivery:   c.delivery, CPU: c.used.cpu, IO: c.used.io,
		Errors:               c.errs.list(),
		Warnings:             append([]result.Warning(nil), c.warnings.list...),
		Timeline:             append([]result.Tick(nil), c.timeline...),
		Request:              c.spec.Load.Shape.Request(c.spec.QoS),
		OperationsPerMessage: c.spec.Load.OperationsPerMessage,
	}
	if r.Kind != result.KindConnections {
		r.QoS = &c.spec.QoS
	}
	if c.spec.Load.PublisherClients() > 0 { // without them there is no window
		r.Window, r.WindowAsked = c.connections.window, c.spec.Load.Inflight
	}
	r.Aliases = c.connections.aliases
	c.connections.put(&r.Latency)
	r.Clients = result.Clients{Planned: c.connections.planned, Connected: c.connections.connected, Lost: c.outages.lost, Reconnects: c.outages.reconnects}
	r.Delivery.CountsOnly = !c.spec.Stamped()
	r.Delivery.Resent = c.outages.resent
	r.Latency.Reconnect = c.outages.took.result()
	r.Losses = c.losses(r)
	r.Offered = c.rate.result()
	r.Bottleneck = c.bottleneck(r)
	if w := rateWarning(r); w.Code != "" && !c.interrupted {
		r.Warnings = append(r.Warnings, w)
	}
	for _, w := range []result.Warning{c.outages.warning(c.start), c.outages.forgotten()} {
		if w.Code != "" {
			r.Warnings = append(r.Warnings, w)
		}
	}
	if len(c.connections.referred) > 0 {
		r.Warnings = append(r.Warnings, referralWarning(c.connections.referred))
	}
	if w := c.slowClients(); w.Code != "" {
		r.Warnings = append(r.Warnings, w)
	}
	if w := propertyWarning(r.Errors); w.Code != "" {
		r.Warnings = append(r.Warnings, w)
	}
	if c.untimed > 0 {
		r.Warnings = append(r.Warnings, result.Warning{
			Code:    result.CodeUntimedDeliveries,
			Message: fmt.Sprintf("%s deliveries came so late that when they were sent is forgotten: they are in no latency", result.FormatInt(c.untimed)),
			Hint:    "the percentiles and Max are too low by them; a larger --inflight remembers more",
		})
	}
	r.Warnings = append(r.Warnings, result.Analyze(*r)...)
	return r
}

// referralWarning counts the connections by the way that they have taken.
func referralWarning(ways map[string]int64) result.Warning {
	const few = 3
	var parts []string
	names := slices.SortedFunc(maps.Keys(ways), func(a, b string) int {
		if ways[a] != ways[b] {
			return int(ways[b] - ways[a])
		}
		return strings.Compare(a, b)
	})
	for _, name := range names[:min(few, len(names))] {
		parts = append(parts, fmt.Sprintf("%s from %s", result.FormatInt(ways[name]), name))
	}
	if n := len(names) - few; n > 0 {
		parts = append(parts, fmt.Sprintf("and by %d other ways", n))
	}
	return result.Warning{
		Code: result.CodeReferred, Message: "brokers have sent connections elsewhere: " + strings.Join(parts, ", "),
		Hint: "the numbers are of where they ended up: give that as the target to save the way",
	}
}

// warnUnheeded says what a case of an earlier version goes without.
func (c *caseRun) warnUnheeded() {
	if keys := c.spec.Unheeded(); keys != nil {
		c.warnings.add(result.CodeMQTT5Only, fmt.Sprintf("MQTT %s has no %s: the row goes without", c.spec.Protocol, strings.Join(keys, ", ")),
			"the rows of protocol 5 have it")
	}
}
