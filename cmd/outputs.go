package cmd

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/internal/file"
	"github.com/mqttload/mqttload/report"
	"github.com/mqttload/mqttload/result"
)

// output is one destination of the report; path "" is standard output.
type output struct{ format, path string }

// outputs are all of them; exactly one is standard output.
type outputs []output

// parse reads --output and --format.
func (known formatSet) parse(s settings, bad *bench.Faults) outputs {
	var outs outputs
	stdout := ""
	if f, ok := s["format"]; ok {
		name, err := known.name(f.value())
		if err != nil {
			bad.Usage("", "%s: %v", f.place, err)
		}
		stdout = name
	}
	o := s["output"]
	for _, value := range o.values {
		one, err := known.parseOutput(value)
		switch {
		case err != nil:
			bad.Usage("", "%s %s: %v", o.place, value, err)
		case one.path != "-":
			outs = append(outs, one)
		case stdout != "" && one.format != "" && one.format != stdout:
			bad.Usage("", "%s %s: standard output carries one format, and it is %s already", o.place, value, stdout)
		case one.format != "":
			stdout = one.format
		}
	}
	if stdout == "" {
		stdout = "console"
	}
	outs.check(o.place, bad)
	return append(outs, output{format: stdout})
}

// parseOutput reads FILE, whose ending determines the format, or FORMAT=FILE. The
// text before the first equals sign is a format unless it looks like a path.
func (known formatSet) parseOutput(s string) (output, error) {
	if before, path, ok := strings.Cut(s, "="); ok && !strings.ContainsAny(before, "./") {
		name, err := known.name(before)
		if err == nil && path == "" {
			err = errors.New("the file is missing")
		}
		return output{name, path}, err
	}
	if s == "-" {
		return output{"", s}, nil
	}
	if name, err := known.name(s); err == nil {
		return output{}, fmt.Errorf("that is a format: write %s=FILE, or --format %s for standard output", name, name)
	}
	if name, ok := report.FormatOf(s); ok && slices.Contains(known, name) {
		return output{name, s}, nil
	}
	return output{}, fmt.Errorf("the name does not show the format: end it as in report.json, report.md or report.html, or write FORMAT=FILE with FORMAT one of %s",
		strings.Join(known, ", "))
}

// check verifies, before hours of load, that the files can be written.
func (outs outputs) check(place string, bad *bench.Faults) {
	seen := map[string]bool{}
	for _, o := range outs {
		if seen[filepath.Clean(o.path)] {
			bad.Usage("", "%s %s: given twice", place, o.path)
		}
		seen[filepath.Clean(o.path)] = true
		if err := writable(o.path); err != nil {
			bad.Usage("choose a file in a directory that exists and can be written to", "%s %s: %v", place, o.path, err)
		}
	}
}

// writable reports why path cannot be written. Reports are written to a temporary
// file and renamed, so the directory matters; a device is opened directly.
func writable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return errors.New("is a directory")
	case err == nil && info.Mode()&os.ModeNamedPipe != 0:
		return nil // opening it would wait for its reader
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return file.Cause(err)
		}
		return f.Close()
	case result.StandsForOpenFile(path):
		return result.ErrOpenFile
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return file.Cause(err)
	}
	_ = f.Close()
	return os.Remove(f.Name())
}

// spare refuses outputs that would overwrite a file that the command reads.
func (outs outputs) spare(s settings, read []string, bad *bench.Faults) {
	var told []string
	for _, path := range read {
		if o := outs.writing(path); o != "" && !slices.Contains(told, o) {
			told = append(told, o)
			bad.Usage("write to another file", "%s %s: it would overwrite %s, which is an input", s["output"].place, o, path)
		}
	}
}

// writing returns the output that writes to the file path, or "".
func (outs outputs) writing(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	for _, o := range outs {
		if other, err := os.Stat(o.path); o.path != "" && err == nil && os.SameFile(info, other) {
			return o.path
		}
	}
	return ""
}

// existing lists the files that will be replaced.
func (outs outputs) existing() []string {
	var list []string
	for _, o := range outs {
		if info, err := os.Stat(o.path); o.path != "" && err == nil && info.Mode().IsRegular() {
			list = append(list, o.path)
		}
	}
	return list
}

// noteReplaced names the files that will be replaced.
func (t *terminal) noteReplaced(outs outputs) {
	for _, path := range outs.existing() {
		t.warn("note: %s exists and will be replaced", path)
	}
}

// save writes the files that may be rewritten while the run goes on.
func (outs outputs) save(r *result.Report) {
	for _, o := range outs {
		if info, err := os.Stat(o.path); o.format == "json" && o.path != "" && (err != nil || info.Mode().IsRegular()) {
			_ = result.Write(o.path, r) // the last write, at the end, reports errors
		}
	}
}

// render writes a result in one of the formats of its outputs.
type render func(w io.Writer, format string) error

// finish prints the result and then writes every file, even if another one cannot
// be written. If rendering fails, the reports that were read are to blame.
func (outs outputs) finish(stdout io.Writer, write render, from ...*result.Input) bench.Faults {
	var bad bench.Faults
	for _, toFile := range []bool{false, true} {
		for _, o := range outs {
			if toFile != (o.path != "") {
				continue
			}
			var b bytes.Buffer
			if err := write(&b, o.format); err != nil {
				bad = append(bad, damageFaults(err, bench.Internal, from)...)
				continue
			}
			bad = append(bad, o.put(stdout, b.Bytes())...)
		}
	}
	return bad
}

// put writes content to standard output or to the file.
func (o output) put(stdout io.Writer, content []byte) bench.Faults {
	if o.path == "" {
		_, err := stdout.Write(content)
		return bench.AsFaults(stdoutError(err), bench.Internal)
	}
	if err := o.write(content); err != nil {
		return bench.Faults{bench.Faultf(bench.Internal, "free some space, or choose another file; the result is printed above", "%v", err)}
	}
	return nil
}

// has reports whether any output has the format.
func (outs outputs) has(format string) bool {
	return slices.ContainsFunc(outs, func(o output) bool { return o.format == format })
}

// stdout is the format of standard output.
func (outs outputs) stdout() string {
	i := slices.IndexFunc(outs, func(o output) bool { return o.path == "" })
	return outs[i].format
}

// write writes the file, gzipped where its name says so.
func (o output) write(content []byte) (err error) {
	if strings.HasSuffix(strings.ToLower(o.path), ".gz") {
		content, err = gzipped(content)
	}
	if err == nil {
		err = result.WriteFile(o.path, content)
	}
	if err != nil {
		return &result.FileError{Op: "write", Path: o.path, Err: file.Cause(err)}
	}
	return nil
}

func gzipped(b []byte) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(b)
	if cerr := z.Close(); err == nil {
		err = cerr
	}
	return out.Bytes(), err
}
