package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/scenarios"
)

// Class is the kind of a fault. The zero Class is that of no fault.
type Class int

// Classes. The command line gives each an exit code.
const (
	Internal    Class = iota + 1 // internal error, or a report that could not be written
	Usage                        // usage or configuration; nothing was sent
	Unreachable                  // target unreachable or refused; nothing was measured
	Incomplete                   // clients lost, messages unsent, or a case failed
	Delivery                     // loss at QoS 1 or 2, or duplicates at QoS 2
	Gate                         // a gate failed
	Regression                   // slower than the base, or delivery worse
	Unlike                       // reports not comparable, or not what their data says
	Interrupted                  // stopped from outside
)

// precedence decides which class counts if several apply. Usage comes first,
// because nothing was done; what a run showed weighs more than a file that could
// not be written.
var precedence = []Class{Usage, Interrupted, Unreachable, Delivery, Incomplete, Unlike, Regression, Gate, Internal}

// Fault is one thing that went wrong: its class, one line of cause, and one of
// remedy, which may be empty.
type Fault struct {
	Class     Class
	Msg, Hint string
}

// ErrInterrupted is the cause of a context that ends because the user stopped the
// run.
var ErrInterrupted = errors.New("interrupted")

// Faultf makes a Fault.
func Faultf(class Class, hint, format string, args ...any) Fault {
	return Fault{Class: class, Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// Error returns the cause.
func (f Fault) Error() string { return f.Msg }

// Faults are all faults found at once; the first one's class counts.
type Faults []Fault

// Error returns a line for each cause.
func (f Faults) Error() string {
	var lines []string
	for _, one := range f {
		lines = append(lines, one.Msg)
	}
	return strings.Join(lines, "\n")
}

// Add adds a fault.
func (f *Faults) Add(class Class, hint, format string, args ...any) {
	*f = append(*f, Faultf(class, hint, format, args...))
}

// Usage adds a fault of the command line or the configuration.
func (f *Faults) Usage(hint, format string, args ...any) { f.Add(Usage, hint, format, args...) }

// InOrder returns f sorted by precedence.
func (f Faults) InOrder() Faults {
	return slices.SortedStableFunc(slices.Values(f), func(a, b Fault) int {
		return slices.Index(precedence, a.Class) - slices.Index(precedence, b.Class)
	})
}

// Err is f as an error, nil when there is none.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// AsFaults lists the faults in err; an error that is not a [Fault] gets class.
func AsFaults(err error, class Class) Faults {
	var one Fault
	var many Faults
	var file scenarios.Errors
	switch {
	case err == nil:
		return nil
	case errors.As(err, &many):
		return many
	case errors.As(err, &one):
		return Faults{one}
	case errors.As(err, &file):
		for _, e := range file {
			many.Add(class, e.Hint, "%v", e)
		}
		return many
	}
	return Faults{{Class: class, Msg: err.Error()}}
}
