package cmd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/internal/preflight"
	"github.com/mqttload/mqttload/internal/text"
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
	bad = append(bad, bench.AsFaults(sc.CheckTLS(), bench.Usage)...)
	if len(bad) > 0 {
		return bad
	}
	a.warnScenario(sc)
	ctx, stop := a.interruptible(c.Context(), func() {})
	defer stop()
	list, class, err := bench.CheckList(ctx, cases, bench.RunID(seed))
	if err != nil {
		return err
	}
	out := checked{checkSchema, exitCodes[class], list}
	if _, err := io.WriteString(a.Stdout, render(out)); err != nil {
		return stdoutError(err)
	}
	if class != 0 {
		return bench.Fault{Class: class} // the list has the messages
	}
	return nil
}

func (c checked) json() string {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "" // cannot happen: every field can be marshalled
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
	for _, one := range bench.CannotRun(c.Cells) {
		fmt.Fprintln(&b, text.Plain(one))
	}
	return b.String()
}
