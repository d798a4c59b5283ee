// Package preflight finds out, before any load, what would keep a run from
// being one: the limits of this host, a broker that is not there or lets nobody
// in, and cases that the broker's limits rule out. It sends a handful of
// packets per target, to the topic and as the client that the run would use.
package preflight

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// Status is the verdict of one check.
type Status string

// Verdicts.
const (
	OK   Status = "ok"
	Warn Status = "warn" // the run can go ahead, and its operator should know
	Fail Status = "fail"
)

// Cause is whose fault a failed check is.
type Cause int

// Causes.
const (
	None        Cause = iota
	Here              // this host or what was asked of it: nothing was sent
	Unreachable       // the broker cannot be reached, or refuses
	Incomplete        // a part of what was asked for cannot be
	Delivery          // a message was lost or came twice
)

// A Line is one check. Message says what was seen, Hint what to do about it.
type Line struct {
	Target  string `json:"target,omitempty"` // URL; "" is this host
	Check   string `json:"check"`
	Status  Status `json:"status"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Cause   Cause  `json:"-"`
}

// A Cell is one case and, where it cannot run, why.
type Cell struct {
	ID     string `json:"id"`
	Runs   bool   `json:"runs"`
	Reason string `json:"reason,omitempty"`
	Err    error  `json:"-"` // Reason as an error of package load or mqtt
}

// Checklist is everything that was found out.
type Checklist struct {
	Lines []Line `json:"checks"`
	Cells []Cell `json:"cases"`
}

// Options are how far to go. RunID is that of the run, or of its like.
type Options struct {
	RunID string
	// Open replaces the network; nil is that of this process.
	Open dial.Func
	// Short leaves out the messages: it connects, and that is all.
	Short bool
}

// A prober checks the targets of the cases.
type prober struct {
	Options
	cases []scenarios.Case
	list  *Checklist
	at    string // target of the lines that are added
	lost  []int  // by case: targets that cannot be used
}

func (p *prober) add(check string, s Status, c Cause, hint, format string, args ...any) {
	p.list.Lines = append(p.list.Lines, Line{p.at, check, s, fmt.Sprintf(format, args...), hint, c})
}

func (p *prober) ok(check, format string, args ...any) { p.add(check, OK, None, "", format, args...) }

// rule says that a case cannot run; the first reason stays.
func (p *prober) rule(i int, err error) {
	if c := &p.list.Cells[i]; c.Runs {
		c.Runs, c.Reason, c.Err = false, err.Error(), err
	}
}

// Brokers checks the targets of the cases, which must have some. Every pair of
// target and protocol is connected to once. When ctx ends it returns what there is.
func Brokers(ctx context.Context, cases []scenarios.Case, o Options) Checklist {
	p := &prober{Options: o, cases: cases, lost: make([]int, len(cases)), list: &Checklist{Lines: []Line{}, Cells: []Cell{}}}
	for _, c := range cases {
		p.list.Cells = append(p.list.Cells, Cell{ID: c.ID, Runs: true})
	}
	dead := map[scenarios.URL]error{} // not reached under one protocol: nor under another
	for _, r := range p.routes() {
		if ctx.Err() != nil {
			break
		}
		p.at = r.url.String()
		if why := dead[r.url]; why != nil {
			r.lose(why)
			continue
		}
		if err := r.probe(ctx); err != nil {
			dead[r.url] = err
		}
	}
	p.at = ""
	p.sum()
	return *p.list
}

// sum adds the line on cases that cannot run.
func (p *prober) sum() {
	n := 0
	for _, c := range p.list.Cells {
		if c.Runs {
			n++
		}
	}
	switch of := len(p.list.Cells); {
	case n == of:
		p.ok("cases", "%s can run", count(of, "case"))
	case n == 0:
		p.add("cases", Fail, Unreachable, "", "no case can run")
	default:
		p.add("cases", Fail, Incomplete, "leave them out with exclude or fewer --qos, --payload and --protocol, or raise the broker's limits", "%s of %s cannot run", result.FormatInt(int64(of-n)), count(of, "case"))
	}
}

// route is one target under one protocol, with the cases that use it.
type route struct {
	*prober
	url   scenarios.URL
	index int // of url among the targets of the first case
	first bool
	cases []int
}

// routes lists the pairs of target and protocol in the order of the cases.
func (p *prober) routes() []*route {
	var list []*route
	for i, c := range p.cases {
		for j, u := range c.Target.URLs {
			at := slices.IndexFunc(list, func(r *route) bool { return r.url == u && p.cases[r.cases[0]].Protocol == c.Protocol })
			if at < 0 {
				at = len(list)
				seen := slices.ContainsFunc(list, func(r *route) bool { return r.url == u })
				list = append(list, &route{prober: p, url: u, index: j, first: !seen})
			}
			list[at].cases = append(list[at].cases, i)
		}
	}
	return list
}

// each calls f for the route's cases.
func (r *route) each(f func(i int, c *scenarios.Case)) {
	for _, i := range r.cases {
		f(i, &r.prober.cases[i])
	}
}

// lead is the case whose clients the probe takes after.
func (r *route) lead() *scenarios.Case { return &r.prober.cases[r.cases[0]] }

// unreachable fails the route.
func (r *route) unreachable(check, hint string, err error) {
	r.add(check, Fail, Unreachable, hint, "%v", err)
	r.lose(err)
}

// lose takes the target from the cases; one that has no other cannot run.
func (r *route) lose(err error) {
	r.each(func(i int, c *scenarios.Case) {
		if r.lost[i]++; r.lost[i] == len(c.Target.URLs) {
			r.rule(i, err)
		}
	})
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return result.FormatInt(int64(n)) + " " + what + "s"
}

// took renders a duration to three digits or so.
func took(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// NoCells says of every case that it cannot run, and why.
func NoCells(cases []scenarios.Case, reason string) []Cell {
	cells := []Cell{}
	for _, c := range cases {
		cells = append(cells, Cell{ID: c.ID, Reason: reason})
	}
	return cells
}
