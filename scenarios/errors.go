package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is one fault of a scenario or of a setting that overrides it. It never
// holds a password, nor the user information of a URL.
type Error struct {
	File string // the scenario file; empty for a setting
	Line int    // from 1; 0 where no line is to blame
	Path string // "matrix.qos[1]", or where a setting came from: "--qos"
	Msg  string // cause and remedy
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

// Errors are all faults found at once, in the order of the file's lines.
type Errors []Error

// Error returns one line per fault.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// err is e sorted and without repetitions, nil when there is no fault.
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
		return Error{Path: p.flag, Msg: p.flag + ": " + msg}
	}
	return Error{File: p.file, Line: p.line, Path: path, Msg: msg}
}

// refuse is the fault of one value: "--qos 3: qos must be 0, 1 or 2". A secret
// is not repeated, and a value not twice.
func (p place) refuse(f *field, path, text string, err error) Error {
	what, msg := p.flag, err.Error()
	if what == "" {
		what = f.key
	}
	switch {
	case f.secret:
		msg = what + ": " + msg
	case strings.HasPrefix(msg, shown(text)+" "):
		msg = what + " " + msg
	default:
		msg = what + " " + shown(text) + ": " + msg
	}
	if p.flag != "" {
		return Error{Path: p.flag, Msg: msg}
	}
	return Error{File: p.file, Line: p.line, Path: path, Msg: msg}
}

// shown is a value as a message may repeat it: short, and without characters
// that a terminal would obey.
func shown(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "..."
	}
	odd := func(r rune) bool { return !unicode.IsGraphic(r) || r == utf8.RuneError || r == ' ' || r == '"' }
	if s == "" || strings.ContainsFunc(s, odd) {
		return fmt.Sprintf("%q", s)
	}
	return s
}

// nearest returns the candidate that was probably meant, or "".
func nearest(word string, candidates []string) string {
	best, distance := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		if d := editDistance(normal(word), normal(c)); d < distance {
			best, distance = c, d
		}
	}
	return best
}

// normal makes connect-timeout, connectTimeout and connect_timeout the same word.
func normal(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s))
}

// editDistance counts insertions, deletions, substitutions and swaps of
// neighbours. (Optimal string alignment.)
func editDistance(a, b string) int {
	const most = 64
	if len(a) > most || len(b) > most {
		return max(len(a), len(b))
	}
	var rows [3][most + 1]int
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, above, twoAbove := &rows[i%3], &rows[(i+2)%3], &rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], twoAbove[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
