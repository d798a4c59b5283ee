package result

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// addSeeds gives a fuzz target every format that is read.
func addSeeds(f *testing.F) {
	for _, path := range []string{"testdata/table-1.tsv", "testdata/table-2.tsv", "testdata/turbomqtt-v1.md"} {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	r := sampleReport()
	r.Cases[0].Iterations = r.Cases[0].Iterations[:10]
	own, err := json.Marshal(r)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(own), bdnJSON, bdnMarkdown, goBench, "qos\tMean [us]\n1\t5\n", "Mean|\n1s|", "\xff\xfea\x00", "{}", "[", `{"Benchmarks":[{}]}`} {
		f.Add([]byte(s))
	}
}

// useInput does everything that is done with an input: nothing may panic, and
// every number must be one.
func useInput(t *testing.T, in *Input) {
	t.Helper()
	for i := range in.Cells {
		for _, x := range in.Cells[i].Samples {
			if !positive(x) {
				t.Fatalf("%s has the sample %g", in.Cells[i].ID, x)
			}
		}
	}
	fs := Audit(in)
	if p, rows := Passed(in, fs); p < 0 || p > rows {
		t.Fatalf("%d of %d rows passed", p, rows)
	}
	c, err := Compare([]*Input{in}, []*Input{in}, CompareOptions{})
	if err != nil {
		return
	}
	if c.Regressions() != 0 {
		t.Fatalf("an input is slower than itself: %s", c.Sentence())
	}
	if _, err := json.Marshal([]any{c, fs}); err != nil {
		t.Fatal(err)
	}
}

func FuzzParseInput(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := ParseInput("x", b)
		if (in == nil) == (err == nil) {
			t.Fatalf("%v and %v", in, err)
		}
		if in != nil {
			useInput(t, in)
		}
	})
}

// FuzzParseTables reaches the readers of tables behind any line.
func FuzzParseTables(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if in, err := parseTables(textLines(string(b))); err == nil && in != nil && in.check() == nil {
			useInput(t, in)
		}
	})
}

func FuzzParseGoBench(f *testing.F) {
	addSeeds(f)
	f.Add([]byte("BenchmarkA/b=c-2 1 1e300 ns/op"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if in, err := parseGoBench(textLines(string(b))); err == nil && in != nil && in.check() == nil {
			useInput(t, in)
		}
	})
}

func FuzzParseBDN(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if in, err := parseBDN(b); err == nil && in.check() == nil {
			useInput(t, in)
		}
	})
}

// FuzzParseGate: a gate that is accepted prints as it was written and is parsed
// again to the same.
func FuzzParseGate(f *testing.F) {
	for _, s := range []string{
		"p99 < 5ms", "lost < 0.1% @ qos=1,2", "ack.p99>=1.5e-3 s @ a=b/c=%2F", "req_per_sec < 30k/s", "p99 == 0", "= 5", "p99 <= 5 @", "a!=b",
	} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, text string, failIf bool) {
		g, err := ParseGate(text, failIf)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "gate ") {
				t.Fatalf("error %v", err)
			}
			return
		}
		again, err := parseRule(g.String())
		if err != nil || again.Limit != g.Limit || again.Metric != g.Metric || again.FailIf != g.FailIf || again.Op != g.Op {
			t.Fatalf("%q becomes %+v, then %+v %v", text, g, again, err)
		}
		for _, r := range g.Evaluate(gateReport()) {
			if _, err := json.Marshal(r); err != nil {
				t.Fatal(err)
			}
		}
		_ = g.Check([][]Param{{{"qos", "1"}}})
	})
}
