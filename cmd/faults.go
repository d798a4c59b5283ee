package cmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/mqttload/mqttload/scenarios"
)

// Exit codes: see precedence for which one it is where several apply.
const (
	exitOK          = 0
	exitInternal    = 1   // internal error, or a report that could not be written
	exitUsage       = 2   // usage or configuration; nothing was sent
	exitUnreachable = 3   // target unreachable or refused; nothing was measured
	exitIncomplete  = 4   // clients lost, messages unsent, or a case failed
	exitDelivery    = 5   // loss at QoS 1 or 2, or duplicates at QoS 2
	exitGate        = 6   // a gate failed
	exitRegression  = 7   // slower than the base, or delivery worse
	exitUnlike      = 8   // reports not comparable, or not what their data says
	exitInterrupted = 130 // stopped by SIGINT or SIGTERM
)

// precedence is the order of what counts where several apply. Usage comes
// first because then nothing was done; what a run showed weighs more than a file that
// could not be written.
var precedence = []int{exitUsage, exitInterrupted, exitUnreachable, exitIncomplete, exitDelivery, exitUnlike, exitRegression, exitGate, exitInternal}

const exitCodesHelp = `Exit codes:
  0    ok
  1    internal error, or a report that could not be written; calibrate: a
       known answer that came out wrong
  2    usage or configuration; nothing was sent
  3    target unreachable or refused; nothing was measured
  4    run incomplete: clients lost, messages unsent, a case failed, or with
       --strict a rate that was not kept
  5    delivery contract broken: loss at QoS 1 or 2, duplicates at QoS 2
  6    gate failed
  7    regression: slower than the base, or delivery worse
  8    reports not comparable: unlike runs, cases missing, or with --strict
       inconclusive; audit: numbers that do not follow from the data
  130  interrupted
  Where several apply, it is the first of 130, 3, 4, 5, 8, 7, 6.
`

var errInterrupted = errors.New("interrupted")

// fault is one thing that went wrong: its exit code, one line of cause, and
// one of remedy, which may be empty.
type fault struct {
	code      int
	msg, hint string
}

func (f fault) Error() string { return f.msg }

// faults are all faults found at once; the first one's code counts.
type faults []fault

func (f faults) Error() string {
	var lines []string
	for _, one := range f {
		lines = append(lines, one.msg)
	}
	return strings.Join(lines, "\n")
}

// inOrder is f with what takes precedence first.
func (f faults) inOrder() faults {
	return slices.SortedStableFunc(slices.Values(f), func(a, b fault) int {
		return slices.Index(precedence, a.code) - slices.Index(precedence, b.code)
	})
}

// err is f as an error, nil when there is none.
func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// usage adds a fault of the command line or the configuration.
func (f *faults) usage(hint, format string, args ...any) {
	*f = append(*f, fault{exitUsage, fmt.Sprintf(format, args...), hint})
}

func usageError(hint, format string, args ...any) fault {
	return fault{exitUsage, fmt.Sprintf(format, args...), hint}
}

// report prints err to stderr, one line of cause and at most one of remedy per
// fault, and returns its exit code. An error that is no fault is an internal one.
func (a *app) report(err error) int {
	list := asFaults(err, exitInternal)
	seen := map[fault]bool{}
	for _, f := range list {
		if f.msg == "" || seen[f] {
			continue
		}
		seen[f] = true
		a.warn("error: %s", f.msg)
		if f.hint != "" {
			a.warn("hint: %s", f.hint)
		}
	}
	if len(list) == 0 {
		return exitOK
	}
	return list[0].code
}

// asFaults takes an error apart; what is not a fault gets code.
func asFaults(err error, code int) faults {
	var one fault
	var many faults
	var file scenarios.Errors
	switch {
	case err == nil:
		return nil
	case errors.As(err, &many):
		return many
	case errors.As(err, &one):
		return faults{one}
	case errors.As(err, &file):
		for _, e := range file {
			many = append(many, fault{code, e.Error(), ""})
		}
		return many
	}
	return faults{{code, err.Error(), ""}}
}

// warn prints one line to stderr. Control characters that came with an input
// or from a broker do not reach the terminal. There is nobody left to tell
// when stderr is closed.
func (a *app) warn(format string, args ...any) {
	a.print(clean(fmt.Sprintf(format, args...)) + "\n")
}

// print writes to stderr, one goroutine at a time.
func (a *app) print(s string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = io.WriteString(a.Stderr, s)
}

// clean replaces what would move the cursor or turn the writing direction.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r < 0x20, r >= 0x7f && r < 0xa0, r == 0x061c,
			r >= 0x200e && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return '?'
		}
		return r
	}, s)
}

// stdoutError is the fault of a result that could not be printed. A reader
// that went away, as head does, has seen what it wanted: that needs no words.
func stdoutError(err error) error {
	var path *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPIPE):
		return fault{code: exitInternal}
	case errors.As(err, &path):
		err = path.Err
	}
	return fault{exitInternal, fmt.Sprintf("write standard output: %v", err), "redirect it to where there is room"}
}
