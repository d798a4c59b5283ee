package result

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func sampleReport() *Report {
	c := stalledCase()
	c.Params = []Param{{"qos", "1"}, {"payload", "8192"}}
	c.Kind, c.QoS = KindMessages, new(byte(1))
	c.Summary = Summarize(c.Iterations, 2)
	h := NewHDR()
	Record(h, 12_345, 100)
	c.Latency.EndToEnd = NewHistogram(h)
	finished := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &Report{
		Schema: Schema, Tool: Tool{Version: "0.1.0"},
		Run:      Run{ID: "r1", Started: finished.Add(-time.Minute), Finished: &finished, Status: StatusComplete, Command: []string{"mqttload"}},
		Scenario: json.RawMessage(`{"name":"<default>","matrix":{"qos":["1"],"payload":["10"]}}`), // in this order
		Cases:    []Case{c},
		Gates:    []GateResult{{Rule: "lost == 0", Case: c.ID, Value: new(float64), Passed: true}},
	}
}

func TestWriteReadRoundTrip(t *testing.T) {
	for _, name := range []string{"report.json", "report.json.gz"} {
		path := filepath.Join(t.TempDir(), name)
		want := normalized(sampleReport())
		if err := Write(path, want); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: what was read differs from what was written", name)
		}
		onlyFile(t, path)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode != fileMode {
			t.Errorf("%s: mode %o, want %o", name, mode, fileMode)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if zipped := bytes.HasPrefix(raw, []byte{0x1f, 0x8b}); zipped != strings.HasSuffix(name, ".gz") {
			t.Errorf("%s: gzipped = %t", name, zipped)
		}
	}
}

// onlyFile fails where anything but path is in its directory.
func onlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(path) {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

func TestEncodeNullsAndLists(t *testing.T) {
	var b bytes.Buffer
	if err := Encode(&b, &Report{Cases: []Case{{ID: "a=1"}}}); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got["schema"] != Schema {
		t.Errorf("schema = %v", got["schema"])
	}
	if l, ok := got["gates"].([]any); !ok || len(l) != 0 {
		t.Errorf("gates = %v, want []", got["gates"])
	}
	c := got["cases"].([]any)[0].(map[string]any)
	for _, key := range []string{"params", "iterations", "errors", "warnings", "timeline"} {
		if l, ok := c[key].([]any); !ok || len(l) != 0 {
			t.Errorf("%s = %v, want []", key, c[key])
		}
	}
	for key, v := range c["summary"].(map[string]any) {
		if key != "n" && v != nil {
			t.Errorf("summary of nothing has %s = %v, want null", key, v)
		}
	}
	if c["bottleneck"] != nil || c["latency"].(map[string]any)["end_to_end"] != nil {
		t.Error("what does not exist is not null")
	}
}

func TestEncodeRefusesNaN(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		r := sampleReport()
		r.Cases[0].Summary.MeanNS = &bad
		var b bytes.Buffer
		err := Encode(&b, r)
		if err == nil || !strings.Contains(err.Error(), `case "qos=1/payload=8192"`) || b.Len() != 0 {
			t.Errorf("encoding %g: error %v, %d bytes written", bad, err, b.Len())
		}
	}
}

func TestWriteKeepsTheOldFileOnFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	if err := Write(path, sampleReport()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := sampleReport()
	nan := math.NaN()
	bad.Cases[0].Summary.MeanNS = &nan
	err = Write(path, bad)
	var fe *FileError
	if !errors.As(err, &fe) || fe.Path != path || fe.Op != "write" {
		t.Errorf("error %v, want a *FileError for %s", err, path)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) {
		t.Error("a failed write changed the file")
	}
	onlyFile(t, path)
}

func TestWriteErrorsNameThePathOnce(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "no", "such", "r.json")
	err := Write(missing, sampleReport())
	if want := "write report " + missing + ": " + syscall.ENOENT.Error(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
	if err := Write(dir, sampleReport()); err == nil || err.Error() != "write report "+dir+": is a directory" {
		t.Errorf("writing to a directory: %v", err)
	}
	if _, err := Read(missing); err == nil || err.Error() != "read report "+missing+": "+syscall.ENOENT.Error() {
		t.Errorf("reading a missing file: %v", err)
	}
}

// TestWriteFullDevice writes to the device that is always full; a temporary
// name next to it must not appear, and the device must stay what it is.
func TestWriteFullDevice(t *testing.T) {
	const full = "/dev/full"
	before, err := os.Stat(full)
	if err != nil {
		t.Skipf("this system has no %s", full)
	}
	err = Write(full, sampleReport())
	if err == nil || err.Error() != "write report /dev/full: no space left on device" || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want no space left on device", err)
	}
	if after, err := os.Stat(full); err != nil || after.Mode() != before.Mode() {
		t.Error("the device was replaced")
	}
}

func TestWriteReplacesALink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link.json")
	if err := os.WriteFile(target, []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := Write(link, sampleReport()); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(target); err != nil || string(b) != "keep" {
		t.Errorf("the link was followed: %q, %v", b, err)
	}
	if _, err := Read(link); err != nil {
		t.Error(err)
	}
}

func TestDecodeSchemas(t *testing.T) {
	for text, want := range map[string]string{
		`{"schema":"mqttload.report/2","cases":3}`: `schema "mqttload.report/2" is not "mqttload.report/1", which this build reads: use the mqttload that wrote it`,
		`{"a":1}`:                           `not a report: it has no schema, want "mqttload.report/1"`,
		`[]`:                                `not a report: JSON of another tool: array`,
		``:                                  `not a report: it is empty`,
		`{"schema":"mqttload.report/1"} {}`: `not a report: more than one JSON value`,
		`{"schema":"mqttload.report/1","cases":{}}`:                              `not a report: cases`,
		`{"schema":"mqttload.report/1","cases":[{"id":"a=1"},{"id":"a=1"}]}`:     `duplicate case "a=1"`,
		`{"schema":"mqttload.report/1","cases":[{"summary":{"mean_ns":"NaN"}}]}`: `not a report: cases`,
		"\x1f\x8b":     `not a report: the gzip file is truncated`,
		"\x1f\x8b0000": `not a report: the gzip file is truncated`,
	} {
		_, err := decode(strings.NewReader(text), maxFileSize)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
	_, err := decode(strings.NewReader(`{"schema":"other/9"}`), maxFileSize)
	var se *schemaError
	if !errors.As(err, &se) || se.Got != "other/9" {
		t.Errorf("%v is not a *SchemaError of other/9", err)
	}
	if r, err := decode(strings.NewReader(`{"schema":"mqttload.report/1","added_later":1}`), maxFileSize); err != nil || r == nil {
		t.Errorf("an added field is refused: %v", err)
	}
}

func TestDecodeSizeLimit(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(bytes.Repeat([]byte(" "), 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]io.Reader{"gzip": &bomb, "plain": strings.NewReader(strings.Repeat(" ", 1001))} {
		if _, err := decode(r, 1000); err == nil || !errors.Is(err, errTooLarge) {
			t.Errorf("%s: error %v, want the size limit", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	var b bytes.Buffer
	if err := Encode(&b, &Report{Cases: []Case{{ID: "a=1", Params: []Param{{"a", "1"}}}}}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"schema":"mqttload.report/1","cases":[{"latency":{"end_to_end":{"hdr":"HIST"}}}]}`))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := decode(bytes.NewReader(in), 1<<20)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := Encode(&out, r); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := decode(&out, maxFileSize)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if !reflect.DeepEqual(normalized(r), normalized(again)) {
			t.Fatal("a round trip changes the report")
		}
		for _, c := range r.Cases {
			Analyze(c)
		}
	})
}

func TestWriteKeepsPermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v, want 0600", info.Mode(), err)
	}
}

// TestWriteLeavesDevicesAlone: /dev/stdout is a link to an open file, which may
// be a regular one; replacing the link would break it for everybody.
func TestWriteLeavesDevicesAlone(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "redirected"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	link := filepath.Join(dir, "stdout")
	target := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	if _, err := os.Stat(target); err != nil {
		t.Skipf("no %s here: %v", target, err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, target} {
		if err := WriteFile(path, []byte("x")); !errors.Is(err, ErrOpenFile) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if to, err := os.Readlink(link); err != nil || to != target {
		t.Errorf("the link is %q %v", to, err)
	}
}

// decode reads one report of at most limit bytes, plain or gzipped.
func decode(r io.Reader, limit int64) (*Report, error) {
	plain, err := unpacked(r)
	if err != nil {
		return nil, gzipFault(err)
	}
	b, err := readAll(plain, limit)
	if err != nil {
		return nil, gzipFault(err)
	}
	return parseReport(b)
}
