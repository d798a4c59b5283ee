package cmd

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mqttload/mqttload/internal/bench"
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

// measuring describes a command that measures: its flags, and its scenario.
type measuring struct {
	groups []flagGroup
	// open returns the scenario that the settings override; it may change them.
	open func(args []string, s settings, bad *bench.Faults) *scenarios.Scenario
	// live is set for a command that prints a line per second and runs until it
	// is stopped.
	live bool
}

// run is one prepared run: everything that can be checked before the first
// connection has been checked.
type run struct {
	a      *app
	cfg    bench.Config
	outs   outputs
	view   newView
	ledger *ledgerFile // nil unless it is asked for
	quiet  bool
	dryRun bool
}

// prepare reads and checks everything, and returns all faults at once.
func (a *app) prepare(c *cobra.Command, args []string, m measuring) (*run, error) {
	s, bad := a.gather(c, m.groups)
	sc := m.open(args, s, &bad)
	if sc != nil {
		a.override(sc, s, &bad)
	}
	r := &run{a: a, quiet: s["quiet"].on(), dryRun: s["dry-run"].on()}
	r.cfg = bench.Config{Calibration: calibrationPath(), Strict: s["strict"].on(), Live: m.live, Enough: readCount(s, &bad)}
	r.cfg.Warn = func(line string) { a.warn("warning: %s", line) }
	r.outs = reportFormats.parse(s, &bad)
	r.view = a.viewOf(s, m.live, &bad)
	seed := readSeed(s, &bad)
	if sc == nil {
		return nil, bad
	}
	var err error
	sc.Seed = seed
	if r.cfg.Cases, err = sc.Cases(); err != nil {
		return nil, append(bad, bench.AsFaults(err, bench.Usage)...)
	}
	a.warnScenario(sc)
	bad = append(bad, bench.CheckEnds(r.cfg.Cases)...)
	read := append(filesRead(args, s), sc.Files()...)
	r.outs.spare(s, read, &bad)
	r.ledger = ledgerOf(s, read, r.outs, &bad)
	r.cfg.Judge = readJudge(s, sc, r.cfg.Cases, r.outs, &bad)
	bad = append(bad, bench.AsFaults(sc.CheckTLS(), bench.Usage)...)
	warnings, cannot := r.cfg.Check(s["force"].on())
	for _, w := range warnings {
		r.cfg.Warn(w)
	}
	bad = append(bad, cannot...)
	r.cfg.Report = bench.NewReport(sc, tool(), commandLine(c, args, m.groups))
	if len(bad) == 0 {
		bad = r.cfg.Judge.Check(r.cfg.Report, r.cfg.Cases)
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
		bad.Usage("give the broker with --url", "%s is not a scenario", printable(name))
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
		a.warn("warning: --password is visible to everyone on this machine, in ps: use --password-file or --password-env")
	}
	for _, one := range s.in(runFlags) {
		if !one.tool {
			*bad = append(*bad, bench.AsFaults(sc.SetFrom(one.place, one.name, one.values...), bench.Usage)...)
		}
	}
}

// fileFlags are the flags of run that name files to read, except those of the
// scenario, which lists its own files, and the baseline, which readJudge checks.
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

func (t *terminal) warnScenario(sc *scenarios.Scenario) {
	for _, w := range sc.Warnings() {
		t.warn("warning: %s: %s", w.Message, w.Hint)
	}
}

// readSeed returns the value of --seed, or a random seed.
func readSeed(s settings, bad *bench.Faults) uint64 {
	one, ok := s["seed"]
	if !ok {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never returns an error
		return binary.LittleEndian.Uint64(b[:])
	}
	n, err := strconv.ParseUint(one.value(), 10, 64)
	if err != nil {
		bad.Usage("", "%s %s: a seed is a whole number from 0 to 18446744073709551615", one.place, one.value())
	}
	return n
}

// readCount is the number of messages after which sub ends, 0 for none.
func readCount(s settings, bad *bench.Faults) int64 {
	one, ok := s["count"]
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(one.value(), 10, 64)
	if err != nil || n < 1 {
		bad.Usage("", "%s %s: must be a whole number of messages from 1", one.place, printable(one.value()))
	}
	return n
}

// run announces the plan, runs it, and prints the results.
func (r *run) run(ctx context.Context) error {
	if r.dryRun {
		_, err := io.WriteString(r.a.Stdout, r.cfg.Plan(ctx))
		return stdoutError(err)
	}
	view := r.view(r.a.terminal, len(r.cfg.Cases))
	ctx, stop := r.a.interruptible(ctx, func() {
		view.note("interrupted: finishing the running work; interrupt again to quit at once")
	})
	defer stop()
	r.watch(view)
	b, err := bench.Open(r.cfg)
	if err != nil {
		view.stop()
		return err
	}
	defer b.Close()
	if !r.quiet {
		for _, line := range b.Lines(ctx) {
			r.a.warn("%s", line)
		}
		r.a.noteReplaced(r.outs)
	}
	out := b.Run(ctx)
	view.stop()
	return r.finish(out)
}

// watch connects the run to its view and its files.
func (r *run) watch(v view) {
	o := load.Observer{Iteration: v.iteration, Tick: v.tick}
	o.Phase = func(_ context.Context, p load.Phase, l load.Launch) error {
		switch p {
		case load.Connecting:
			v.launch(l)
		case load.Publishing:
			v.ready(l)
		}
		return nil
	}
	o.LaunchDone = func(index int, c *result.Case) {
		r.outs.save(r.cfg.Report)
		v.done(index, c)
	}
	if r.ledger != nil {
		o.Ledger = r.ledger.add
	}
	r.cfg.Observer = o
}

// finish prints the results and the verdict, and writes the files.
func (r *run) finish(out bench.Outcome) error {
	if out.NoCeilings != nil && !r.quiet {
		r.a.warn("note: no ceilings are shown: %v; run mqttload calibrate again", out.NoCeilings)
	}
	compared := comparedWith(r.cfg.Judge.Baseline, out.Judged)
	if f := r.outs.stdout(); len(compared) > 0 && f != "console" && f != "markdown" && !r.quiet {
		r.a.warnComparison(compared)
	}
	bad := slices.Concat(out.Faults, r.outs.finish(r.a.Stdout, rendered(r.cfg.Report, compared)), r.ledger.finish())
	summary, lines := report.StepSummary(r.cfg.Report), report.ErrorLines(r.cfg.Report)
	if len(compared) > 0 {
		summary, lines = summary+"\n"+compared.summary(), append(lines, compared.errorLines()...)
	}
	r.a.tellGitHub(summary, lines)
	return bad.InOrder().Err()
}
