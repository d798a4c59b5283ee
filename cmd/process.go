package cmd

import (
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
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

// getenv returns the value of a variable, "" where it is not set.
func (p Process) getenv(name string) string {
	value, _ := p.lookupEnv(name)
	return value
}

// lookupEnv returns the value of a variable, and whether it is set.
func (p Process) lookupEnv(name string) (string, bool) {
	for _, kv := range slices.Backward(p.Environ) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}
