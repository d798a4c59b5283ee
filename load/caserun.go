package load

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// caseRun gathers the launches of one case.
type caseRun struct {
	spec    *scenarios.Case
	x       *Executor
	index   int
	number  int // of the launch, from 1
	payload []byte
	routes  *dial.Routes
	errs    errorSet
	begun   bool
	failed  bool
	start   int64

	iterations []result.Iteration
	delivery   result.Delivery
	clients    result.Clients
	cpu        result.CPU
	io         result.IO
	timeline   []result.Tick
	period     period
	deadline   int64 // of a closed loop, on the clock; 0 is none

	offered      float64 // messages per second that the schedule asks for, 0 in a closed loop
	inTime       int64   // messages that were due in the measured time and were sent before it was over
	offeredFor   int64   // the measured time of the schedules, ns
	held         heldTotal
	longestPause int64 // of garbage collection, ns
	missed       span
	outages      outages
	referred     map[string]int64 // connections by the way that references have led them; under session.mu
	interrupted  bool
	warning      sync.Mutex // guards warnings
	warnings     []result.Warning
	legs         legs
	window       int
	aliases      *result.Aliases
	byPublisher  clientMeans
	byReceiver   clientMeans
	untimed      int64         // deliveries that are in no latency
	busy         time.Duration // elapsed time of the actual iterations
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
		err = c.iterate(ctx, n)
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

// iterate runs what a launch is made of: the windows of an open loop or of
// those who only listen or stay, or the iterations of a closed loop.
func (c *caseRun) iterate(ctx context.Context, number int) error {
	defer c.endTimeline()
	switch {
	case c.spec.Load.Shape.Cycles:
		return c.comeAndGo(ctx, number)
	case c.spec.Load.Shape.Queues > 0:
		return c.queues(ctx, number)
	}
	if load := &c.spec.Load; len(load.Stages) > 0 || load.PublisherClients() == 0 {
		began := c.x.clock()
		l, err := openLaunch(ctx, c)
		if err != nil {
			return err
		}
		defer l.end(number)
		return l.byTheClock(ctx, &iteration{launch: l, number: number}, began)
	}
	return c.closedLoop(ctx, number)
}

// end closes the session and its accounts.
func (l *launch) end(number int) {
	l.close()
	l.closeAccounts(number)
}

// byTheClock runs what has no number of messages to end by.
func (l *launch) byTheClock(ctx context.Context, it *iteration, began int64) error {
	switch {
	case l.open != nil:
		return l.open.run(ctx, it)
	case len(l.inboxes) > 0:
		return it.listen(ctx)
	}
	return it.stay(ctx, began)
}

// closedLoop runs the warm-up and the actual iterations over connections that
// are made once, or anew for each.
func (c *caseRun) closedLoop(ctx context.Context, number int) error {
	var l *launch
	defer func() {
		if l != nil {
			l.end(number)
		}
	}()
	return c.repeat(ctx, func(it *iteration) (err error) {
		if l != nil && c.spec.Load.FreshIterations {
			l.end(number)
			l = nil
		}
		if l == nil {
			if l, err = openLaunch(ctx, c); err != nil {
				return err
			}
		}
		it.launch, it.number = l, number
		return it.run(ctx)
	})
}

// repeat calls run for each iteration of a closed loop, up to the first error.
func (c *caseRun) repeat(ctx context.Context, run func(*iteration) error) error {
	if d := c.spec.Load.Duration; d > 0 {
		c.deadline = c.x.clock() + int64(d)
	}
	total := c.spec.Load.Warmup + c.spec.Load.Iterations
	for i := 0; i < total && ctx.Err() == nil && !c.expired(c.x.clock()); i++ {
		it := iteration{stage: result.StageWarmup, index: i + 1}
		if i >= c.spec.Load.Warmup {
			it.stage, it.index = result.StageActual, i+1-c.spec.Load.Warmup
		}
		if err := run(&it); err != nil {
			return err
		}
	}
	return nil
}

// expired reports whether the duration of a closed loop is over.
func (c *caseRun) expired(now int64) bool { return c.deadline != 0 && now >= c.deadline }

// add takes an iteration that has ended into the case.
func (c *caseRun) add(it result.Iteration, d result.Delivery) {
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
		Delivery:   c.delivery, Clients: c.clients, CPU: c.cpu, IO: c.io,
		Errors:               c.errs.list(),
		Warnings:             append([]result.Warning(nil), c.warnings...),
		Timeline:             append([]result.Tick(nil), c.timeline...),
		Request:              c.spec.Load.Shape.Request(c.spec.QoS),
		OperationsPerMessage: c.spec.Load.OperationsPerMessage,
	}
	if r.Kind != result.KindConnections {
		r.QoS = &c.spec.QoS
	}
	if c.spec.Load.PublisherClients() > 0 { // without them there is no window
		r.Window, r.WindowAsked = c.window, c.spec.Load.Inflight
	}
	r.Aliases = c.aliases
	r.Delivery.CountsOnly = !c.spec.Stamped()
	r.Delivery.Resent = c.outages.resent
	r.Latency.Reconnect = c.outages.took.result()
	r.Losses = c.losses(r)
	r.Offered = c.offer()
	r.Bottleneck = c.bottleneck(r)
	if w := rateWarning(r); w.Code != "" && !c.interrupted {
		r.Warnings = append(r.Warnings, w)
	}
	for _, w := range []result.Warning{c.outages.warning(&c.clients, c.start), c.outages.forgotten()} {
		if w.Code != "" {
			r.Warnings = append(r.Warnings, w)
		}
	}
	if len(c.referred) > 0 {
		r.Warnings = append(r.Warnings, referralWarning(c.referred))
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

// warn adds a warning once.
func (c *caseRun) warn(code, message, hint string) {
	c.warning.Lock()
	defer c.warning.Unlock()
	for _, w := range c.warnings {
		if w.Code == code && w.Message == message {
			return
		}
	}
	c.warnings = append(c.warnings, result.Warning{Code: code, Message: message, Hint: hint})
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
