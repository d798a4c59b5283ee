package result

import (
	"slices"
	"strings"
	"testing"
)

func fails(fs []Finding) (list []Finding) {
	for _, f := range fs {
		if f.Level == LevelFail {
			list = append(list, f)
		}
	}
	return list
}

func withCode(fs []Finding, code string) (list []Finding) {
	for _, f := range fs {
		if f.Code == code {
			list = append(list, f)
		}
	}
	return list
}

// TestAuditSeed: all 24 rows of both tables verify, 22 of them have iterations
// under 100 ms, and one hides a stall of six seconds.
func TestAuditSeed(t *testing.T) {
	passed, short := 0, 0
	var stalled []Finding
	for _, path := range []string{"testdata/table-1.tsv", "testdata/table-2.tsv"} {
		in := readAny(t, path)
		fs := Audit(in)
		p, rows := Passed(in, fs)
		if rows != 12 {
			t.Errorf("%s has %d rows", path, rows)
		}
		passed += p
		short += len(withCode(fs, CodeMinIterationTime))
		stalled = append(stalled, withCode(fs, CodeStalled)...)
		if n := withCode(fs, CodePrecision); n != nil {
			t.Errorf("%s: %v", path, n)
		}
	}
	if passed != 24 || short != 22 {
		t.Errorf("%d rows passed, %d have short iterations; want 24 and 22", passed, short)
	}
	want := "Mean, StdDev and Median fit only if 1 iteration of 100 stalled, for about 6.026 s: the Mean is 64.68 μs, without it 34.90 μs"
	if len(stalled) != 1 || !strings.Contains(stalled[0].Case, "AtLeastOnce/PayloadSizeBytes=8192") || stalled[0].Message != want {
		t.Errorf("stalled %+v\nwant %s", stalled, want)
	}
}

// TestAuditTenIterations: two rows of TurboMqtt's documentation rest on 10
// iterations, under a header that says 10 launches.
func TestAuditTenIterations(t *testing.T) {
	in := readAny(t, "testdata/turbomqtt-v1.md")
	if in.StatedN != 100 || len(in.Cells) != 10 {
		t.Fatalf("n = %d, %d cells", in.StatedN, len(in.Cells))
	}
	fs := fails(Audit(in))
	if p, rows := Passed(in, fs); p != 8 || rows != 10 {
		t.Errorf("%d of %d passed, want 8 of 10: %v", p, rows, fs)
	}
	for i, want := range []string{"QoSLevel=AtLeastOnce/PayloadSizeBytes=2048", "QoSLevel=ExactlyOnce/PayloadSizeBytes=8192"} {
		if f := fs[i]; f.Code != CodeNDiffers || !strings.HasSuffix(f.Case, want) || !strings.HasSuffix(f.Message, "so n = 10, but the header states 100") {
			t.Errorf("%+v", f)
		}
	}
}

func TestImpliedN(t *testing.T) {
	for ratio, want := range map[float64]int{
		18.243723: 3, 3.850644: 5, 1.511857: 10, 1.069061: 15, 0.668113: 30, 0.339153: 100, 0.236180: 200, 0.104364: 1000,
	} {
		e, sd := ratio, 1.0
		c := Cell{Summary: Summary{ErrorNS: &e, StdDevNS: &sd}, Printed: map[string]Printed{"Error": {Half: 5e-7}}}
		if n := c.impliedN(); n.Best != want || !n.holds(want) || n.holds(want+want/10+1) || n.holds(want-1-want/10) {
			t.Errorf("%g: %+v, want %d", ratio, n, want)
		}
	}
	zero := 0.0
	if n := (&Cell{Summary: Summary{ErrorNS: &zero, StdDevNS: &zero}}).impliedN(); n.known() {
		t.Errorf("no spread implies %+v", n)
	}
}

func TestHiddenStall(t *testing.T) {
	s, ok := hiddenStall(100, 64.682, 297.816, 35.865)
	if !ok || s.Count != 1 {
		t.Fatalf("%+v %t", s, ok)
	}
	near(t, "stall", s.OpNS, 3012.4, 1)
	near(t, "mean of the others", s.MeanNS, 34.907, 0.01)
	// A published row of two retry rounds.
	s, ok = hiddenStall(100, 155.65, 733.0, 51.99)
	if !ok || s.Count != 2 {
		t.Fatalf("%+v %t", s, ok)
	}
	near(t, "mean of the others", s.MeanNS, 51.47, 0.01)
	for _, row := range [][3]float64{{13.365, 7.569, 10.174}, {43.528, 15.92, 40.024}, {100, 150, 20}, {100, 5, 100}} {
		if s, ok := hiddenStall(100, row[0], row[1], row[2]); ok {
			t.Errorf("%v is explained by %+v", row, s)
		}
	}
}

// TestAuditNeighbours: without a header, a row of another n than most rows is a warning;
// where no n has most rows, or the job lets n differ, there is none.
func TestAuditNeighbours(t *testing.T) {
	const columns = "qos\tMean\tError\tStdDev\tMedian\tReq/sec\n"
	in := parseInput(t, columns+"0\t5.265 μs\t0.6731 μs\t1.985 μs\t4.544 μs\t189,944.65\n1\t5.485 μs\t0.5596 μs\t1.650 μs\t4.953 μs\t182,305.78\n2\t5.265 μs\t3.0010 μs\t1.985 μs\t4.544 μs\t189,944.65\n")
	fs := withCode(Audit(in), CodeNDiffers)
	if len(fs) != 1 || fs[0].Level != LevelWarn || fs[0].Case != "qos=2" || !strings.HasSuffix(fs[0].Message, "so n = 10, but most rows rest on 100") {
		t.Errorf("%v", fs)
	}
	const (
		bdn   = "BenchmarkDotNet v0.15.8, Linux\n"
		table = "| Method | Mean | Error | StdDev |\n| A | 71.01 us | 1.078 us | 1.972 us |\n| B | 74.10 us | 1.466 us | 3.965 us |\n"
		same  = table + "| C | 71.02 us | 1.078 us | 1.972 us |\n"
	)
	for _, text := range []string{table, bdn + table, bdn + same} {
		in := parseInput(t, text)
		if fs := withCode(Audit(in), CodeNDiffers); len(fs) > 0 {
			t.Errorf("%s%v", text, fs)
		}
	}
}

// TestAuditStatedByDefaultJob: a job that removes outliers may end with fewer iterations
// than it states, but not with more or with few of them.
func TestAuditStatedByDefaultJob(t *testing.T) {
	const head = "BenchmarkDotNet v0.15.8, Linux\nIterationCount=15\n\n| Method | Mean | Error | StdDev |\n"
	for row, want := range map[string]int{
		"| A | 100.00 us | 10.691 us | 10.000 us |\n": 0, // 15
		"| A | 100.00 us | 11.978 us | 10.000 us |\n": 0, // 13
		"| A | 100.00 us | 38.506 us | 10.000 us |\n": 1, // 5
		"| A | 100.00 us | 3.392 us | 10.000 us |\n":  1, // 100
	} {
		if fs := withCode(fails(Audit(parseInput(t, head+row))), CodeNDiffers); len(fs) != want {
			t.Errorf("%s%v", row, fs)
		}
	}
}

func TestAuditTable(t *testing.T) {
	head := "qos\tMean\tError\tStdDev\tMedian\tReq/sec\n"
	for name, tt := range map[string]struct{ rows, code string }{
		"good": {"1\t5.265 μs\t0.6731 μs\t1.985 μs\t4.544 μs\t189,944.65\n", ""},
		"req":  {"1\t5.265 μs\t0.6731 μs\t1.985 μs\t4.544 μs\t189,044.65\n", CodeReqPerSec},
		"no n": {"1\t5.265 μs\t90.6731 μs\t1.985 μs\t4.544 μs\t189,944.65\n", CodeErrorRatio},
	} {
		in := parseInput(t, head+tt.rows)
		fs := fails(Audit(in))
		if tt.code == "" && len(fs) > 0 || tt.code != "" && (len(fs) != 1 || fs[0].Code != tt.code) {
			t.Errorf("%s: %v, want %q", name, fs, tt.code)
		}
	}
	fs := Audit(parseInput(t, head+"1\t5.26 μs\t0.6731 μs\t1.985 μs\t4.544 μs\t190,000.00\n"))
	if n := withCode(fs, CodePrecision); len(n) != 1 || n[0].Level != LevelNote {
		t.Errorf("two decimals of a mean of 5 μs: %v", fs)
	}
}

// TestAuditSpread: a spread above the mean is named also where nothing explains it,
// and a stall among samples by its iteration.
func TestAuditSpread(t *testing.T) {
	fs := Audit(parseInput(t, "qos\tMean\tError\tStdDev\n1\t64.682 μs\t101.0053 μs\t297.816 μs\n"))
	if u := withCode(fs, CodeUnstable); len(u) != 1 || u[0].Level != LevelWarn || u[0].Message != "StdDev is 460 % of Mean" {
		t.Errorf("without a median: %v", fs)
	}
	bench := strings.Repeat("BenchmarkA 1000000 100 ns/op\n", 9) + "BenchmarkA 1000000 1000 ns/op\n"
	fs = Audit(parseInput(t, bench))
	if s := withCode(fs, CodeStalled); len(s) != 1 || !strings.Contains(s[0].Message, "iteration 10 of launch 1 took 1.000 s") {
		t.Errorf("a stall among samples: %v", fs)
	}
}

// TestAuditReport changes one number of a report at a time: each must be seen.
func TestAuditReport(t *testing.T) {
	fresh := func() *Report {
		r := sampleReport()
		c := &r.Cases[0]
		c.ID = CaseID(c.Params)
		r.Gates[0].Case = c.ID
		c.Delivery = Delivery{Scheduled: 100_000, Sent: 100_000, Expected: 100_000, Delivered: 100_000, Received: 100_000}
		return r
	}
	if fs := fails(Audit(InputOf("r", fresh()))); len(fs) != 0 {
		t.Fatalf("a good report: %v", fs)
	}
	warned := Audit(InputOf("r", fresh()))
	if s := withCode(warned, CodeStalled); len(s) != 1 || !strings.Contains(s[0].Message, "6.025 s") {
		t.Errorf("the stall: %v", warned)
	}
	other := 1.0
	for code, changes := range map[string][]func(*Report){
		CodeSummary: {
			func(r *Report) { r.Cases[0].Summary.MeanNS = &other },
			func(r *Report) { r.Cases[0].Summary.ErrorNS = nil },
			func(r *Report) { r.Cases[0].Summary.ReqPerSec = &other },
			func(r *Report) { r.Cases[0].Summary.N = 10 },
			func(r *Report) { r.Cases[0].Iterations[7].ElapsedNS *= 2 },
		},
		CodeLedger: {
			func(r *Report) { r.Cases[0].Delivery.Lost = 1 },
			func(r *Report) { r.Cases[0].Delivery.Sent--; r.Cases[0].Delivery.Unsent++ },
			func(r *Report) { r.Cases[0].Iterations[3].Acked = 5 },
			func(r *Report) { r.Cases[0].Iterations[3].Lost = 5 },
			func(r *Report) { d := &r.Cases[0].Delivery; d.Delivered--; d.Duplicated++ },
			func(r *Report) { d := &r.Cases[0].Delivery; d.Delivered--; d.Received--; d.Lost++ },
		},
		CodeOperations: {
			func(r *Report) { r.Cases[0].Iterations[3].Received++ },
			func(r *Report) { r.Cases[0].OperationsPerMessage = 1 },
			func(r *Report) {
				r.Cases[0].Iterations = append([]Iteration{{Launch: 1, Stage: StageWarmup, Index: 1, Operations: 5}}, r.Cases[0].Iterations...)
			},
		},
		CodeClients: {func(r *Report) { r.Cases[0].Clients = Clients{Planned: 2, Connected: 3} }},
		CodeTimeline: {
			func(r *Report) {
				above := r.Cases[0].Latency.EndToEnd.MaxNS * 101 / 100
				r.Cases[0].Timeline = []Tick{{TNS: 1}, {TNS: 2, P99NS: &above}, {TNS: 3}}
			},
			func(r *Report) {
				p99 := int64(1)
				r.Cases[0].Timeline, r.Cases[0].Latency.EndToEnd = []Tick{{P99NS: &p99}}, nil
			},
		},
		CodeHistogram: {
			func(r *Report) { r.Cases[0].Latency.EndToEnd.P99NS++ },
			func(r *Report) { r.Cases[0].Latency.EndToEnd.MeanNS *= 1.01 },
			func(r *Report) { r.Cases[0].Latency.EndToEnd.Count-- },
			func(r *Report) { r.Cases[0].Latency.EndToEnd.HDR = "SElTVA" },
		},
		CodeCaseID: {func(r *Report) { r.Cases[0].Params[0].Value = "2" }},
		CodeGate: {
			func(r *Report) { r.Gates[0].Passed = false },
			func(r *Report) { r.Gates[0].Value = &other },
			func(r *Report) { r.Gates[0].Value = nil },
			func(r *Report) { r.Gates[0].Limit++ },
			func(r *Report) { r.Gates[0].Rule = "fail if lost < 5" },
		},
	} {
		for i, change := range changes {
			r := fresh()
			change(r)
			fs := fails(Audit(InputOf("r", r)))
			if len(fs) == 0 || !slices.ContainsFunc(fs, func(f Finding) bool { return f.Code == code }) {
				t.Errorf("%s, change %d: %v", code, i+1, fs)
			}
		}
	}
}
