package result

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// fileMode is the mode of a report, which has no secrets and is meant to be shared.
const fileMode = 0o644

// FileError says which report file could not be read or written, and why.
type FileError struct {
	Op   string // "read" or "write"
	Path string
	Err  error
}

// Error names the operation, the file and the cause.
func (e *FileError) Error() string { return fmt.Sprintf("%s report %s: %v", e.Op, e.Path, e.Err) }

// Unwrap returns Err.
func (e *FileError) Unwrap() error { return e.Err }

// fileError names path once: the causes of package os name a path too, which
// may be that of a temporary file.
func fileError(op, path string, err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	}
	return &FileError{Op: op, Path: path, Err: err}
}

// schemaError says that a file is not a report in the format that this build reads.
type schemaError struct {
	Got string // "" if the file names none
}

func (e *schemaError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("not a report: it has no schema, want %q", Schema)
	}
	return fmt.Sprintf("schema %q is not %q, which this build reads: use the mqttload that wrote it", e.Got, Schema)
}

// Encode writes r as indented JSON. Lists that are nil are written as [], and
// an empty Schema as Schema. A NaN or infinite number is an error that names
// the case, and then nothing is written.
func Encode(w io.Writer, r *Report) error {
	b, err := marshal(r)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	_, err = w.Write(b)
	return err
}

func marshal(r *Report) ([]byte, error) {
	out := normalized(r)
	if out.Schema != Schema {
		return nil, &schemaError{Got: out.Schema}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(out); err != nil {
		return nil, blame(out, err)
	}
	return b.Bytes(), nil
}

// blame finds the case that json refuses.
func blame(r *Report, err error) error {
	for _, c := range r.Cases {
		if _, cerr := json.Marshal(c); cerr != nil {
			return fmt.Errorf("case %q: %w", c.ID, cerr)
		}
	}
	return err
}

// normalized returns a copy of r whose lists are not nil.
func normalized(r *Report) *Report {
	out := *r
	if out.Schema == "" {
		out.Schema = Schema
	}
	out.Run.Command = list(r.Run.Command)
	out.Gates = list(r.Gates)
	out.Cases = make([]Case, len(r.Cases))
	for i, c := range r.Cases {
		c.Params, c.Iterations, c.Errors = list(c.Params), list(c.Iterations), list(c.Errors)
		c.Warnings, c.Timeline = list(c.Warnings), list(c.Timeline)
		out.Cases[i] = c
	}
	return &out
}

func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// unpacked returns the content of r, gunzipped if it starts as a gzip file does.
func unpacked(r io.Reader) (io.Reader, error) {
	br := bufio.NewReader(r)
	if magic, err := br.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		return gzip.NewReader(br)
	}
	return br, nil
}

// parseReport reads one report in JSON, with a byte order mark or without.
func parseReport(b []byte) (*Report, error) {
	b = plainText(b)
	if err := checkElements(b); err != nil {
		return nil, err
	}
	// Check the schema first: it says more about a file of another kind than the
	// first field that does not fit.
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, jsonFault(b, err)
	}
	if head.Schema != Schema {
		return nil, &schemaError{Got: head.Schema}
	}
	// The scenario stays as it is written: a map would lose the order of its axes.
	var scenario json.RawMessage
	out := Report{Scenario: &scenario}
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, jsonFault(b, err)
	}
	if out.Scenario = nil; len(scenario) > 0 {
		var compact bytes.Buffer
		if err := json.Compact(&compact, scenario); err != nil {
			return nil, jsonFault(b, err)
		}
		out.Scenario = json.RawMessage(compact.Bytes())
	}
	out.completeEarlier()
	return &out, unique(out.Cases)
}

func unique(cases []Case) error {
	seen := make(map[string]bool, len(cases))
	for _, c := range cases {
		if seen[c.ID] {
			return fmt.Errorf("duplicate case %q", c.ID)
		}
		seen[c.ID] = true
	}
	return nil
}

// Read reads the report file path, plain or gzipped. It rejects another schema, more
// than maxFileSize bytes or maxElements elements, anything after the report, and a case
// id that occurs twice. It ignores unknown keys: a schema may gain fields. The error is
// a *FileError.
func Read(path string) (*Report, error) {
	b, err := readFile(path, maxFileSize)
	if err != nil {
		return nil, fileError("read", path, err)
	}
	r, err := parseReport(b)
	if err != nil {
		return nil, fileError("read", path, err)
	}
	return r, nil
}

// Write writes r to path, gzipped if path ends in .gz: to a temporary file in
// the same directory, synced and renamed, mode 0644, so that a reader sees the old
// report or the new one and a failure keeps the old one. A symbolic link to a
// file is replaced, not followed. A device or pipe, such as /dev/stdout, is
// written to. Errors are a *FileError.
func Write(path string, r *Report) error {
	b, err := marshal(r)
	if err == nil && strings.HasSuffix(path, ".gz") {
		b, err = compress(b)
	}
	if err == nil {
		err = WriteFile(path, b)
	}
	if err != nil {
		return fileError("write", path, err)
	}
	return nil
}

func compress(b []byte) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		return nil, err
	}
	err := z.Close()
	return out.Bytes(), err
}

// ErrOpenFile says that a path stands for a file that a process has open, as
// /dev/stdout does. Replacing it would remove the device for every
// process.
var ErrOpenFile = errors.New("is an open file of a process: use - for standard output")

// WriteFile puts b at path as Write does; the error is that of the system
// call. An existing file keeps its permissions, a new one gets 0644 less the
// umask; a symbolic link is replaced, not followed.
func WriteFile(path string, b []byte) error {
	info, err := os.Stat(path)
	mode := fs.FileMode(fileMode)
	switch {
	case err == nil && info.IsDir():
		return errors.New("is a directory")
	case err == nil && !info.Mode().IsRegular():
		return writeThrough(path, b)
	case StandsForOpenFile(path):
		return ErrOpenFile
	case err == nil:
		mode = info.Mode().Perm()
	}
	tmp, err := createTemp(path, mode)
	if err != nil {
		return err
	}
	if info != nil {
		// The umask does not apply to a file that already exists.
		err = tmp.Chmod(mode)
	}
	if err := errors.Join(err, fill(tmp, b)); err != nil {
		os.Remove(tmp.Name())
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		os.Remove(tmp.Name())
		return err
	}
	syncDir(filepath.Dir(path))
	return nil
}

// StandsForOpenFile reports whether path is a name below /dev or /proc, or a
// link to one, such as /dev/stdout while that is redirected to a file.
func StandsForOpenFile(path string) bool {
	names := []string{path}
	if to, err := os.Readlink(path); err == nil {
		names = append(names, to)
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		names = append(names, dir+"/")
	}
	for _, n := range names {
		if strings.HasPrefix(n, "/proc/") || strings.HasPrefix(n, "/dev/fd/") || strings.HasPrefix(n, "/dev/std") {
			return true
		}
	}
	return false
}

// createTemp makes a new file in the directory of path; unlike os.CreateTemp's its mode is
// subject to the umask.
func createTemp(path string, mode fs.FileMode) (*os.File, error) {
	for try := 0; ; try++ {
		name := fmt.Sprintf(".%s.%d.%d.tmp", filepath.Base(path), os.Getpid(), try)
		f, err := os.OpenFile(filepath.Join(filepath.Dir(path), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) || try == 1000 {
			return f, err
		}
	}
}

// fill writes b to f, makes it durable and closes it in every case.
func fill(f *os.File, b []byte) error {
	_, err := f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func writeThrough(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// syncDir makes a rename durable if the system can do that. If it cannot, the file is still
// complete, so there is nothing to report.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
}
