package cmd

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/internal/bench"
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
	a := newApp(Process{Stderr: &b})
	a.warn("%s", "a\x1b]0;x\x07b\nc\u202ed\u009be ü→")
	if got := b.String(); got != `a\x1b]0;x\x07b\nc\u202ed\x9be ü→`+"\n" {
		t.Errorf("got %q", got)
	}
}

// TestExitCodes: every class of faults has an exit code of its own that the help
// explains, and what takes precedence is as it says.
func TestExitCodes(t *testing.T) {
	seen := map[int]bool{}
	var all bench.Faults
	for class := bench.Internal; class <= bench.Interrupted; class++ {
		code, ok := exitCodes[class]
		if !ok || code == exitOK || seen[code] || !strings.Contains(exitCodesHelp, fmt.Sprintf("\n  %d ", code)) {
			t.Errorf("class %d has exit code %d", class, code)
		}
		seen[code] = true
		all.Add(class, "", "x")
	}
	var order []string
	for _, f := range all.InOrder() {
		if code := exitCodes[f.Class]; code != exitUsage && code != exitInternal {
			order = append(order, strconv.Itoa(code))
		}
	}
	if text := strings.Join(order, ", ") + "."; !strings.Contains(exitCodesHelp, text) {
		t.Errorf("the help does not say %q", text)
	}
}
