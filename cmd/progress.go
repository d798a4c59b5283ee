package cmd

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/report"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// view shows on standard error how a run goes. Another way to show it is a type
// here and a line in newView; the calls are those of [load.Observer], one at a
// time, but for note. None uses colour, so there is nothing for NO_COLOR to
// switch off.
type view interface {
	// launch is called before the clients of a launch connect, and ready when
	// they have connected, and subscribed where they do.
	launch(l load.Launch)
	ready(l load.Launch)
	iteration(c *scenarios.Case, it result.Iteration)
	tick(c *scenarios.Case, t result.Tick, l load.Latencies)
	// done is called after a launch with the result so far of case index.
	done(index int, r *result.Case)
	// note prints a line between those of the view, at any time.
	note(line string)
	// stop ends the view, before anything else is printed.
	stop()
}

// newView makes a view of a run of so many cases, and starts to show it.
type newView func(t *terminal, cases int) view

// viewOf chooses how to show a run. A live command has a line per second.
func (t *terminal) viewOf(s settings, live bool, bad *bench.Faults) newView {
	log, hasLog := s["log"]
	if hasLog && log.value() != "bdn" {
		bad.Usage("write --log bdn", "%s %s: unknown style", log.place, strings.TrimSpace(log.value()))
	}
	switch {
	case s["quiet"].on(), !hasLog && s["no-progress"].on():
		return showNothing
	case live:
		return showRates
	case hasLog:
		return showBDN
	case t.isTerminal():
		return showLine
	}
	return showLog
}

// nothing is the view of a quiet run, and what the others leave out.
type nothing struct{ t *terminal }

func showNothing(t *terminal, _ int) view { return nothing{t} }

func (nothing) launch(load.Launch)                                {}
func (nothing) ready(load.Launch)                                 {}
func (nothing) iteration(*scenarios.Case, result.Iteration)       {}
func (nothing) tick(*scenarios.Case, result.Tick, load.Latencies) {}
func (nothing) done(int, *result.Case)                            {}
func (v nothing) note(line string)                                { v.t.warn("%s", line) }
func (nothing) stop()                                             {}

// bdnView has a line per iteration, as BenchmarkDotNet has.
type bdnView struct{ nothing }

func showBDN(t *terminal, _ int) view { return bdnView{nothing{t}} }

func (v bdnView) launch(l load.Launch) {
	v.t.warn("// Benchmark: %s, launch %d of %d", l.Case.ID, l.Number, l.Case.Load.Launches)
}

func (v bdnView) iteration(_ *scenarios.Case, it result.Iteration) {
	v.t.warn("%s", report.BDNLine(it.Stage, it.Index, it.Operations, it.ElapsedNS))
}

// ratesView has a line per second, as emqtt-bench has.
type ratesView struct {
	nothing
	total int64 // messages so far, or what else the shape counts
}

func showRates(t *terminal, _ int) view { return &ratesView{nothing: nothing{t}} }

func (v *ratesView) ready(l load.Launch) {
	what := "connected"
	cycles := l.Case.Load.Shape.Cycles
	if cycles && l.Connections == 0 {
		return
	}
	if l.Case.Load.SubscriberClients() > 0 && !cycles {
		what = "subscribed"
	}
	v.t.warn("%s: %s of %s", what, result.FormatInt(int64(l.Connections)), text.Count(l.Case.Load.Connections(), "client"))
}

// iteration shows an iteration, which takes about a second.
func (v *ratesView) iteration(c *scenarios.Case, it result.Iteration) {
	n, what := c.Load.Shape.Count(it), c.Load.Shape.Counts
	v.total += n
	at := time.Duration(it.StartNS + it.ElapsedNS).Round(100 * time.Millisecond)
	v.t.warn("%s  %s %s, %s/s", at, result.FormatInt(v.total), what, result.FormatFloat(float64(n)/(float64(max(it.ElapsedNS, 1))/1e9), 0))
}

// position is where a run stands.
type position struct {
	cases int
	step  report.Step
}

func (p *position) enter(l load.Launch) {
	p.step = report.Step{Case: l.Index + 1, Cases: p.cases, ID: l.Case.ID, Launch: l.Number, Launches: l.Case.Load.Launches}
}

func (p *position) advance(c *scenarios.Case, it result.Iteration) {
	p.step.Stage, p.step.Iteration, p.step.Iterations = it.Stage, it.Index, c.Load.Iterations
	if it.Stage == result.StageWarmup {
		p.step.Iterations = c.Load.Warmup
	}
	p.step.MessagesPerSec = 0
	if it.ElapsedNS > 0 {
		p.step.MessagesPerSec = float64(it.Received) / (float64(it.ElapsedNS) / 1e9)
	}
}

// lineView rewrites one line of a terminal.
type lineView struct {
	nothing
	mu    sync.Mutex
	pos   position
	shown bool // the line is on the terminal
}

func showLine(t *terminal, cases int) view {
	return &lineView{nothing: nothing{t}, pos: position{cases: cases}}
}

func (v *lineView) launch(l load.Launch) { v.rewrite(func() { v.pos.enter(l) }) }

func (v *lineView) iteration(c *scenarios.Case, it result.Iteration) {
	v.rewrite(func() { v.pos.advance(c, it) })
}

// rewrite puts the position after a move over the line that is shown.
func (v *lineView) rewrite(move func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	move()
	line := text.Plain(report.Progress(v.pos.step))
	if width := v.t.width(); utf8.RuneCountInString(line) >= width {
		line = string([]rune(line)[:max(0, width-1)])
	}
	v.t.print("\r" + line + "\x1b[K")
	v.shown = true
}

func (v *lineView) note(line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
	v.t.warn("%s", line)
}

func (v *lineView) stop() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
}

func (v *lineView) erase() {
	if v.shown {
		v.t.print(wipe)
		v.shown = false
	}
}

// logEvery is how often a log gets a line.
const logEvery = 5 * time.Second

// logView has a line every few seconds, and one per launch.
type logView struct {
	nothing
	mu     sync.Mutex
	pos    position
	ticker *time.Ticker
	ended  chan struct{}
	ticks  sync.WaitGroup
}

func showLog(t *terminal, cases int) view {
	v := &logView{nothing: nothing{t}, pos: position{cases: cases}, ticker: time.NewTicker(logEvery), ended: make(chan struct{})}
	v.ticks.Go(v.run)
	return v
}

func (v *logView) run() {
	for {
		select {
		case <-v.ended:
			return
		case <-v.ticker.C:
			v.mu.Lock()
			if v.pos.step.ID != "" {
				v.t.warn("%s", report.Progress(v.pos.step))
			}
			v.mu.Unlock()
		}
	}
}

func (v *logView) launch(l load.Launch) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pos.enter(l)
}

func (v *logView) iteration(c *scenarios.Case, it result.Iteration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pos.advance(c, it)
}

func (v *logView) done(index int, r *result.Case) {
	v.mu.Lock()
	defer v.mu.Unlock()
	what := "nothing measured"
	if m := r.Summary.MeanNS; m != nil && r.Summary.ReqPerSec != nil {
		what = fmt.Sprintf("mean %s, %s req/s", result.FormatNS(*m), result.FormatFloat(*r.Summary.ReqPerSec, 0))
	}
	v.t.warn("[%d/%d] %s  %s", index+1, v.pos.cases, r.ID, what)
	v.ticker.Reset(logEvery)
}

func (v *logView) stop() {
	v.ticker.Stop()
	close(v.ended)
	v.ticks.Wait()
}
