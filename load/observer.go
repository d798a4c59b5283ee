package load

import (
	"context"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// Observer is told how a run goes. Each func may be nil. The engine makes one
// call at a time, and all but Phase must return soon: the engine waits for them.
//
// None is called for a message: what an Observer costs depends on the seconds,
// iterations and launches of a run.
type Observer struct {
	// Connected is called after the first connection of the run, and after the
	// first over TLS where that is another.
	Connected func(t result.Target)
	// Phase is a barrier: the engine enters phase p of launch l when the call
	// returns, so it may block for as long as it likes, to keep several engines
	// in step or to measure something else in between. The time it takes is not
	// measured. It must return when ctx ends. An error fails the case.
	Phase func(ctx context.Context, p Phase, l Launch) error
	// Tick is called about once a second of measured time with the new point of
	// the timeline and the latencies that were recorded in that second. At the
	// end of a launch a call may carry the remaining latencies and count no
	// message: over the run the histograms add up to those of the case.
	Tick func(c *scenarios.Case, t result.Tick, l Latencies)
	// Iteration is called after each iteration.
	Iteration func(c *scenarios.Case, it result.Iteration)
	// LaunchDone is called after each launch with the result so far of case
	// index (from 0).
	LaunchDone func(index int, r *result.Case)
	// Ledger is given the account of every stream of a launch, or of one
	// iteration where each has connections of its own.
	Ledger func(c *scenarios.Case, rows []result.StreamAccount)
}

// Phase is a part of a launch that begins when [Observer].Phase allows it.
type Phase int

// Phases, in their order. A launch whose iterations have connections of their
// own publishes several times.
const (
	// Connecting: no client of the launch has connected yet.
	Connecting Phase = iota
	// Publishing: every client that can has connected and subscribed, and
	// nothing has been published, nor has the warm-up begun.
	Publishing
	// Ended: the launch's connections are closed, and LaunchDone has its result.
	Ended
)

// Launch is one launch of a case.
type Launch struct {
	Case        *scenarios.Case
	Index       int // of the case, from 0
	Number      int // of the launch, from 1
	Connections int // that are open now
}

// Latencies are the latencies of about one second, in ns, merged over all
// clients. A histogram is nil where the case has no such latency, and is only
// valid during the call.
type Latencies struct {
	EndToEnd, Service, SendLag, Ack, Pubrec *hdrhistogram.Histogram
}
