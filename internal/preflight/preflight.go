// Package preflight checks, before any load, what would prevent a run: the limits of
// this host, a broker that cannot be reached or refuses clients, and cases that
// exceed the broker's limits. It sends a few packets to each target, as the first
// client of the run and to the topic of the run.
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

// Values of Status.
const (
	OK   Status = "ok"
	Warn Status = "warn" // the run is possible, with a drawback
	Fail Status = "fail"
)

// Cause is the class of a failed check.
type Cause int

// Values of Cause.
const (
	None        Cause = iota
	Here              // this host or the scenario: nothing was sent
	Unreachable       // the broker cannot be reached, or refuses
	Incomplete        // a part of the cases cannot run
	Delivery          // a message was lost or delivered twice
)

// A Line is the result of one check. Message says what was found, Hint what to do
// about it.
type Line struct {
	Target  string `json:"target,omitempty"` // URL; "" is this host
	Check   string `json:"check"`
	Status  Status `json:"status"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Cause   Cause  `json:"-"`
}

// A Cell is one case and, if it cannot run, the reason.
type Cell struct {
	ID     string `json:"id"`
	Runs   bool   `json:"runs"`
	Reason string `json:"reason,omitempty"`
	Err    error  `json:"-"` // Reason as an error of package load or mqtt
}

// Checklist holds the results of all checks.
type Checklist struct {
	Lines []Line `json:"checks"`
	Cells []Cell `json:"cases"`
}

// Options are the choices of the checks. RunID is the id of the run.
type Options struct {
	RunID string
	// Open replaces the network; nil is the network of this process.
	Open dial.Func
	// Short only connects and sends no messages.
	Short bool
}

// A prober checks the targets of the cases.
type prober struct {
	opts  Options
	cases []scenarios.Case
	list  *Checklist
	at    string // target of the lines that are added
	lost  []int  // by case: targets that cannot be used
}

func (p *prober) add(check string, s Status, c Cause, hint, format string, args ...any) {
	p.list.Lines = append(p.list.Lines, Line{p.at, check, s, fmt.Sprintf(format, args...), hint, c})
}

func (p *prober) ok(check, format string, args ...any) { p.add(check, OK, None, "", format, args...) }

// exclude marks a case as one that cannot run. The first reason stays.
func (p *prober) exclude(i int, err error) {
	if c := &p.list.Cells[i]; c.Runs {
		c.Runs, c.Reason, c.Err = false, err.Error(), err
	}
}

// Brokers checks the targets of the cases, at least one each. It connects once for
// every pair of target and protocol. If ctx ends, it returns the results so far.
func Brokers(ctx context.Context, cases []scenarios.Case, o Options) Checklist {
	p := &prober{opts: o, cases: cases, lost: make([]int, len(cases)), list: &Checklist{Lines: []Line{}, Cells: []Cell{}}}
	for _, c := range cases {
		p.list.Cells = append(p.list.Cells, Cell{ID: c.ID, Runs: true})
	}
	dead := map[scenarios.URL]error{} // not reachable, whatever the protocol
	for _, r := range p.routes() {
		if ctx.Err() != nil {
			break
		}
		p.at = r.url.String()
		if why := dead[r.url]; why != nil {
			r.removeTarget(why)
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
		p.add("cases", Fail, Incomplete, "remove them with exclude or fewer --qos, --payload and --protocol, or raise the broker's limits", "%s of %s cannot run", result.FormatInt(int64(of-n)), count(of, "case"))
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

// lead is the case whose first client the probe stands for.
func (r *route) lead() *scenarios.Case { return &r.prober.cases[r.cases[0]] }

// unreachable fails the route.
func (r *route) unreachable(check, hint string, err error) {
	r.add(check, Fail, Unreachable, hint, "%v", err)
	r.removeTarget(err)
}

// removeTarget removes the target from the cases. A case without another target cannot run.
func (r *route) removeTarget(err error) {
	r.each(func(i int, c *scenarios.Case) {
		if r.lost[i]++; r.lost[i] == len(c.Target.URLs) {
			r.exclude(i, err)
		}
	})
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return result.FormatInt(int64(n)) + " " + what + "s"
}

// took formats a duration with about three digits.
func took(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// NoCells returns a cell for every case with the reason why it cannot run.
func NoCells(cases []scenarios.Case, reason string) []Cell {
	cells := []Cell{}
	for _, c := range cases {
		cells = append(cells, Cell{ID: c.ID, Reason: reason})
	}
	return cells
}
