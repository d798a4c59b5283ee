package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
)

// Error is one fault of a scenario or of a setting that overrides it. It holds
// neither a password nor the user information of a URL.
type Error struct {
	File string // the scenario file; empty for a setting
	Line int    // from 1; 0 where the fault has no line
	Path string // "matrix.qos[1]", or where a setting came from: "--qos"
	Msg  string // cause, and remedy unless Hint has it
	Hint string // remedy
}

// Error returns "file.yaml:12: cause", or the message alone for a setting.
func (e Error) Error() string {
	switch {
	case e.File == "":
		return e.Msg
	case e.Line == 0:
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Errors are all faults of a scenario, in the order of the file's lines.
type Errors []Error

// Error returns one line per fault.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// err is e sorted and without repetitions, nil where there is no fault.
func (e Errors) err() error {
	if len(e) == 0 {
		return nil
	}
	slices.SortStableFunc(e, func(a, b Error) int { return a.Line - b.Line })
	var once Errors
	for _, one := range e {
		if !slices.Contains(once, one) {
			once = append(once, one)
		}
	}
	return once
}

// place is where a key got its value.
type place struct {
	file string
	line int
	flag string // "--qos", "MQTTLOAD_QOS", "mqttload.yaml:3: qos"
}

func (p place) fault(path, msg string) Error {
	if p.flag != "" {
		msg = p.flag + ": " + msg
	}
	return p.error(path, msg)
}

// error is a fault whose msg names the flag, if it was one.
func (p place) error(path, msg string) Error {
	if p.flag != "" {
		path = p.flag
	}
	return Error{File: p.file, Line: p.line, Path: path, Msg: msg}
}

// refuse is the fault of one value: "--qos 3: qos must be 0, 1 or 2". A secret
// is not repeated, and a value not twice.
func (p place) refuse(f *field, path, given string, err error) Error {
	what, msg := p.flag, err.Error()
	if what == "" {
		what = f.key
	}
	switch {
	case f.secret:
		msg = what + ": " + msg
	case strings.HasPrefix(msg, text.Quote(given)+" "):
		msg = what + " " + msg
	default:
		msg = what + " " + text.Quote(given) + ": " + msg
	}
	return p.error(path, msg)
}
