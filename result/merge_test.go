package result

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// machine is the report of one machine that delivered a thousand messages per
// iteration, each of the given latency.
func machine(id string, start time.Time, elapsed time.Duration, latency int64) *Report {
	finished := start.Add(time.Minute)
	h := NewHDR()
	Record(h, latency, 3000)
	c := Case{
		ID: "qos=1", Params: []Param{{"qos", "1"}}, OperationsPerMessage: 1, Window: 100, WindowAsked: 100,
		Latency:  Latency{EndToEnd: NewHistogram(h)},
		Delivery: Delivery{Scheduled: 3000, Sent: 3000, Expected: 3000, Delivered: 3000, Received: 3000},
		Clients:  Clients{Planned: 2, Connected: 2}, Errors: []Error{{Kind: "connect", Reason: "refused", Count: 2}},
		CPU: CPU{UserNS: 5, SystemNS: 7},
	}
	for i := range 3 {
		c.Iterations = append(c.Iterations, Iteration{
			Launch: 1, Stage: StageActual, Index: i + 1, ElapsedNS: int64(elapsed), Operations: 1000, Sent: 1000, Received: 1000, Bytes: 10_000,
		})
	}
	c.Summary = Summarize(c.Iterations, 1)
	return &Report{
		Schema: Schema, ScenarioHash: "same", Run: Run{ID: id, Started: start, Finished: &finished, Status: StatusComplete},
		Environment: Environment{OS: "linux", CPU: "CPU " + id, Cores: 2, GOMAXPROCS: 2}, Cases: []Case{c},
	}
}

func TestMerge(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a, b := machine("a", at, 100*time.Millisecond, 1_000_000), machine("b", at.Add(time.Second), 300*time.Millisecond, 100_000_000)
	m, err := Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	c := m.Cases[0]
	if len(c.Iterations) != 6 || c.Iterations[0].Run != "a" || c.Iterations[5].Run != "b" || c.Iterations[5].Launch != 2 {
		t.Errorf("iterations %+v", c.Iterations)
	}
	if c.Summary.N != 6 || *c.Summary.MeanNS != 200_000 || *c.Summary.MinNS != 100_000 {
		t.Errorf("summary of 3 x 100 us and 3 x 300 us: %+v", c.Summary)
	}
	// Side by side: 10,000 and 3,333 messages per second.
	near(t, "messages per second", *c.Summary.MessagesPerSec, 10_000+10_000.0/3, 1e-6)
	near(t, "bytes per second", *c.Summary.BytesPerSec, 100_000+100_000.0/3, 1e-5)
	// Not the mean of both percentiles: half of the messages took 1 ms, half 100 ms.
	if h := c.Latency.EndToEnd; h.Count != 6000 || h.P50NS > 1_010_000 || h.P90NS < 99_000_000 {
		t.Errorf("latency %+v", h)
	}
	if c.Delivery.Sent != 6000 || c.Clients.Planned != 4 || c.CPU.SystemNS != 14 || len(c.Errors) != 1 || c.Errors[0].Count != 4 {
		t.Errorf("sums: %+v %+v %+v", c.Delivery, c.Clients, c.Errors)
	}
	if m.Run.ID != "a+b" || m.Environment.Cores != 4 || m.Environment.CPU != "CPU a + CPU b" || m.Run.Status != StatusComplete || !m.Run.Started.Equal(at) {
		t.Errorf("run %+v on %+v", m.Run, m.Environment)
	}
	if w := c.Warnings[0]; w.Code != CodeMerged || w.Message != "merged from 2 runs: a (CPU a, 2 cores), b (CPU b, 2 cores)" {
		t.Errorf("warning %+v", w)
	}
	if fs := fails(Audit(InputOf("m", m))); len(fs) != 0 {
		t.Errorf("the merged report does not verify: %v", fs)
	}
	if len(a.Cases[0].Iterations) != 3 || a.Cases[0].Iterations[0].Run != "" || a.Cases[0].Delivery.Sent != 3000 {
		t.Error("merging changed a report")
	}
}

func TestMergeOneAfterTheOther(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m, err := Merge(machine("a", at, 100*time.Millisecond, 1000), machine("b", at.Add(time.Hour), 300*time.Millisecond, 1000))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "messages per second", *m.Cases[0].Summary.MessagesPerSec, 5000, 1e-6)
	if m.Environment.Cores != 2 {
		t.Errorf("%d cores, but the runs did not use them at once", m.Environment.Cores)
	}
	if fs := fails(Audit(InputOf("m", m))); len(fs) != 0 {
		t.Errorf("the merged report does not verify: %v", fs)
	}
}

// TestMergeIsTheWhole: a sample recorded in parts merges to what it is as a whole.
func TestMergeIsTheWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	whole, parts := NewHDR(), []*Histogram{}
	for range 4 {
		part := NewHDR()
		for range 1000 {
			v := int64(1e4 * (1 + rng.ExpFloat64()))
			Record(part, v, 1)
			Record(whole, v, 1)
		}
		parts = append(parts, NewHistogram(part))
	}
	merged, err := mergeHistograms(parts...)
	if err != nil || *merged != *NewHistogram(whole) {
		t.Errorf("%+v\n%v", merged, err)
	}
}

func TestMergePartial(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a, b := machine("a", at, time.Second, 1000), machine("b", at, time.Second, 1000)
	b.Cases[0].ID, b.Cases[0].Params = "qos=2", []Param{{"qos", "2"}}
	b.Run.Status, b.Run.Finished = StatusPartial, nil
	m, err := Merge(a, b)
	if err != nil || len(m.Cases) != 2 || m.Run.Status != StatusPartial || m.Run.Finished != nil {
		t.Fatalf("%+v %v", m, err)
	}
	if w := m.Cases[1].Warnings[0]; w.Code != CodeMergedPart || !strings.HasPrefix(w.Message, "merged from 1 of 2 runs, a has no such case: b (") {
		t.Error(w)
	}
	b.Run.Status, b.Run.Finished = StatusComplete, a.Run.Finished
	if m, err = Merge(a, b); err != nil || m.Run.Status != StatusPartial {
		t.Errorf("a merge in which cases are missing is %q: %v", m.Run.Status, err)
	}
}

// TestMergeNamesEveryDifference: what a comparison refuses is not averaged away,
// and the machine alone may differ.
func TestMergeNamesEveryDifference(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	secured := func(id string) *Report {
		r := machine(id, at, time.Second, 1000)
		r.Target = Target{URL: "mqtts://broker:8883", TLS: &TLS{Version: "TLS 1.3", Cipher: "A"}}
		return r
	}
	a, b := secured("a"), secured("b")
	b.Environment = Environment{OS: "windows", Arch: "arm64", CPU: "Other", Cores: 64, GOMAXPROCS: 32}
	if _, err := Merge(a, b); err != nil {
		t.Fatalf("only the machine differs: %v", err)
	}
	b.Target = Target{URL: "mqtts://other:8883", TLS: &TLS{Version: "TLS 1.2", Cipher: "B", Insecure: true}}
	b.Cases[0].Window, b.Cases[0].OperationsPerMessage = 10, 2
	_, err := Merge(a, b)
	var me *MergeError
	if !errors.As(err, &me) {
		t.Fatalf("merged: %v", err)
	}
	var keys []string
	for _, d := range me.Differences {
		keys = append(keys, d.Key)
		if !strings.Contains(err.Error(), d.String()) {
			t.Errorf("%v does not name %v", err, d)
		}
	}
	if want := []string{"target", "tls_version", "tls_cipher", "tls_verification", "window", "operations"}; !slices.Equal(keys, want) {
		t.Errorf("differences %v, want %v", keys, want)
	}
}

func TestMergeRefuses(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	change := func(f func(*Report)) *Report {
		r := machine("b", at, time.Second, 1000)
		f(r)
		return r
	}
	for want, other := range map[string]*Report{
		"scenario: hash same, hash other in runs a and b": change(func(r *Report) { r.ScenarioHash = "other" }),
		"run a is given twice":                            change(func(r *Report) { r.Run.ID = "a" }),
		"has no run id":                                   change(func(r *Report) { r.Run.ID = "" }),
		"target: none, embedded broker":                   change(func(r *Report) { r.Target.Embedded = true }),
	} {
		_, err := Merge(machine("a", at, time.Second, 1000), other)
		var me *MergeError
		if !errors.As(err, &me) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, err := Merge(); err == nil {
		t.Error("nothing was merged")
	}
	_, err := Merge(machine("a", at, time.Second, 1000), change(func(r *Report) { r.Cases[0].Latency.EndToEnd.HDR = "x" }))
	if err == nil || !strings.Contains(err.Error(), "case qos=1: end_to_end") {
		t.Errorf("a damaged histogram: %v", err)
	}
	one := machine("a", at, time.Second, 1000)
	if m, err := Merge(one); err != nil || m != one {
		t.Errorf("one report: %v", err)
	}
}
