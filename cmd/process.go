package cmd

import (
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// Process is everything that a command knows of its process, so that tests can run
// a command inside their own process.
type Process struct {
	Args           []string // without the program's name
	Environ        []string // as os.Environ gives it
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Signals, when set, makes ch receive what asks the process to stop, until
	// the returned function is called.
	Signals func(ch chan<- os.Signal) (stop func())
}

// OS is the Process of the running process. From then on, writing to a closed
// standard output is an error instead of the end of the process, so that report
// files are still written.
func OS() Process {
	signal.Ignore(syscall.SIGPIPE)
	return Process{
		Args: os.Args[1:], Environ: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Signals: func(ch chan<- os.Signal) func() {
			signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
			// A terminal that is closed ends a run like Ctrl-C, unless nohup has
			// asked for the opposite.
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
