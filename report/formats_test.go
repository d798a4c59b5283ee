package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/mqttload/mqttload/result"
)

// spiteful are values that would leave their place in some format.
var spiteful = []string{
	"=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", " =1", "＝1", "a,b", `say "hi"`, "two\nlines", "\r", "a|b", "</script><script>document.title='x'</script>",
	"<img src=x onerror=document.title=1>", "]]>", "&lt;", "\x1b]0;title\x07", "\u202eabc", "\u2028", "\xff", "a-8", "x y", "::error::x", "a%b", "-5", "日本語",
}

func spitefulReport() *result.Report {
	r := blank()
	for _, v := range spiteful {
		c := newCase(params("qos", "1", "topic", v), 2, 1000, 300_000)
		c.Bottleneck.Kind = v
		c.Errors = []result.Error{{Kind: "publish", Reason: v, Count: 1}}
		c.Warnings = []result.Warning{{Code: "code", Message: v, Hint: v}}
		r.Cases = append(r.Cases, c)
		r.Gates = append(r.Gates, result.GateResult{Rule: v, Case: c.ID})
	}
	r.Run.ID, r.Run.Command = spiteful[11], spiteful
	r.Scenario = map[string]any{"name": spiteful[11]}
	return r
}

func render(t *testing.T, format string, r *result.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, format, r); err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	return b.String()
}

var encoded = regexp.MustCompile(`HISTF[A-Za-z0-9+/=]+`)

func TestFormatGoldens(t *testing.T) {
	for ext, write := range map[string]func(io.Writer, *result.Report) error{
		"csv": writeCSV, "ndjson": writeNDJSON, "xml": writeJUnit, "bench": writeGoBench,
		// Compressed bytes may change with the compressor: TestHDRLogRoundTrip reads them.
		"hlog": func(w io.Writer, r *result.Report) error {
			_, err := io.WriteString(w, encoded.ReplaceAllString(render(t, "hdrlog", r), "HISTF"))
			return err
		},
		"html": func(w io.Writer, r *result.Report) error {
			_, err := io.WriteString(w, bare(render(t, "html", r)))
			return err
		},
	} {
		golden(t, "partial."+ext, partialReport(), write)
		golden(t, "spiteful."+ext, spitefulReport(), write)
		golden(t, "empty."+ext, blank(), write)
	}
}

// TestEveryFormatIsSafeToPrint: whatever the names, no byte of any format moves
// a terminal's cursor or turns its text around.
func TestEveryFormatIsSafeToPrint(t *testing.T) {
	for _, format := range Formats() {
		for name, r := range map[string]*result.Report{"hostile": hostileReport(), "spiteful": spitefulReport()} {
			s := render(t, format, r)
			if !utf8.ValidString(s) {
				t.Errorf("%s of %s: invalid UTF-8", format, name)
			}
			for _, c := range s {
				if c != '\n' && c != '\t' && !unicode.IsPrint(c) {
					t.Errorf("%s of %s: %U got through", format, name, c)
					break
				}
			}
		}
	}
}

func TestFormatNames(t *testing.T) {
	want := []string{"console", "markdown", "csv", "json", "ndjson", "junit", "gobench", "hdrlog", "html"}
	if got := Formats(); !slices.Equal(got, want) {
		t.Errorf("formats %q", got)
	}
	for alias, want := range map[string]string{"table": "console", "md": "markdown", "benchfmt": "gobench", "jsonl": "ndjson", "html": "html"} {
		if got, err := FormatName(alias); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %s", alias, got, err, want)
		}
	}
	var unknown *formatError
	if err := Write(io.Discard, "pdf", blank()); !errors.As(err, &unknown) || unknown.Name != "pdf" || !strings.Contains(err.Error(), "hdrlog") {
		t.Errorf("error %v", err)
	}
	for path, want := range map[string]string{
		"a/b.HTML": "html", "r.json.gz": "json", "r.json": "json", "r.xml": "junit", "r.bench": "gobench", "r.hlog": "hdrlog", "r.jsonl": "ndjson",
		"r.csv": "csv", "r.txt": "console", "r.md": "markdown", "r.csv.gz": "", "csv": "", "r.pdf": "",
	} {
		if got, ok := FormatOf(path); got != want || ok != (want != "") {
			t.Errorf("%s is %q, %t; want %q", path, got, ok, want)
		}
	}
}

func TestEveryFormatReportsWriterErrors(t *testing.T) {
	for _, format := range Formats() {
		if err := Write(brokenWriter{}, format, matrixReport()); !errors.Is(err, errBroken) {
			t.Errorf("%s: error %v, want %v", format, err, errBroken)
		}
	}
}

func TestCSVRoundTrip(t *testing.T) {
	r := spitefulReport()
	rows, err := csv.NewReader(strings.NewReader(render(t, "csv", r))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1+len(r.Cases) {
		t.Fatalf("%d rows, want %d", len(rows), 1+len(r.Cases))
	}
	column := func(name string) int {
		i := slices.Index(rows[0], name)
		if i < 0 {
			t.Fatalf("no column %q in %q", name, rows[0])
		}
		return i
	}
	for i, c := range r.Cases {
		row := rows[i+1]
		if got, want := row[column("topic")], csvText(spiteful[i]); got != want {
			t.Errorf("topic %q, want %q", got, want)
		}
		if mean, err := strconv.ParseFloat(row[column("summary.mean_ns")], 64); err != nil || mean != *c.Summary.MeanNS {
			t.Errorf("mean %v, %v; want %v", mean, err, *c.Summary.MeanNS)
		}
		if got := row[column("latency.end_to_end.p99_ns")]; got != strconv.FormatInt(c.Latency.EndToEnd.P99NS, 10) {
			t.Errorf("p99 %s, want %d", got, c.Latency.EndToEnd.P99NS)
		}
	}
	for _, row := range rows[1:] {
		for _, cell := range row {
			if _, err := strconv.ParseFloat(cell, 64); err != nil && cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
				t.Errorf("%q is a formula", cell)
			}
		}
	}
}

func TestCSVText(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "plain": "plain", "=1": "'=1", "+x": "'+x", "-x": "'-x", "@x": "'@x", "  =1": "'  =1", "＝1": "'＝1", "-5": "-5", "+1e3": "+1e3",
		"\t=1": `\t=1`, "a=b": "a=b", "1KiB": "1KiB",
	} {
		if got := csvText(s); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}

// TestCSVMissing: what does not exist is an empty cell, not 0.
func TestCSVMissing(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(render(t, "csv", partialReport()))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"summary.mean_ns", "summary.stddev_ns", "latency.end_to_end.count"} {
		if got := rows[3][slices.Index(rows[0], name)]; got != "" {
			t.Errorf("%s of a case that never ran is %q", name, got)
		}
	}
}

// TestCSVOffered: what an open loop offered has columns where there was one.
func TestCSVOffered(t *testing.T) {
	r, achieved := partialReport(), 99.5
	for _, want := range []string{"", "99.5"} {
		rows, err := csv.NewReader(strings.NewReader(render(t, "csv", r))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.Index(rows[0], "offered.achieved_per_sec")
		if (i >= 0) != (want != "") || i >= 0 && (rows[1][i] != want || rows[2][i] != "") {
			t.Errorf("column %d, want %q: %v", i, want, rows)
		}
		r.Cases[0].Offered = &result.Offered{MessagesPerSec: 100, Achieved: &achieved}
	}
}

func TestJSONKeepsValues(t *testing.T) {
	r := spitefulReport()
	r.Cases[0].ID = "\U000e0001" + r.Cases[0].ID // a tag character, beyond 16 bits
	got, err := readReport(t, render(t, "json", r))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range r.Cases {
		if want := strings.ToValidUTF8(c.ID, "�"); got.Cases[i].ID != want {
			t.Errorf("id %q, want %q", got.Cases[i].ID, want)
		}
	}
}

func TestNDJSONLines(t *testing.T) {
	r := spitefulReport()
	lines := strings.Split(strings.TrimSuffix(render(t, "ndjson", r), "\n"), "\n")
	if want := 4 * len(r.Cases); len(lines) != want {
		t.Fatalf("%d lines, want %d", len(lines), want)
	}
	for i, line := range lines {
		var it struct {
			Case      string
			Params    map[string]string
			ElapsedNS int64   `json:"elapsed_ns"`
			NSPerOp   float64 `json:"ns_per_op"`
			Ops       int64   `json:"operations"`
		}
		if err := json.Unmarshal([]byte(line), &it); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		c := r.Cases[i/4]
		if it.Case != c.ID || it.Params["qos"] != "1" || it.ElapsedNS != c.Iterations[i%4].ElapsedNS || it.NSPerOp != float64(it.ElapsedNS)/float64(it.Ops) {
			t.Errorf("line %d: %+v", i+1, it)
		}
	}
}

func TestJUnit(t *testing.T) {
	var suites junitSuites
	if err := xml.Unmarshal([]byte(render(t, "junit", partialReport())), &suites); err != nil {
		t.Fatal(err)
	}
	s := suites.Suites[0]
	if s.Tests != 4 || s.Failures != 2 || s.Errors != 1+0 || s.Skipped != 0 || suites.Tests != 4 || len(s.Cases) != 4 {
		t.Errorf("%d tests, %d failures, %d errors, %d skipped", s.Tests, s.Failures, s.Errors, s.Skipped)
	}
	run, good, lossy, never := s.Cases[0], s.Cases[1], s.Cases[2], s.Cases[3]
	if run.Error == nil || run.Error.Message != "the run ended before everything was measured" {
		t.Errorf("run: %+v", run.Error)
	}
	if good.Failure != nil || good.Error != nil || good.Skipped != nil || !strings.Contains(good.Output, "Mean 5.100 μs") {
		t.Errorf("good: %+v", good)
	}
	want := "3 of 199,990 messages were lost at QoS 1 (<0.01 %)\ngate lost == 0 failed: the value is 3"
	if lossy.Failure == nil || lossy.Failure.Text != want || lossy.Failure.Type != "delivery" || !strings.HasSuffix(lossy.Failure.Message, "(and 1 more)") {
		t.Errorf("lossy: %+v", lossy.Failure)
	}
	if never.Failure == nil || !strings.Contains(never.Failure.Text, "the value does not exist") {
		t.Errorf("never: %+v", never.Failure)
	}
}

func TestJUnitNotRun(t *testing.T) {
	r := blank()
	r.Cases = []result.Case{
		{ID: "qos=0", Params: params("qos", "0")},
		{ID: "qos=1", Params: params("qos", "1"), Errors: []result.Error{{Kind: "connect", Reason: "refused", Count: 2}}},
	}
	r.Gates = []result.GateResult{{Rule: "p99 < 1ms", Case: "qos=9"}}
	var suites junitSuites
	if err := xml.Unmarshal([]byte(render(t, "junit", r)), &suites); err != nil {
		t.Fatal(err)
	}
	s := suites.Suites[0]
	if len(s.Cases) != 3 || s.Cases[0].Skipped == nil || s.Cases[1].Error == nil || s.Cases[2].Failure == nil ||
		s.Skipped != 1 || s.Errors != 1 || s.Failures != 1 {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(s.Cases[1].Error.Message, "connect: refused (2 times)") {
		t.Errorf("message %q", s.Cases[1].Error.Message)
	}
	// A report without cases is not a success either.
	if err := xml.Unmarshal([]byte(render(t, "junit", blank())), &suites); err != nil || suites.Errors != 1 {
		t.Errorf("an empty report has %d errors, %v", suites.Errors, err)
	}
}

func TestJUnitByXMLLint(t *testing.T) {
	lint, err := exec.LookPath("xmllint")
	if err != nil {
		t.Skip("xmllint is not installed (Debian: libxml2-utils)")
	}
	for name, r := range map[string]*result.Report{"spiteful": spitefulReport(), "partial": partialReport(), "empty": blank()} {
		cmd := exec.Command(lint, "--noout", "--nonet", "-")
		cmd.Stdin = strings.NewReader(render(t, "junit", r))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

var (
	benchConfig = regexp.MustCompile(`^[a-z][^A-Z\s:]*:[ \t]*\S.*$`)
	benchUnit   = regexp.MustCompile(`^Unit \S+ better=(higher|lower)$`)
	benchResult = regexp.MustCompile(`^Benchmark(\S*)\t([1-9][0-9]*)((?:\t[0-9]+(?:\.[0-9]+)? \S+)+)$`)
)

// TestGoBenchGrammar parses by the grammar of golang.org/design/14313.
func TestGoBenchGrammar(t *testing.T) {
	for name, r := range map[string]*result.Report{"spiteful": spitefulReport(), "matrix": matrixReport()} {
		samples := map[string]int{}
		for line := range strings.Lines(render(t, "gobench", r)) {
			line = strings.TrimSuffix(line, "\n")
			if m := benchResult.FindStringSubmatch(line); m != nil {
				samples[m[1]]++
				if !strings.Contains(m[3], " ns/op\t") || !strings.Contains(m[3], " req/s") {
					t.Errorf("%s: units in %q", name, line)
				}
				if procs.MatchString(m[1]) {
					t.Errorf("%s: %q ends as GOMAXPROCS does", name, m[1])
				}
				continue
			}
			if !strings.HasPrefix(line, "# ") && !benchConfig.MatchString(line) && !benchUnit.MatchString(line) {
				t.Errorf("%s: %q is not a line of the format", name, line)
			}
		}
		if len(samples) != len(r.Cases) {
			t.Errorf("%s: %d benchmarks, want %d", name, len(samples), len(r.Cases))
		}
		for i, c := range r.Cases {
			id, ok := strings.CutPrefix(benchName(&r.Cases[i]), "BenchmarkMqttload/")
			back, err := parseCaseID(id)
			if !ok || err != nil || !slices.Equal(back, c.Params) {
				t.Errorf("%s: %q is read as %q, %v; want %q", name, id, back, err, c.Params)
			}
			if got := samples["Mqttload/"+id]; got != c.Summary.N {
				t.Errorf("%s: %d samples of %s, want %d", name, got, id, c.Summary.N)
			}
		}
	}
}

func TestGoBenchNames(t *testing.T) {
	for _, c := range []struct {
		c    result.Case
		want string
	}{
		{result.Case{Params: params("qos", "1", "payload", "8192", "protocol", "5")}, "BenchmarkMqttload/qos=1/payload=8192/protocol=5"},
		{result.Case{Params: params("host", "node-8")}, "BenchmarkMqttload/host=node%2D8"},
		{result.Case{}, "BenchmarkMqttload"},
		{result.Case{ID: "a b"}, "BenchmarkMqttload/case=a%20b"},
	} {
		if got := benchName(&c.c); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestHDRLogRoundTrip(t *testing.T) {
	r := spitefulReport()
	r.Cases[0].Latency.Ack = latency(1000, 500)
	log := hdrhistogram.NewHistogramLogReader(strings.NewReader(render(t, "hdrlog", r)))
	for i, c := range r.Cases {
		for _, leg := range c.Latency.All() {
			if leg.Histogram == nil {
				continue
			}
			got, err := log.NextIntervalHistogram()
			if err != nil || got == nil {
				t.Fatalf("case %d, %s: %v", i, leg.Name, err)
			}
			if got.TotalCount() != leg.Histogram.Count || min(got.Max(), result.MaxLatencyNS) != leg.Histogram.MaxNS {
				t.Errorf("case %d, %s: %d values up to %d, want %d up to %d", i, leg.Name, got.TotalCount(), got.Max(), leg.Histogram.Count, leg.Histogram.MaxNS)
			}
			back, err := parseCaseID(got.Tag())
			if want := append(slices.Clone(c.Params), result.Param{Key: "leg", Value: leg.Name}); err != nil || !slices.Equal(back, want) {
				t.Errorf("tag %q is read as %q, %v; want %q", got.Tag(), back, err, want)
			}
			if want := r.Run.Started.UnixMilli(); got.StartTimeMs() != want {
				t.Errorf("start %d, want %d", got.StartTimeMs(), want)
			}
		}
	}
	if more, err := log.NextIntervalHistogram(); more != nil || err != nil {
		t.Errorf("more: %v, %v", more, err)
	}
}

// TestDamagedHistogramsAreNamed: no format passes on what it cannot read.
func TestDamagedHistogramsAreNamed(t *testing.T) {
	r := matrixReport()
	r.Cases[1].Latency.EndToEnd.HDR = "HISTF,\nTag=x"
	for _, format := range []string{"hdrlog", "html"} {
		var b bytes.Buffer
		err := Write(&b, format, r)
		if err == nil || !strings.Contains(err.Error(), r.Cases[1].ID) || !strings.Contains(err.Error(), "end_to_end") || b.Len() != 0 {
			t.Errorf("%s: error %v, %d bytes", format, err, b.Len())
		}
	}
}

// parseCaseID inverts CaseID.
func parseCaseID(id string) (params []result.Param, err error) {
	if id == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(id, "/") {
		key, value, _ := strings.Cut(part, "=")
		k, errKey := url.PathUnescape(key)
		v, errValue := url.PathUnescape(value)
		params, err = append(params, result.Param{Key: k, Value: v}), errors.Join(err, errKey, errValue)
	}
	return params, err
}

// readReport reads a report in JSON.
func readReport(t *testing.T, text string) (*result.Report, error) {
	path := filepath.Join(t.TempDir(), "r.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return result.Read(path)
}
