// Package cmd is the command line: one file per command. It is the only
// package that knows cobra, viper, standard input and output, the environment,
// signals and exit codes. It measures nothing and formats no results; what it
// adds to the packages below is deciding, before any connection is made,
// whether what was asked makes sense, and saying afterwards how it went.
package cmd

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mqttload/mqttload/internal/bench"
)

// Process is what a command sees of the process it runs in, so that all of it
// can be run inside of another one.
type Process struct {
	Args           []string // without the program's name
	Environ        []string // as os.Environ gives it
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Signals, when set, makes ch receive what asks the process to stop, until
	// the returned function is called.
	Signals func(ch chan<- os.Signal) (stop func())
}

// OS is the Process of this very process. From then on a write to a closed
// standard output is an error, not the end of the process: a report file is
// still to be written.
func OS() Process {
	signal.Ignore(syscall.SIGPIPE)
	return Process{
		Args: os.Args[1:], Environ: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Signals: func(ch chan<- os.Signal) func() {
			signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
			// A terminal that goes away ends a run as Ctrl-C does, unless nohup
			// has asked for the opposite.
			if !signal.Ignored(syscall.SIGHUP) {
				signal.Notify(ch, syscall.SIGHUP)
			}
			return func() { signal.Stop(ch) }
		},
	}
}

// app is one run of the program.
type app struct {
	Process
	quit     chan struct{} // closed when everything is to be dropped at once
	quitOnce sync.Once
	mu       sync.Mutex // guards Stderr
}

// Main runs the command that p's arguments ask for and returns the exit code.
func Main(ctx context.Context, p Process) int {
	a := &app{Process: p, quit: make(chan struct{})}
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
		// A goroutine dump says nothing to users, and may hold their password.
		if r := recover(); r != nil {
			code = a.report(bench.Faultf(bench.Internal, "this is a fault of mqttload: please report it",
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

// panicSite is the line of this module that panicked.
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

// interruptible returns a context that the first signal to stop cancels, with
// errInterrupted as its cause, after telling first; the second signal ends the
// program at once.
func (a *app) interruptible(ctx context.Context, first func()) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ch := make(chan os.Signal, 2)
	unhook := func() {}
	if a.Signals != nil {
		unhook = a.Signals(ch)
	}
	ended := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-ended:
				return
			case <-ch:
			}
			if n > 0 {
				a.quitOnce.Do(func() { close(a.quit) })
				return
			}
			first()
			cancel(errInterrupted)
		}
	}()
	return ctx, sync.OnceFunc(func() {
		unhook()
		close(ended)
		cancel(context.Canceled)
	})
}

// isTerminal reports whether w is one that understands "back to the start of the line".
func (a *app) isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && a.getenv("TERM") != "dumb"
}

func (a *app) getenv(name string) string {
	value, _ := a.lookupEnv(name)
	return value
}

func (a *app) lookupEnv(name string) (string, bool) {
	for _, kv := range slices.Backward(a.Environ) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}
