package cmd

import (
	"bufio"
	"os"
	"strings"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/internal/file"
	"github.com/mqttload/mqttload/report"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// ledgerFile writes the accounts of streams as launches end, so that a million of
// them need no memory. The file gets its name when it is complete; a device or a
// pipe is written directly.
type ledgerFile struct {
	path string
	temp string   // the file that is written and then renamed to path; "" for a device
	file *os.File // nil until there is a row
	out  *bufio.Writer
	err  error // the first error: nothing is written after it
}

// ledgerOf reads --ledger; nil if it is not given.
func ledgerOf(s settings, read []string, outs outputs, bad *bench.Faults) *ledgerFile {
	one, ok := s["ledger"]
	if !ok {
		return nil
	}
	path := one.value()
	if path == "-" {
		bad.Usage("name a file", "%s -: standard output carries the table", one.place)
	}
	own := outputs{{format: "csv", path: path}}
	own.check(one.place, bad)
	for _, name := range read {
		if own.writing(name) != "" {
			bad.Usage("write to another file", "%s %s: it would overwrite %s, which is an input", one.place, path, name)
		}
	}
	for _, o := range outs {
		if o.path == path {
			bad.Usage("write to another file", "%s %s: the report goes there", one.place, path)
		}
	}
	return &ledgerFile{path: path}
}

// add writes the rows of one launch.
func (l *ledgerFile) add(c *scenarios.Case, rows []result.StreamAccount) {
	if l.file == nil && l.err == nil {
		l.create()
	}
	if l.err == nil {
		l.err = report.Streams(l.out, c.ID, rows)
	}
}

func (l *ledgerFile) create() {
	if info, err := os.Stat(l.path); err == nil && !info.Mode().IsRegular() {
		l.file, l.err = os.OpenFile(l.path, os.O_WRONLY, 0)
	} else {
		l.temp = l.path + ".tmp"
		l.file, l.err = os.Create(l.temp)
	}
	if l.err == nil {
		l.out = bufio.NewWriter(l.file)
		_, l.err = l.out.WriteString(strings.Join(report.StreamColumns, ",") + "\n")
	}
}

// finish gives the file its name.
func (l *ledgerFile) finish() bench.Faults {
	if l == nil {
		return nil
	}
	if l.file == nil && l.err == nil {
		l.create() // no stream had a message: the file has only the header
	}
	if l.err == nil {
		l.err = l.out.Flush()
	}
	if l.file != nil {
		if err := l.file.Close(); l.err == nil {
			l.err = err
		}
	}
	if l.err == nil && l.temp != "" {
		l.err = os.Rename(l.temp, l.path)
	}
	if l.err == nil {
		return nil
	}
	if l.temp != "" {
		_ = os.Remove(l.temp)
	}
	return bench.Faults{bench.Faultf(bench.Internal, "free some space, or choose another file", "write ledger %s: %v", l.path, file.Cause(l.err))}
}
