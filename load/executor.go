// Package load is the engine: it runs cases. A case connects publishers and
// subscribers, warms up, measures, drains and disconnects; what comes out is
// one [result.Case]. The engine drives sockets and the clock only through what
// its [Config] gives it, so that a whole run can take place on virtual time.
// It prints nothing and formats nothing.
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
	// RunID tells this run's messages, topics and clients from others'. Its
	// characters must be allowed in a client id.
	RunID string
	// Dial opens connections; nil is a net.Dialer, which sets TCP_NODELAY.
	Dial dial.Func
	// Clock returns monotonic nanoseconds; nil is the process's own clock.
	Clock func() int64
	// Waiter makes what paces an open loop; nil is pace.New.
	Waiter func() *pace.Waiter
	// CPU returns the process's CPU time so far; nil asks the system.
	CPU func() (user, system time.Duration)
	// Observer is told how the run goes.
	Observer Observer
	// Enough ends a case of listeners when they have received so many messages;
	// 0 is no limit. What comes after that is not counted.
	Enough int64
	// Embedded says that the broker runs in this process, so that the CPU
	// time and the cores are its own as well.
	Embedded bool
}

// Executor runs cases.
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

// greet calls Observer.Connected for the first connection, and the first over TLS.
func (x *Executor) announce(overTLS bool, target func() result.Target) {
	x.greeting.Lock()
	defer x.greeting.Unlock()
	first := !x.told || overTLS && !x.toldTLS
	x.told, x.toldTLS = true, x.toldTLS || overTLS
	if first && x.cfg.Observer.Connected != nil {
		x.cfg.Observer.Connected(target())
	}
}

// Run runs the launches of the cases in turns, so that drift of the machine or
// the broker meets all cases alike, and returns one result per case that was
// begun, in the cases' order. When ctx ends it stops sending, drains, and
// returns what there is with ctx's cause. A case that fails carries its errors
// in its result and does not keep the others from running; the returned error
// is then the first such failure.
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
				// Nobody has ever got through: the other cases would not either.
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
