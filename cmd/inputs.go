package cmd

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/result"
)

// splitFiles splits lists of files at commas, unless a file has that very name.
func splitFiles(args ...string) (paths []string) {
	for _, arg := range args {
		if _, err := os.Stat(arg); err == nil {
			paths = append(paths, arg)
			continue
		}
		paths = append(paths, strings.Split(arg, ",")...)
	}
	return paths
}

// readInputs reads the files of one side, and reports each that cannot be read.
func readInputs(paths []string, bad *bench.Faults) []*result.Input {
	var list []*result.Input
	for _, path := range paths {
		err := endless(path)
		var in *result.Input
		if err == nil {
			in, err = result.ReadAny(path)
		}
		if err != nil {
			*bad = append(*bad, readFault(err))
			continue
		}
		list = append(list, in)
	}
	return list
}

var errNamedPipe = errors.New("is a named pipe (FIFO), which may never be written to")

// endless refuses a named pipe, because reading it would wait for a writer. One
// that the shell has opened is fine: a command writes to it.
func endless(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 || result.StandsForOpenFile(path) {
		return nil
	}
	return &result.FileError{Op: "read", Path: path, Err: errNamedPipe}
}

// readFault classifies an error of reading. A report without cases can be read
// but not compared.
func readFault(err error) bench.Fault {
	switch {
	case errors.Is(err, result.ErrNoCells):
		return bench.Faultf(bench.Unlike, "", "%v", err)
	case errors.Is(err, errNamedPipe):
		return bench.Faultf(bench.Usage, "write its content to a file first, or give <(cat FIFO)", "%v", err)
	}
	return bench.Faultf(bench.Usage, "", "%v", err)
}

// damageFaults names the files with a histogram that cannot be decoded. Histograms
// are decoded only when needed, so this explains an err from using the files.
// Without such a file it returns err itself, with class.
func damageFaults(err error, class bench.Class, files []*result.Input) (bad bench.Faults) {
	for _, in := range files {
		if cause := damage(in.Report); cause != nil {
			bad.Usage("see what else is wrong with it: mqttload audit "+in.Source, "%s: %v", in.Source, cause)
		}
	}
	if len(bad) == 0 {
		bad = bench.Faults{bench.Faultf(class, "", "%v", err)}
	}
	return bad
}

// damage is the error of the first histogram of r that cannot be decoded.
func damage(r *result.Report) error {
	if r == nil {
		return nil
	}
	for _, c := range r.Cases {
		for _, leg := range c.Latency.All() {
			if leg.Histogram == nil {
				continue
			}
			if _, err := leg.Histogram.Decode(); err != nil {
				return fmt.Errorf("case %q, latency.%s: %w", c.ID, leg.Name, err)
			}
		}
	}
	return nil
}
