package cmd

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestParseOutput(t *testing.T) {
	for in, want := range map[string]output{
		"report.json":    {"json", "report.json"},
		"a/b.JSON":       {"json", "a/b.JSON"},
		"r.json.gz":      {"json", "r.json.gz"},
		"r.md":           {"markdown", "r.md"},
		"r.txt":          {"console", "r.txt"},
		"json=x":         {"json", "x"},
		"md=a=b":         {"markdown", "a=b"},
		"table=-":        {"console", "-"},
		"-":              {"", "-"},
		"dir.x/a=b.json": {"json", "dir.x/a=b.json"},
	} {
		if got, err := reportFormats.parseOutput(in); err != nil || got != want {
			t.Errorf("parseOutput(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "json", "report", "r.xyz", "csw=x", "json=", "r.md.gz", "=x"} {
		if got, err := reportFormats.parseOutput(in); err == nil {
			t.Errorf("parseOutput(%q) = %v, want an error", in, got)
		}
	}
}

func TestWithoutUser(t *testing.T) {
	for in, want := range map[string]string{
		"mqtt://u:p@h:1":      "mqtt://h:1",
		"u:p@h":               "h",
		"mqtt://h":            "mqtt://h",
		"mqtt://u:p@ss@h:1/x": "mqtt://h:1/x",
		"mqtt://u:p@":         "mqtt://",
	} {
		if got := withoutUser(in); got != want {
			t.Errorf("withoutUser(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestRunID: the id comes from the seed alone, and neighbours differ.
func TestRunID(t *testing.T) {
	seen := map[string]uint64{}
	for seed := range uint64(10_000) {
		id := runID(seed)
		if len(id) != 8 || strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyz") != "" || id != runID(seed) {
			t.Fatalf("runID(%d) = %q", seed, id)
		}
		if other, ok := seen[id]; ok {
			t.Fatalf("seeds %d and %d have the same run id %s", other, seed, id)
		}
		seen[id] = seed
	}
}

// TestPanic: an internal error is one line, and no goroutine dump.
func TestPanic(t *testing.T) {
	var stderr bytes.Buffer
	code := Main(context.Background(), Process{Args: []string{"run", "quick", "--quiet", "--messages", "20", "--warmup", "0", "--iterations", "2"}, Stdout: panicWriter{}, Stderr: &stderr})
	if s := stderr.String(); code != exitInternal || !strings.HasPrefix(s, "error: internal error: boom at ") ||
		strings.Count(s, "\n") != 2 || strings.Contains(s, "goroutine") {
		t.Errorf("code %d, stderr:\n%s", code, s)
	}
}

type panicWriter struct{}

func (panicWriter) Write([]byte) (int, error) { panic("boom") }

// TestWarn: what a broker or a file says cannot steer the terminal.
func TestWarn(t *testing.T) {
	var b bytes.Buffer
	a := &app{Process: Process{Stderr: &b}}
	a.warn("%s", "a\x1b]0;x\x07b\nc\u202ed\u009be ü→")
	if got := b.String(); got != `a\x1b]0;x\x07b\nc\u202ed\x9be ü→`+"\n" {
		t.Errorf("got %q", got)
	}
}
