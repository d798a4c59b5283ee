package result

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/mqttload/mqttload/result/stats"
)

const bdnJSON = `{"Title":"Bench-20240529-101112","HostEnvironmentInfo":{"BenchmarkDotNetVersion":"0.13.12","OsVersion":"Windows 11","ProcessorName":"i7","LogicalCoreCount":16,"Architecture":"X64"},
"Benchmarks":[{"Method":"Publish","Parameters":"QoSLevel=AtMostOnce&PayloadSizeBytes=10","Statistics":{"OriginalValues":[100,110,120],"N":3,"Mean":110,"Median":110,"StandardDeviation":10},
"Measurements":[{"IterationMode":"Workload","IterationStage":"Warmup","LaunchIndex":1,"Operations":10,"Nanoseconds":9000},
{"IterationMode":"Workload","IterationStage":"Result","LaunchIndex":1,"Operations":10,"Nanoseconds":1000},
{"IterationMode":"Workload","IterationStage":"Result","LaunchIndex":1,"Operations":10,"Nanoseconds":1100},
{"IterationMode":"Workload","IterationStage":"Result","LaunchIndex":2,"Operations":10,"Nanoseconds":1200}]},
{"Method":"Publish","Parameters":"QoSLevel=AtLeastOnce&PayloadSizeBytes=10","Statistics":{"OriginalValues":[200,210],"N":2,"Mean":205,"Median":205,"StandardDeviation":7.0710678118654755}},
{"Method":"Publish","Parameters":"QoSLevel=ExactlyOnce&PayloadSizeBytes=10","Statistics":null}]}`

const goBench = `goos: linux
goarch: amd64
pkg: github.com/mqttload/mqttload
cpu: AMD EPYC
Unit req/s better=higher
BenchmarkMqttload/qos=1/payload=text%3Aa%2Fb/protocol=5	2000	100 ns/op	10000000 req/s	5000 p99-ns
BenchmarkMqttload/qos=1/payload=text%3Aa%2Fb/protocol=5	2000	110.5 ns/op	9049773 req/s
BenchmarkOther/fast-8     3  4e-7 sec/op
PASS
`

const bdnMarkdown = "```\n\nBenchmarkDotNet v0.13.12, Windows 11 (10.0.22631.3593/23H2)\n12th Gen Intel Core i7-1260P, 1 CPU, 16 logical and 12 physical cores\n" +
	"InvocationCount=1  LaunchCount=10  RunStrategy=Monitoring  \n```\n" +
	"| Method  | Job        | QoSLevel       | Mean     | Error     | StdDev   | Median   | Req/sec    |\n" +
	"|-------- |----------- |--------------- |---------:|----------:|---------:|---------:|-----------:|\n" +
	"| **Publish** | **Job-YJPWNC** | **AtMostOnce** | **5.265 μs** | **0.6731 μs** | **1.985 μs** | **4.544 μs** | **189,944.65** |\n" +
	"|         |            |                |          |           |          |          |            |\n" +
	"| Publish | Job-YJPWNC | AtLeastOnce    | 24.939 us | 1.5192 us | 4.479 us | 24.873 us | 40,097.67 |\n" +
	"| Publish | Job-YJPWNC | a\\|b    | NA | NA | NA | NA | NA |\n"

func parseInput(t *testing.T, text string) *Input {
	t.Helper()
	in, err := ParseInput("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// hasQoS reports whether c joins with cells of that QoS.
func hasQoS(c Cell, qos string) bool {
	return slices.ContainsFunc(c.Params, func(p Param) bool { return canonicalParam(p) == Param{"qos", qos} })
}

func TestReadTSV(t *testing.T) {
	in := readAny(t, "testdata/table-1.tsv")
	c := in.Cells[0]
	if in.Format != FormatTSV || len(in.Cells) != 12 || !hasQoS(c, "0") || len(in.Digest) != 64 {
		t.Fatalf("%s, %d cells, the first %v", in.Format, len(in.Cells), c.Params)
	}
	for name, v := range map[string][2]float64{
		"mean": {*c.Summary.MeanNS, 5265}, "error": {*c.Summary.ErrorNS, 673.1}, "stddev": {*c.Summary.StdDevNS, 1985},
		"median": {*c.Summary.MedianNS, 4544}, "req/sec": {*c.Summary.ReqPerSec, 189944.65}, "rounding": {c.Printed["Error"].Half, 0.05},
	} {
		near(t, name, v[0], v[1], 1e-9*v[1])
	}
	if in.OperationsPerIteration != 2000 || c.Summary.N != 100 {
		t.Errorf("%d operations, n = %d", in.OperationsPerIteration, c.Summary.N)
	}
}

func TestReadMarkdown(t *testing.T) {
	in := parseInput(t, bdnMarkdown)
	if in.Format != FormatMarkdown || len(in.Cells) != 3 || in.StatedN != 100 {
		t.Fatalf("%s, %d cells, n = %d", in.Format, len(in.Cells), in.StatedN)
	}
	e := in.Environment
	if in.ToolName != "BenchmarkDotNet" || in.ToolVersion != "0.13.12" || e.CPU != "12th Gen Intel Core i7-1260P" || e.Cores != 16 || osName(e.OS) != "windows" {
		t.Errorf("tool %s %s on %+v", in.ToolName, in.ToolVersion, e)
	}
	if want := []Param{{"Method", "Publish"}, {"QoSLevel", "AtMostOnce"}}; !slices.Equal(in.Cells[0].Params, want) {
		t.Errorf("params %v, want %v: no job, no bold", in.Cells[0].Params, want)
	}
	if *in.Cells[0].Summary.MeanNS != 5265 || *in.Cells[1].Summary.MeanNS != 24939 {
		t.Errorf("means %g and %g", *in.Cells[0].Summary.MeanNS, *in.Cells[1].Summary.MeanNS)
	}
	if in.Cells[2].measured() || in.Cells[2].Params[1].Value != "a|b" {
		t.Errorf("the failed row: %+v", in.Cells[2])
	}
	in = parseInput(t, "| qos | Mean [ms] | Error [ms] |\n|---|---:|---:|\n| 1 | 1,234.5 | 2 |\n")
	if *in.Cells[0].Summary.MeanNS != 1234.5e6 {
		t.Errorf("a unit in the header: %g", *in.Cells[0].Summary.MeanNS)
	}
}

func TestReadOurMarkdown(t *testing.T) {
	in := parseInput(t, "```\nmqttload v0.1.0, go1.26.8, linux 6.1.0, amd64\nExample CPU @ 2.0GHz, 2 logical cores\n"+
		"Clock: monotonic, of one process; TCP_NODELAY on\nprotocol=3.1.1  transport=tcp  IterationCount=15  \nLaunchCount=1  WarmupCount=2  \n```\n\n"+
		"| qos | payload |      Mean |     Error |    StdDev |\n|----:|--------:|----------:|----------:|----------:|\n"+
		"|   0 |      10 |  5.366 μs | 0.0823 μs | 0.0770 μs |\n")
	want := []Param{{"qos", "0"}, {"payload", "10"}, {"protocol", "3.1.1"}, {"transport", "tcp"}}
	if c := in.Cells[0]; !slices.Equal(c.Params, want) || c.Summary.N != 15 {
		t.Errorf("params %v, n = %d; want %v and 15", c.Params, c.Summary.N, want)
	}
	if e := in.Environment; e.OS != "linux" || e.Arch != "amd64" || e.Cores != 2 || e.CPU != "Example CPU @ 2.0GHz" || in.ToolVersion != "v0.1.0" {
		t.Errorf("%s on %+v", in.ToolVersion, e)
	}
}

func TestReadBDN(t *testing.T) {
	in := parseInput(t, bdnJSON)
	if in.Format != FormatBDN || len(in.Cells) != 3 || in.Started.Format("2006-01-02 15:04:05") != "2024-05-29 10:11:12" || in.Environment.Cores != 16 {
		t.Fatalf("%s, %d cells, %v", in.Format, len(in.Cells), in.Started)
	}
	if c := in.Cells[0]; !slices.Equal(c.Samples, []float64{100, 110, 120}) || !slices.Equal(c.Launches, []int{1, 1, 2}) || *c.IterationNS != 1100 {
		t.Errorf("measurements: %+v", c)
	}
	if c := in.Cells[1]; !slices.Equal(c.Samples, []float64{200, 210}) || !hasQoS(c, "1") {
		t.Errorf("original values: %+v", c)
	}
	if in.Cells[2].measured() {
		t.Error("a failed benchmark was measured")
	}
	if fs := Audit(in); slices.ContainsFunc(fs, func(f Finding) bool { return f.Level == LevelFail }) {
		t.Errorf("audit %v", fs)
	}
	fs := Audit(parseInput(t, strings.Replace(bdnJSON, `"Mean":110`, `"Mean":111`, 1)))
	if !slices.ContainsFunc(fs, func(f Finding) bool { return f.Code == CodeSummary && f.Level == LevelFail }) {
		t.Errorf("a changed mean passed: %v", fs)
	}
}

func TestReadGoBench(t *testing.T) {
	in := parseInput(t, goBench)
	if in.Format != FormatGoBench || len(in.Cells) != 2 || in.Environment.CPU != "AMD EPYC" || in.Environment.GOMAXPROCS != 8 {
		t.Fatalf("%s, %d cells, %+v", in.Format, len(in.Cells), in.Environment)
	}
	want := []Param{{"qos", "1"}, {"payload", "text:a/b"}, {"protocol", "5"}}
	if c := in.Cells[0]; !slices.Equal(c.Params, want) || !slices.Equal(c.Samples, []float64{100, 110.5}) {
		t.Errorf("%+v", c)
	}
	if c := in.Cells[1]; !slices.Equal(c.Params, []Param{{"name", "Other"}, {"sub1", "fast"}}) || math.Abs(c.Samples[0]-400) > 1e-9 {
		t.Errorf("%+v", c)
	}
}

// TestGoBenchKeepsProcsApart: X and X-4 are two benchmarks, as for benchstat, and the
// regression of one is found.
func TestGoBenchKeepsProcsApart(t *testing.T) {
	const base = "BenchmarkX 10 800 ns/op\nBenchmarkX-4 10 300 ns/op\n"
	in := parseInput(t, base)
	if len(in.Cells) != 2 || in.Cells[0].ID != "name=X/gomaxprocs=1" || in.Cells[1].ID != "name=X/gomaxprocs=4" || in.Environment.GOMAXPROCS != 0 {
		t.Fatalf("%+v", in)
	}
	if s := in.Cells[1].Samples; !slices.Equal(s, []float64{300}) {
		t.Errorf("X-4 has samples %v", s)
	}
	in = parseInput(t, "BenchmarkX-4 10 300 ns/op\nBenchmarkX-4 10 310 ns/op\n")
	if len(in.Cells) != 1 || in.Cells[0].ID != "name=X" || in.Environment.GOMAXPROCS != 4 {
		t.Errorf("one GOMAXPROCS: %+v", in)
	}
}

func TestReadOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json.gz")
	if err := Write(path, sampleReport()); err != nil {
		t.Fatal(err)
	}
	in := readAny(t, path)
	if c := in.Cells[0]; in.Format != FormatReport || in.Report == nil || len(c.Samples) != 100 || c.Stalled == nil || *c.Summary.MeanNS != stats.Mean(c.Samples) {
		t.Errorf("%s, %d samples, stalled %v", in.Format, len(c.Samples), c.Stalled)
	}
	// As a shell of Windows writes it.
	text := "qos\tMean\tError\r\n1\t5.0 μs\t1.0 μs\r\n"
	wide := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(text)) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	for _, b := range [][]byte{wide, []byte("\xef\xbb\xbf" + text)} {
		in, err := ParseInput("x", b)
		if err != nil || *in.Cells[0].Summary.MeanNS != 5000 {
			t.Errorf("%.10q: %v", b, err)
		}
	}
}

// TestUnreadable: every input that is not a report is one clear error of a type.
func TestUnreadable(t *testing.T) {
	own, err := json.Marshal(sampleReport())
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ text, want string }{
		"empty":          {" \n", "not a report: it is empty"},
		"truncated":      {string(own[:len(own)/2]), "not a report: the JSON is truncated: it ends in the middle"},
		"truncated BDN":  {bdnJSON[:len(bdnJSON)-40], "not a report: the JSON is truncated"},
		"NaN":            {strings.Replace(string(own), `"mean_ns":`, `"mean_ns":NaN,"x":`, 1), "not a report: NaN or Infinity at byte"},
		"Infinity":       {`{"Benchmarks":[{"Statistics":{"Mean":-Infinity}}]}`, "not a report: NaN or Infinity at byte"},
		"other JSON":     {`{"context":{"date":"x"},"benchmarks_":[]}`, "not a report: JSON of another tool: it has neither the schema"},
		"list":           {`[{"schema":"mqttload.report/1"}]`, "not a report: JSON of another tool: a list"},
		"newer":          {`{"schema":"mqttload.report/2","cases":7}`, `schema "mqttload.report/2" is not "mqttload.report/1"`},
		"wrong type":     {`{"schema":"mqttload.report/1","cases":7}`, "not a report: cases: number is not allowed there"},
		"no cases":       {`{"schema":"mqttload.report/1","cases":[]}`, "it has no measured case"},
		"no iterations":  {`{"schema":"mqttload.report/1","cases":[{"id":"qos=1","params":[{"key":"qos","value":"1"}]}]}`, "it has no measured case: none of 1 cases has an iteration"},
		"no benchmarks":  {`{"Benchmarks":[]}`, "it has no measured case"},
		"negative":       {`{"Benchmarks":[{"Method":"a","Statistics":{"OriginalValues":[-1]}}]}`, `not a report: case "Method=a" has an iteration of -1 ns`},
		"twice":          {"qos\tMean\n1\t5 ns\n1\t6 ns\n", `not a report: duplicate case "qos=1"`},
		"twice by names": {"qos\tQoSLevel\tMean\n1\tx\t5 ns\n1\tx\t6 ns\n", `not a report: duplicate case`},
		"table NaN":      {"qos\tMean\n1\tNaN\n", `not a report: row 1: Mean: "NaN" is not a number`},
		"table infinity": {"qos\tMean\n1\t∞ ns\n", `not a report: row 1: Mean: "∞ ns" is not a number`},
		"table zero":     {"qos\tMean\n1\t0.0 ns\n", "not a report: row 1: the mean is 0"},
		"short row":      {"qos\tMean\tError\n1\t5 ns\n", "not a report: row 1 has 2 fields, the header has 3: is it truncated?"},
		"no unit":        {"qos\tMean\n1\t5\n", `not a report: row 1: Mean "5" has no unit of time`},
		"other unit":     {"qos\tMean\n1\t5 kg\n", `not a report: row 1: Mean: "5 kg" has a unit that is not a time`},
		"all NA":         {"qos\tMean\n1\tNA\n", "it has no measured case: none of"},
		"header only":    {"qos\tMean\n", "it has no measured case"},
		"no mean":        {"a\tb\n1\t2\n", "not a report: neither JSON, a table with a Mean column, nor Go benchmark text"},
		"prose":          {"hello | world\n", "not a report: neither"},
		"bench NaN":      {"BenchmarkX 10 NaN ns/op\n", "not a report: BenchmarkX: NaN ns/op over 10 iterations is not a measurement"},
		"bench zero":     {"BenchmarkX 10 0 ns/op\n", "not a report: BenchmarkX: 0 ns/op over 10"},
		"bench without":  {"BenchmarkX 10 5 B/op\n", "not a report: neither"},
		"binary":         {"\x7fELF\x00\x00", "not a report: it is not text"},
	} {
		_, err := ParseInput("x", []byte(tt.text))
		var fe *formatError
		var se *schemaError
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %s", name, err, tt.want)
			continue
		}
		if !errors.As(err, &fe) && !errors.As(err, &se) && !errors.Is(err, ErrNoCells) {
			t.Errorf("%s: %T is none of the documented errors", name, err)
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one line: %v", name, err)
		}
	}
}

// TestHugeFiles: a file of 1 GiB and a gzip file that unpacks to 1 GiB are refused
// without taking their size in memory.
func TestHugeFiles(t *testing.T) {
	dir := t.TempDir()
	plain, bomb := filepath.Join(dir, "huge.json"), filepath.Join(dir, "bomb.json.gz")
	if err := os.WriteFile(plain, []byte(`{"schema":"mqttload.report/1"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(plain, 1<<30); err != nil {
		t.Skip("this file system has no sparse files:", err)
	}
	// A gzip file may have several members, which unpack one after the other.
	var member bytes.Buffer
	z := gzip.NewWriter(&member)
	z.Write(bytes.Repeat([]byte(" "), 1<<22))
	z.Close()
	if err := os.WriteFile(bomb, bytes.Repeat(member.Bytes(), 256), 0o600); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, path := range []string{plain, bomb} {
		_, err := ReadAny(path)
		var fe *FileError
		if !errors.Is(err, errTooLarge) || !errors.As(err, &fe) || fe.Path != path {
			t.Errorf("%s: error %v", filepath.Base(path), err)
		}
		if _, err := Read(path); !errors.Is(err, errTooLarge) {
			t.Errorf("Read %s: error %v", filepath.Base(path), err)
		}
	}
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 8<<20 {
		t.Errorf("%d bytes were allocated to refuse them", taken)
	}
}

func TestReadAnyFaults(t *testing.T) {
	dir := t.TempDir()
	cut := filepath.Join(dir, "cut.json.gz")
	if err := Write(cut, sampleReport()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(cut)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, b[:len(b)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir: "is a directory", cut: "not a report: the gzip file is truncated",
	} {
		_, err := ReadAny(path)
		if want = "read report " + path + ": " + want; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, err := ReadAny(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
