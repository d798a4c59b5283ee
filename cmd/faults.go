package cmd

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/mqttload/mqttload/internal/bench"
)

// Exit codes: see [bench.Faults.InOrder] for which one it is where several apply.
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

// exitCodes are those of the classes of faults.
var exitCodes = map[bench.Class]int{
	bench.Internal: exitInternal, bench.Usage: exitUsage, bench.Unreachable: exitUnreachable,
	bench.Incomplete: exitIncomplete, bench.Delivery: exitDelivery, bench.Gate: exitGate,
	bench.Regression: exitRegression, bench.Unlike: exitUnlike, bench.Interrupted: exitInterrupted,
}

const exitCodesHelp = `Exit codes:
  0    ok
  1    internal error, or a report could not be written; calibrate: a known
       result came out wrong
  2    usage or configuration error; nothing was sent
  3    target unreachable or refused; nothing was measured
  4    run incomplete: clients lost, messages unsent, a case failed; with
       --strict, also a rate that was not kept
  5    delivery contract broken: loss at QoS 1 or 2, duplicates at QoS 2
  6    gate failed
  7    regression: slower than the base, or worse delivery
  8    reports not comparable: unlike runs or missing cases; with --strict, also
       inconclusive cases; audit: numbers that do not follow from the data
  130  interrupted
  If several apply, this order decides: 130, 3, 5, 4, 8, 7, 6.
`

// report prints err to stderr, one line of cause and at most one of remedy per
// fault, and returns its exit code. Any other error is an internal one.
func (t *terminal) report(err error) int {
	list := bench.AsFaults(err, bench.Internal)
	seen := map[bench.Fault]bool{}
	for _, f := range list {
		if f.Msg == "" || seen[f] {
			continue
		}
		seen[f] = true
		t.warn("error: %s", f.Msg)
		if f.Hint != "" {
			t.warn("hint: %s", f.Hint)
		}
	}
	if len(list) == 0 {
		return exitOK
	}
	return exitCodes[list[0].Class]
}

// stdoutError is the fault of a result that could not be printed. It has no
// message if the reader closed the pipe, as head does.
func stdoutError(err error) error {
	var path *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPIPE):
		return bench.Fault{Class: bench.Internal}
	case errors.As(err, &path):
		err = path.Err
	}
	return bench.Faultf(bench.Internal, "redirect it to a place with free space", "write standard output: %v", err)
}
