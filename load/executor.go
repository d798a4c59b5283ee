// Package load is the engine: it runs cases and returns one [result.Case] for
// each.
//
// An [Executor] runs the launches of all cases. A launch connects its clients,
// warms up, measures iterations and disconnects; what the clients do in between
// is its workload (closed loop, open loop, listening, idle, churn or offline),
// one file each. A case's sums are in its record, below everything that runs.
//
// One message: a publisher sends it when its window or its schedule allows,
// notes the time of sending in a ring, and stamps the payload with its stream
// and sequence number (pump, send, fill). The subscriber's connection hands it to
// its inbox, which finds the flow by the stamp, has the ledger account for the
// number, and records the latency in the shard of the connection (deliver). At
// the end of the read the inbox publishes how far it is, and the publishers that
// this lets go on pump again. Once a second the histograms of the shards move to
// the timeline. A message costs no allocation and no call through an interface.
//
// The engine drives sockets and the clock only through its [Config], so that a
// whole run can take place on virtual time. It decides nothing about exit codes,
// gates or formats, prints nothing, and does not start a broker.
package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mqttload/mqttload/internal/cputime"
	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/internal/pace"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// Config is what the engine needs from outside. RunID is required.
type Config struct {
	// RunID makes this run's messages, topics and clients different from those
	// of other runs. Its characters must be allowed in a client id.
	RunID string
	// Dial opens connections; nil is a net.Dialer, which sets TCP_NODELAY.
	Dial dial.Func
	// Clock returns monotonic nanoseconds; nil is the process's own clock.
	Clock func() int64
	// Waiter makes the timer of an open loop; nil is pace.New.
	Waiter func() *pace.Waiter
	// CPU returns the process's CPU time so far; nil asks the system.
	CPU func() (user, system time.Duration)
	// Observer is told how the run goes.
	Observer Observer
	// Enough ends a case of listeners after that many messages; 0 is no limit.
	// Later messages are not counted.
	Enough int64
	// Embedded says that the broker runs in this process, whose CPU time and
	// cores then include the broker's.
	Embedded bool
}

// Executor runs cases. Use [New] to make one.
type Executor struct {
	cfg     Config
	clock   func() int64
	sweeper *mqtt.Sweeper
	keys    mqtt.SCRAMKeys
	serial  int // counts launches over the run

	greeting sync.Mutex // guards the rest
	told     bool       // a client has connected, and Observer.Connected has been called
	toldTLS  bool       // likewise over TLS
}

// New makes an Executor.
func New(cfg Config) *Executor {
	x := &Executor{cfg: cfg, clock: cfg.Clock}
	if x.clock == nil {
		base := time.Now()
		x.clock = func() int64 { return int64(time.Since(base)) }
	}
	if x.cfg.Waiter == nil {
		x.cfg.Waiter = pace.New
	}
	if x.cfg.CPU == nil {
		x.cfg.CPU = cputime.Now
	}
	return x
}

// announce calls Observer.Connected for the first connection, and for the first
// over TLS.
func (x *Executor) announce(overTLS bool, target func() result.Target) {
	x.greeting.Lock()
	defer x.greeting.Unlock()
	first := !x.told || overTLS && !x.toldTLS
	x.told, x.toldTLS = true, x.toldTLS || overTLS
	if first && x.cfg.Observer.Connected != nil {
		x.cfg.Observer.Connected(target())
	}
}

// Run runs the launches of the cases round robin, so that drift of the machine
// or the broker affects all cases alike, and returns one result for each case
// that began, in the order of cases. When ctx ends, Run stops sending, drains,
// and returns the results so far with the cause of ctx. A case that fails
// carries its errors in its result and does not keep the others from running;
// the returned error is then the first of these failures.
func (x *Executor) Run(ctx context.Context, cases []scenarios.Case) ([]result.Case, error) {
	x.sweeper = mqtt.NewSweeper()
	defer x.sweeper.Stop()
	runs := make([]*caseRun, len(cases))
	for i := range cases {
		runs[i] = newCaseRun(x, i, &cases[i])
	}
	var first error
	for launch := 1; ctx.Err() == nil; launch++ {
		more := false
		for _, c := range runs {
			if launch > c.spec.Load.Launches || c.failed || ctx.Err() != nil {
				continue
			}
			more = true
			err := c.runLaunch(ctx, launch)
			if err != nil && first == nil {
				first = fmt.Errorf("%s: %w", c.spec.ID, err)
			}
			var ce *dial.Error
			if errors.As(err, &ce) && !x.told {
				// No client has ever connected: those of other cases would not either.
				return collect(runs), first
			}
		}
		if !more {
			break
		}
	}
	if err := context.Cause(ctx); err != nil {
		first = err
	}
	return collect(runs), first
}

func collect(runs []*caseRun) []result.Case {
	var out []result.Case
	for _, c := range runs {
		if c.begun {
			out = append(out, *c.result())
		}
	}
	return out
}
