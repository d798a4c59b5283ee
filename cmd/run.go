package cmd

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/report"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

func (a *app) runCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "run [SCENARIO] [flags]", Short: "Run a scenario and print its table",
		Long: "Run measures every case of a scenario and prints one table row per case.\n" +
			"SCENARIO is the name of a built-in scenario or of a YAML file (\"default\" if\n" +
			"omitted). Flags override the scenario. Without a target, run measures the\n" +
			"embedded broker on loopback.",
		Example: "  mqttload run --url mqtt://broker:1883 --qos 0,1,2 --payload 10,1KiB --output report.json",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return stray(c, args[1])
			}
			return nil
		},
		ValidArgsFunction: completeScenario,
	}
	define(c, runFlags)
	completeFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		r, err := a.prepare(c, args, measuring{groups: runFlags, open: func(args []string, _ settings, bad *bench.Faults) *scenarios.Scenario { return openScenario(args, bad) }})
		if err != nil {
			return err
		}
		return r.run(c.Context())
	}
	return c
}

// measuring is a command that measures: its flags, and how they make a scenario.
type measuring struct {
	groups []flagGroup
	// open returns the scenario that the settings override; it may change them.
	open func(args []string, s settings, bad *bench.Faults) *scenarios.Scenario
	// live has a line for every second, and may be told to end after so many
	// messages; being stopped is its way to end.
	live bool
}

// run is one prepared run: everything that could be checked before the first
// connection has been.
type run struct {
	a        *app
	cases    []scenarios.Case
	outs     outputs
	judge    bench.Judge
	view     newView
	quiet    bool
	strict   bool
	live     bool
	ledger   *ledgerFile // nil unless it is asked for
	limit    int64       // messages received after which sub ends, 0 for none
	dryRun   bool
	embedded bool
	report   *result.Report
}

// prepare reads and checks everything, and returns all that is wrong at once.
func (a *app) prepare(c *cobra.Command, args []string, m measuring) (*run, error) {
	s, bad := a.gather(c, m.groups)
	sc := m.open(args, s, &bad)
	if sc != nil {
		a.override(sc, s, &bad)
	}
	r := &run{a: a, quiet: s["quiet"].on(), strict: s["strict"].on(), dryRun: s["dry-run"].on(), live: m.live}
	r.limit = readCount(s, &bad)
	r.outs = reportFormats.parse(s, &bad)
	r.view = a.viewOf(s, m.live, &bad)
	seed := readSeed(s, &bad)
	if sc == nil {
		return nil, bad
	}
	var err error
	sc.Seed = seed
	if r.cases, err = sc.Cases(); err != nil {
		return nil, append(bad, bench.AsFaults(err, bench.Usage)...)
	}
	for i := range r.cases {
		if bench.Unbounded(r.cases[i].Load) && len(r.cases) > 1 {
			bad.Usage("give --duration", "case %d of %d would never end, and the others wait for it", i+1, len(r.cases))
			break
		}
	}
	a.warnScenario(sc)
	r.outs.spare(s, append(filesRead(args, s), sc.Files()...), &bad)
	r.ledger = ledgerOf(s, append(filesRead(args, s), sc.Files()...), r.outs, &bad)
	r.judge = readJudge(s, sc, r.cases, r.outs, &bad)
	bad = append(bad, bench.CheckTLS(r.cases)...)
	r.embedded = bench.Embedded(r.cases)
	env := bench.Machine()
	for _, l := range bench.CheckHost(r.cases, r.embedded, bench.ThisHost(), &bad) {
		a.warn("warning: %s: %s", l.Message, l.Hint)
	}
	if !s["force"].on() {
		bench.CheckMemory(r.cases, r.embedded, bench.AvailableMemory(), &bad)
	}
	r.report = &result.Report{
		Schema: result.Schema, Tool: tool(), Environment: env,
		Scenario: sc.Effective(), ScenarioHash: sc.Hash(),
		Run: result.Run{ID: runID(seed), Seed: seed, Command: commandLine(c, args, m.groups)},
	}
	if len(bad) == 0 {
		bad = r.judge.Check(r.report, r.cases)
	}
	return r, bad.InOrder().Err()
}

// openScenario returns the scenario that the arguments name.
func openScenario(args []string, bad *bench.Faults) *scenarios.Scenario {
	name := "default"
	if len(args) > 0 {
		name = args[0]
	}
	if strings.Contains(name, "://") {
		bad.Usage("give the broker with --url", "%s is no scenario", printable(name))
		return nil
	}
	sc, err := scenarios.Open(name)
	if err != nil {
		*bad = append(*bad, bench.AsFaults(err, bench.Usage)...)
		return nil
	}
	return sc
}

// override lets the settings override the scenario.
func (a *app) override(sc *scenarios.Scenario, s settings, bad *bench.Faults) {
	sc.LookupEnv = a.lookupEnv
	s.settle("url", []string{"host", "port"}, bad)
	s.settle("password", []string{"password-file"}, bad)
	s.settle("password", []string{"password-env"}, bad)
	s.settle("password-file", []string{"password-env"}, bad)
	s.settle("transport", []string{"tls"}, bad)
	s.settleRates(bad)
	if s["password"].source == fromFlag {
		a.warn("warning: --password shows in ps to everybody on this machine: --password-file and --password-env do not")
	}
	for _, one := range s.in(runFlags) {
		if !one.tool {
			*bad = append(*bad, bench.AsFaults(sc.SetFrom(one.place, one.name, one.values...), bench.Usage)...)
		}
	}
}

// fileFlags are the flags of run whose values are files that it reads, but for
// those of the scenario, which knows its own, and the baseline, which readJudge
// refuses in words of its own.
var fileFlags = []string{"config", "gate"}

// filesRead lists the files that the arguments and settings of run name.
func filesRead(args []string, s settings) (paths []string) {
	named := func(sc *scenarios.Scenario) bool { return sc.Name == args[0] }
	if len(args) > 0 && !slices.ContainsFunc(scenarios.Builtins(), named) {
		paths = append(paths, args[0])
	}
	if _, other := s["config"]; !other {
		paths = append(paths, defaultConfig)
	}
	for _, name := range fileFlags {
		paths = append(paths, s[name].values...)
	}
	return paths
}

func (a *app) warnScenario(sc *scenarios.Scenario) {
	for _, w := range sc.Warnings() {
		a.warn("warning: %s: %s", w.Message, w.Hint)
	}
}

// readSeed returns the seed: the one asked for, or a random one.
func readSeed(s settings, bad *bench.Faults) uint64 {
	one, ok := s["seed"]
	if !ok {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails: it ends the program instead
		return binary.LittleEndian.Uint64(b[:])
	}
	n, err := strconv.ParseUint(one.value(), 10, 64)
	if err != nil {
		bad.Usage("", "%s %s: a seed is a whole number from 0 to 18446744073709551615", one.place, one.value())
	}
	return n
}

// runID makes eight characters, of those every broker takes in a client id,
// that differ for different seeds: the seed's bits are mixed first, so that
// 1 and 2 look no more alike than others do.
func runID(seed uint64) string {
	hi, lo := bits.Mul64(seed^0x9e3779b97f4a7c15, 0xd1342543de82ef95)
	s := strconv.FormatUint(hi^lo, 36)
	if len(s) < 8 {
		s = strings.Repeat("0", 8-len(s)) + s
	}
	return s[len(s)-8:]
}

// run says what is going to happen, makes it happen, and says how it went.
func (r *run) run(ctx context.Context) error {
	if r.dryRun {
		return r.plan(ctx)
	}
	view := r.view(r.a.terminal, len(r.cases))
	ctx, stop := r.a.interruptible(ctx, func() {
		view.note("interrupted: finishing what is under way; once more to quit at once")
	})
	defer stop()
	if r.embedded {
		b, cases, err := bench.StartEmbedded(r.cases)
		if err != nil {
			view.stop()
			return bench.Faultf(bench.Internal, "", "%v", err)
		}
		defer b.Close()
		r.cases = cases
	}
	if !r.quiet {
		r.announce(ctx)
	}
	o, stopped := r.preflight(ctx)
	if !stopped {
		o = r.measure(ctx, view)
	}
	view.stop()
	r.report.Run.Status = o.status()
	now := time.Now().UTC()
	r.report.Run.Finished = &now
	return r.finish(o)
}

// finish judges what was measured, prints it and writes the files.
func (r *run) finish(o outcome) error {
	var j judgement
	r.a.addCeilings(r.report, r.quiet)
	if o.measured() {
		j = judged(r.judge, r.report)
	}
	bad := slices.Concat(o.verdict(), j.faults)
	if f := r.outs.stdout(); len(j.compared) > 0 && f != "console" && f != "markdown" && !r.quiet {
		r.a.warnComparison(j.compared)
	}
	bad = append(bad, r.outs.finish(r.a.Stdout, j.render(r.report))...)
	bad = append(bad, r.ledger.finish()...)
	summary, lines := report.StepSummary(r.report), report.ErrorLines(r.report)
	if len(j.compared) > 0 {
		summary, lines = summary+"\n"+j.compared.summary(), append(lines, j.compared.errorLines()...)
	}
	r.a.tellGitHub(summary, lines)
	return bad.InOrder().Err()
}

// announce prints what is loaded, and how, before it is.
func (r *run) announce(ctx context.Context) {
	r.a.warn("%s", bench.TargetLine(ctx, r.cases, r.embedded))
	r.a.warn("%s", bench.PlanLine(r.cases))
	r.a.noteReplaced(r.outs)
}

// plan prints the plan as the result of --dry-run.
func (r *run) plan(ctx context.Context) error {
	var b strings.Builder
	if r.embedded {
		b.WriteString("target: the embedded broker on loopback\n")
	} else {
		fmt.Fprintln(&b, bench.TargetLine(ctx, r.cases, false))
	}
	fmt.Fprintln(&b, bench.PlanLine(r.cases))
	fmt.Fprintf(&b, "needs %s open files of %s\n", result.FormatInt(int64(bench.Descriptors(r.cases, r.embedded))), result.FormatInt(int64(r.report.Environment.NoFile)))
	for i, c := range r.cases {
		width := len(strconv.Itoa(len(r.cases)))
		fmt.Fprintf(&b, "%*d  %s\n%*s  %s\n", width, i+1, text.Plain(c.ID), width, "", text.Plain(bench.CaseLine(c, r.embedded)))
	}
	_, err := io.WriteString(r.a.Stdout, b.String())
	return stdoutError(err)
}

// measure runs the cases.
func (r *run) measure(ctx context.Context, view view) outcome {
	r.report.Run.Started = time.Now().UTC()
	r.report.Run.Status = result.StatusPartial // until it is known to be more
	r.report.Target = result.Target{URL: bench.FirstURL(r.cases), Embedded: r.embedded}
	obs := &observer{report: r.report, outs: r.outs, view: view, done: make([]*result.Case, len(r.cases))}
	conf := load.Config{RunID: r.report.Run.ID, Observer: obs.asked(), Embedded: r.embedded, Enough: r.limit}
	if r.ledger != nil {
		conf.Observer.Ledger = r.ledger.add
	}
	cases, err := load.New(conf).Run(ctx, r.cases)
	if r.live && errors.Is(err, bench.ErrInterrupted) && bench.Unbounded(r.cases[0].Load) {
		err = nil // it ended as it was meant to
	}
	r.report.Cases = cases
	return outcome{planned: r.cases, cases: r.report.Cases, err: err, strict: r.strict}
}
