package cmd

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/report"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// Ways to show progress.
const (
	showNothing = iota
	showLine    // one line of a terminal, rewritten
	showLines   // a line now and then, for logs
	showBDN     // a line per iteration, as BenchmarkDotNet's
	showRates   // a line per second, as emqtt-bench's
)

// plainEvery is how often a log gets a line.
const plainEvery = 5 * time.Second

// progress tells how the run goes, on stderr. It uses no colour, so NO_COLOR
// finds nothing to switch off.
type progress struct {
	a     *app
	mode  int
	cases int

	mu     sync.Mutex
	step   report.Step
	shown  bool  // a rewritten line stands on the terminal
	total  int64 // messages so far, for rates
	ticker *time.Ticker
	ended  chan struct{}
	idle   sync.WaitGroup
}

// newProgress starts showing; stop it before anything else is printed.
func newProgress(a *app, mode, cases int) *progress {
	p := &progress{a: a, mode: mode, cases: cases, ended: make(chan struct{})}
	if mode == showLines {
		p.ticker = time.NewTicker(plainEvery)
		p.idle.Go(p.tick)
	}
	return p
}

func (p *progress) tick() {
	for {
		select {
		case <-p.ended:
			return
		case <-p.ticker.C:
			p.mu.Lock()
			if p.step.ID != "" {
				p.a.warn("%s", report.Progress(p.step))
			}
			p.mu.Unlock()
		}
	}
}

func (p *progress) stop() {
	p.mu.Lock()
	p.erase()
	p.mu.Unlock()
	if p.ticker != nil {
		p.ticker.Stop()
		close(p.ended)
		p.idle.Wait()
	}
}

// note prints a line beside the progress.
func (p *progress) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	p.a.warn(format, args...)
}

func (p *progress) launch(c *scenarios.Case, index, launch int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step = report.Step{Case: index + 1, Cases: p.cases, ID: c.ID, Launch: launch, Launches: c.Load.Launches}
	if p.mode == showBDN {
		p.a.warn("// Benchmark: %s, launch %d of %d", c.ID, launch, c.Load.Launches)
	}
	p.rewrite()
}

func (p *progress) iteration(c *scenarios.Case, it result.Iteration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step.Stage, p.step.Iteration, p.step.Iterations = it.Stage, it.Index, c.Load.Iterations
	if it.Stage == result.StageWarmup {
		p.step.Iterations = c.Load.Warmup
	}
	p.step.MessagesPerSec = 0
	if it.ElapsedNS > 0 {
		p.step.MessagesPerSec = float64(it.Received) / (float64(it.ElapsedNS) / 1e9)
	}
	if p.mode == showBDN {
		p.a.warn("%s", report.BDNLine(it.Stage, it.Index, it.Operations, it.ElapsedNS))
	}
	if p.mode == showRates {
		p.rates(c, it)
	}
	p.rewrite()
}

// ready tells that everybody has connected, and subscribed where they do.
func (p *progress) ready(c *scenarios.Case, connections int) {
	if p.mode != showRates {
		return
	}
	what := "connected"
	cycles := c.Load.Shape.Cycles
	if cycles && connections == 0 {
		return
	}
	if c.Load.SubscriberClients() > 0 && !cycles {
		what = "subscribed"
	}
	p.note("%s: %s of %s", what, result.FormatInt(int64(connections)), text.Count(c.Load.Connections(), "client"))
}

// rates tells what one iteration, of about a second, has brought.
func (p *progress) rates(c *scenarios.Case, it result.Iteration) {
	n, what := c.Load.Shape.Count(it), c.Load.Shape.Counts
	p.total += n
	at := time.Duration(it.StartNS + it.ElapsedNS).Round(100 * time.Millisecond)
	p.a.warn("%s  %s %s, %s/s", at, result.FormatInt(p.total), what, result.FormatFloat(float64(n)/(float64(max(it.ElapsedNS, 1))/1e9), 0))
}

// done tells what a case's launch came to.
func (p *progress) done(index int, r *result.Case) {
	if p.mode != showLines {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	what := "nothing measured"
	if m := r.Summary.MeanNS; m != nil && r.Summary.ReqPerSec != nil {
		what = fmt.Sprintf("mean %s, %s req/s", result.FormatNS(*m), result.FormatFloat(*r.Summary.ReqPerSec, 0))
	}
	p.a.warn("[%d/%d] %s  %s", index+1, p.cases, r.ID, what)
	p.ticker.Reset(plainEvery)
}

// rewrite puts the current step over the line that stands there.
func (p *progress) rewrite() {
	if p.mode != showLine {
		return
	}
	line := text.Plain(report.Progress(p.step))
	if width := p.width(); utf8.RuneCountInString(line) >= width {
		line = string([]rune(line)[:max(0, width-1)])
	}
	p.a.print("\r" + line + "\x1b[K")
	p.shown = true
}

func (p *progress) erase() {
	if p.shown {
		p.a.print("\r\x1b[K")
		p.shown = false
	}
}

func (p *progress) width() int {
	if f, ok := p.a.Stderr.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 80
}

// progressMode chooses how to show progress.
func (a *app) progressMode(s settings, bad *bench.Faults) int {
	log, hasLog := s["log"]
	if hasLog && log.value() != "bdn" {
		bad.Usage("write --log bdn", "%s %s: unknown style", log.place, strings.TrimSpace(log.value()))
	}
	switch {
	case s["quiet"].on():
		return showNothing
	case hasLog:
		return showBDN
	case s["no-progress"].on():
		return showNothing
	case a.isTerminal(a.Stderr):
		return showLine
	}
	return showLines
}
