// Package cmd is the command line, with one file per command. It is the only
// package that knows cobra, viper, standard streams, the environment, signals and
// exit codes.
//
// A command turns flags, variables and the configuration file into [settings],
// lets these override a scenario, and hands the result to package bench, which
// runs it, or to packages result and report. Here everything is checked before
// the first connection, and all faults are printed at once. The package measures
// nothing and formats no results.
//
// The files stand on floors: main.go is on top, then the commands, then what they
// share, down to app.go, terminal.go and process.go. No file calls one above it.
package cmd

import (
	"context"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mqttload/mqttload/internal/bench"
)

// Main runs the command that p's arguments ask for and returns the exit code.
func Main(ctx context.Context, p Process) int {
	a := newApp(p)
	done := make(chan int, 1)
	go func() { done <- a.run(ctx) }()
	select {
	case code := <-done:
		return code
	case <-a.quit:
		return exitInterrupted
	}
}

func (a *app) run(ctx context.Context) (code int) {
	defer func() {
		// A goroutine dump does not help users, and may hold their password.
		if r := recover(); r != nil {
			code = a.report(bench.Faultf(bench.Internal, "this is a bug in mqttload: please report it",
				"internal error: %v at %s", r, panicSite(string(debug.Stack()))))
		}
	}()
	root := a.root()
	root.SetArgs(slices.Concat([]string{}, a.Args)) // nil would mean os.Args
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	return a.report(root.ExecuteContext(ctx))
}

// panicSite is the source line that panicked.
func panicSite(stack string) string {
	_, after, _ := strings.Cut(stack, "panic(")
	for line := range strings.Lines(after) {
		if i := strings.Index(line, ".go:"); i > 0 && !strings.Contains(line, "/runtime/") {
			return strings.TrimSpace(line[strings.LastIndex(line[:i], "/")+1:])
		}
	}
	return "an unknown place"
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "mqttload",
		Short: "Load-testing for MQTT brokers",
		Long: "Mqttload measures how fast and how reliably an MQTT broker delivers messages,\n" +
			"over a matrix of QoS, payload, protocol and transport.",
		Example: "  mqttload run --url mqtt://broker:1883 --qos 0,1,2 --payload 10,1KiB",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return c.Help()
		},
		SilenceErrors: true, SilenceUsage: true,
	}
	// -h is the host, as everywhere in MQTT.
	root.PersistentFlags().Bool("help", false, "show this help")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(a.help)
	root.SetUsageFunc(func(c *cobra.Command) error { a.help(c, nil); return nil })
	root.AddCommand(a.runCommand(), a.checkCommand(), a.connCommand(), a.pubCommand(), a.subCommand(), a.compareCommand(), a.reportCommand(), a.auditCommand(), a.brokerCommand(), a.scenariosCommand(), a.versionCommand(),
		a.calibrateCommand(), a.calibratePeerCommand())
	shellCompletion(root)
	root.SetHelpCommand(helpCommand(root))
	return root
}
