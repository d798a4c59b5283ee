package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/internal/preflight"
	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// checkFlags are those of run, except for judging and writing results.
var checkFlags = append(withoutGroups(runFlags, "Gates", "Output"), flagGroup{"Output", []flagSpec{
	formatFlag([]string{"console", "json"}),
	{name: "seed", tool: true, value: "N", help: "seed of the run id", preset: "random"},
	configFlag,
}})

func withoutGroups(groups []flagGroup, titles ...string) []flagGroup {
	return slices.DeleteFunc(slices.Clone(groups), func(g flagGroup) bool {
		return slices.ContainsFunc(titles, func(t string) bool { return strings.HasPrefix(g.title, t) })
	})
}

func (a *app) checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "check [SCENARIO] [flags]", Short: "Check this host and the broker before a run",
		Long: "Check takes the same arguments as run and verifies, with a few packets, that the\n" +
			"run can work: that the limits of this host suffice, that the broker can be\n" +
			"reached, trusted and logged in to, that messages come back, and that the broker's\n" +
			"limits allow every case.",
		Example: "  mqttload check quick --url mqtts://broker --cafile ca.pem",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return stray(c, args[1])
			}
			return nil
		},
		ValidArgsFunction: completeScenario,
	}
	define(c, checkFlags)
	complete(c, "format", []string{"console", "json"})
	completeFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error { return a.check(c, args) }
	return c
}

// checkSchema names the form of check's JSON.
const checkSchema = "mqttload.check/1"

// checked is what check prints.
type checked struct {
	Schema   string `json:"schema"`
	ExitCode int    `json:"exit_code"`
	preflight.Checklist
}

func (a *app) check(c *cobra.Command, args []string) error {
	s, bad := a.gather(c, checkFlags)
	render, ok := map[string]func(checked) string{"console": checked.console, "json": checked.json}[cmp.Or(s["format"].value(), "console")]
	if !ok {
		bad.Usage("", "%s %s: the formats of check are console and json", s["format"].place, printable(s["format"].value()))
	}
	seed := readSeed(s, &bad)
	sc := openScenario(args, &bad)
	if sc == nil {
		return bad.Err()
	}
	a.override(sc, s, &bad)
	sc.Seed = seed
	cases, err := sc.Cases()
	if err != nil {
		return append(bad, bench.AsFaults(err, bench.Usage)...)
	}
	bad = append(bad, bench.CheckTLS(cases)...)
	if len(bad) > 0 {
		return bad
	}
	a.warnScenario(sc)
	list, err := a.preflight(c.Context(), cases, runID(seed))
	if err != nil {
		return err
	}
	class := classOf(list.Lines)
	out := checked{checkSchema, exitCodes[class], list}
	if _, err := io.WriteString(a.Stdout, render(out)); err != nil {
		return stdoutError(err)
	}
	if class != 0 {
		return bench.Fault{Class: class} // its words are on the list
	}
	return nil
}

// preflight checks this host, and where it will do the broker.
func (a *app) preflight(ctx context.Context, cases []scenarios.Case, runID string) (preflight.Checklist, error) {
	inside := bench.Embedded(cases)
	lines := bench.ThisHost().Check(cases, bench.Descriptors(cases, inside))
	if classOf(lines) != 0 {
		return preflight.Checklist{Lines: lines, Cells: preflight.NoCells(cases, "this host cannot run them")}, nil
	}
	ctx, stop := a.interruptible(ctx, func() {})
	defer stop()
	if inside {
		var b *broker.Broker
		var err error
		b, cases, err = bench.StartEmbedded(cases)
		if err != nil {
			return preflight.Checklist{}, bench.Faultf(bench.Internal, "", "%v", err)
		}
		defer b.Close()
	}
	list := preflight.Brokers(ctx, cases, preflight.Options{RunID: runID})
	if context.Cause(ctx) == bench.ErrInterrupted {
		return list, bench.Faultf(bench.Interrupted, "", "interrupted")
	}
	list.Lines = slices.Concat(lines, list.Lines)
	return list, nil
}

// classOf is what the failed lines of a list of checks amount to; 0 where none failed.
func classOf(lines []preflight.Line) bench.Class {
	classes := map[preflight.Cause]bench.Class{
		preflight.Here: bench.Usage, preflight.Unreachable: bench.Unreachable,
		preflight.Incomplete: bench.Incomplete, preflight.Delivery: bench.Delivery,
	}
	var bad bench.Faults
	for _, l := range lines {
		if l.Status == preflight.Fail {
			bad = append(bad, bench.Fault{Class: classes[l.Cause]})
		}
	}
	if len(bad) == 0 {
		return 0
	}
	return bad.InOrder()[0].Class
}

func (c checked) json() string {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "" // it holds nothing that cannot be marshalled
	}
	return string(b) + "\n"
}

func (c checked) console() string {
	var b strings.Builder
	for i, l := range c.Lines {
		if i == 0 || l.Target != c.Lines[i-1].Target {
			fmt.Fprintln(&b, text.Plain(cmp.Or(l.Target, "this run, from this host")))
		}
		fmt.Fprintf(&b, "  %-4s  %-15s %s\n", l.Status, l.Check, text.Plain(l.Message))
		if l.Hint != "" {
			fmt.Fprintf(&b, "        %-15s hint: %s\n", "", text.Plain(l.Hint))
		}
	}
	for _, one := range cannotRun(c.Cells) {
		fmt.Fprintln(&b, text.Plain(one))
	}
	return b.String()
}

// cannotRun names the cases that cannot run, a line for each reason.
func cannotRun(cells []preflight.Cell) []string {
	ids := map[string][]string{}
	var reasons, lines []string
	for _, c := range cells {
		if c.Runs {
			continue
		}
		if ids[c.Reason] == nil {
			reasons = append(reasons, c.Reason)
		}
		ids[c.Reason] = append(ids[c.Reason], c.ID)
	}
	for _, reason := range reasons {
		which := strings.Join(ids[reason], ", ")
		if n := len(ids[reason]); n == len(cells) && n > 1 {
			which = "any case"
		}
		lines = append(lines, fmt.Sprintf("cannot run %s: %s", which, reason))
	}
	return lines
}

// preflight connects to every target of a run once, and says which cases cannot
// run. Where none can, stopped is set and nothing shall be sent: the first
// reason is the run's outcome.
func (r *run) preflight(ctx context.Context) (o outcome, stopped bool) {
	if r.embedded || r.live {
		return o, false // a live command's own connection is the check
	}
	cells := preflight.Brokers(ctx, r.cases, preflight.Options{RunID: r.report.Run.ID, Short: true}).Cells
	switch {
	case ctx.Err() != nil:
		return o, false // measuring ends with it
	case slices.ContainsFunc(cells, func(c preflight.Cell) bool { return c.Runs }):
		for _, line := range cannotRun(cells) {
			r.a.warn("warning: %s", line)
		}
		return o, false
	}
	first, err := r.cases[0], cells[0].Err
	r.report.Run.Started = time.Now().UTC()
	r.report.Target = result.Target{URL: bench.FirstURL(r.cases)}
	r.report.Cases = []result.Case{{ID: first.ID, Params: first.Params,
		Errors: []result.Error{load.ErrorOf(err)}}}
	return outcome{planned: r.cases, cases: r.report.Cases, err: err}, true
}
