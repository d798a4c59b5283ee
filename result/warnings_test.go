package result

import (
	"strings"
	"testing"
)

func codes(ws []Warning) (cs []string) {
	for _, w := range ws {
		cs = append(cs, w.Code)
	}
	return cs
}

func steady(n int, elapsed, ops int64) (c Case) {
	for i := range n {
		wobble := elapsed / 100 * int64(i%7)
		c.Iterations = append(c.Iterations, Iteration{
			Launch: 1, Index: i + 1, Stage: StageActual, ElapsedNS: elapsed + wobble, Operations: ops,
		})
	}
	return c
}

func message(t *testing.T, ws []Warning, code string) string {
	t.Helper()
	for _, w := range ws {
		if w.Code == code {
			if w.Hint == "" {
				t.Errorf("%s gives no hint", code)
			}
			return w.Message
		}
	}
	t.Errorf("no %s among %v", code, codes(ws))
	return ""
}

func TestAnalyzeSteadyCase(t *testing.T) {
	if ws := Analyze(steady(30, 250e6, 1000)); len(ws) != 0 {
		t.Errorf("a steady case has warnings: %+v", ws)
	}
}

func TestAnalyzeStalledIteration(t *testing.T) {
	c := stalledCase()
	ws := Analyze(c)
	want := "1 of 100 iterations stalled: iteration 10 of launch 10 took 6.025 s for 2,000 operations; the mean is 64.68 μs, without it 34.91 μs"
	if got := message(t, ws, CodeStalled); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := message(t, ws, CodeOutliers); got != "1 outlier was detected (3.012 ms)" {
		t.Errorf("outliers: %s", got)
	}
	// The stall lifts the mean over the limit: 129 ms, where 69 ms is typical.
	if strings.Contains(strings.Join(codes(ws), " "), CodeMinIterationTime) {
		t.Error("an iteration time of 129 ms is called short")
	}
	c.Iterations = c.Iterations[:99]
	if got := codes(Analyze(c)); len(got) == 0 || got[0] != CodeMinIterationTime {
		t.Errorf("without the stall: %v, want %s first", got, CodeMinIterationTime)
	}
}

func TestAnalyzeGivenUpIteration(t *testing.T) {
	c := steady(3, 250e6, 1000)
	c.Iterations[1].Stalled = true
	c.Iterations[1].ElapsedNS = 5e9
	got := message(t, Analyze(c), CodeStalled)
	if !strings.Contains(got, "iteration 2 of launch 1 took 5.000 s") {
		t.Error(got)
	}
	c.Iterations[1].Operations = 0
	ws := Analyze(c)
	message(t, ws, CodeStalled)
	if got := message(t, ws, CodeZeroMeasurement); !strings.HasPrefix(got, "1 of 3 iterations") {
		t.Error(got)
	}
}

func TestAnalyzeSlowButWorkingIsNoStall(t *testing.T) {
	c := steady(20, 250e6, 1000)
	c.Iterations[3].ElapsedNS = 500e6 // twice as slow: an outlier only
	ws := Analyze(c)
	message(t, ws, CodeOutliers)
	if strings.Contains(strings.Join(codes(ws), " "), CodeStalled) {
		t.Error("an iteration of twice the time is called stalled")
	}
}

func TestAnalyzeModes(t *testing.T) {
	c := steady(60, 250e6, 1000)
	for i := range c.Iterations {
		if i%2 == 0 {
			c.Iterations[i].ElapsedNS += 500e6
		}
	}
	if got := message(t, Analyze(c), CodeMultimodal); !strings.Contains(got, "bimodal (mValue = 4.00)") {
		t.Error(got)
	}
}

func TestAnalyzeOthers(t *testing.T) {
	if got := message(t, Analyze(Case{}), CodeZeroMeasurement); !strings.Contains(got, "no iteration ran") {
		t.Error(got)
	}
	if got := message(t, Analyze(steady(5, 9e6, 10)), CodeMinIterationTime); !strings.Contains(got, "9.180 ms") {
		t.Error(got)
	}
	for want, scheduled := range map[string]int64{"--idle": 0, "--messages": 50} {
		c := steady(5, 9e6, 10)
		c.Delivery.Scheduled = scheduled
		if ws := Analyze(c); len(ws) == 0 || !strings.Contains(ws[0].Hint, want) {
			t.Errorf("%d messages scheduled: %+v, want %s", scheduled, ws, want)
		}
	}
	c := steady(5, 250e6, 10)
	c.Bottleneck = &Bottleneck{Kind: "generator", Detail: "CPU 98 % of 2 cores"}
	c.Latency.Service = &Histogram{Clamped: 12}
	c.Delivery.Lost = 1
	ws := Analyze(c)
	if got := message(t, ws, CodeGeneratorLimited); !strings.HasSuffix(got, "CPU 98 % of 2 cores") {
		t.Error(got)
	}
	if got := message(t, ws, CodeLatencyClamped); !strings.HasPrefix(got, "12 latencies were outside of 1.000 ns to 3,600.0 s") {
		t.Error(got)
	}
	if got := message(t, ws, CodeLedger); !strings.Contains(got, "expected = delivered + lost") {
		t.Error(got)
	}
	c.Bottleneck.Kind = "broker"
	if strings.Contains(strings.Join(codes(Analyze(c)), " "), CodeGeneratorLimited) {
		t.Error("a broker-limited case is called generator-limited")
	}
}

func TestAnalyzeClientsMissing(t *testing.T) {
	for _, tt := range []struct {
		clients Clients
		want    string
	}{
		{Clients{Planned: 100, Connected: 100}, ""},
		{Clients{Planned: 100, Connected: 60}, "40 of 100 clients did not connect: the row was measured without them"},
		{Clients{Planned: 1}, "1 of 1 clients did not connect"},
		{Clients{Planned: 20, Connected: 20, Lost: 20}, "20 of 20 clients were lost"},
		{Clients{Planned: 100, Connected: 99, Lost: 2}, "1 of 100 clients did not connect, 2 of 99 clients were lost: the row was measured without them"},
	} {
		got := ""
		for _, w := range Analyze(Case{Clients: tt.clients}) {
			if w.Code == CodeClientsMissing {
				got = w.Message
			}
		}
		if got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.clients, got, tt.want)
		}
	}
}

// TestOutliersAtAKeptRate: windows within 1 % of the median are no outliers of a kept rate,
// and do not stand beside real ones. A closed loop, or a rate that was not kept, names all.
func TestOutliersAtAKeptRate(t *testing.T) {
	c := Case{Iterations: steady(30, 1e9, 1000).Iterations}
	for i := range c.Iterations {
		c.Iterations[i].ElapsedNS = 1e9 + int64(i%3)
	}
	c.Iterations[5].ElapsedNS, c.Iterations[9].ElapsedNS = 1001e6, 999e6
	if got := message(t, Analyze(c), CodeOutliers); !strings.HasPrefix(got, "2 outliers") {
		t.Errorf("closed loop: %s", got)
	}
	achieved := 1000.0
	c.Offered = &Offered{MessagesPerSec: 1000, Achieved: &achieved}
	if ws := Analyze(c); len(ws) > 0 {
		t.Errorf("kept rate: %v", ws)
	}
	c.Iterations[7].ElapsedNS = 1300e6
	if got := message(t, Analyze(c), CodeOutliers); got != "1 outlier was detected (1.300 ms)" {
		t.Errorf("kept rate with one real outlier: %s", got)
	}
	c.Delivery.Unsent = 1
	if got := message(t, Analyze(c), CodeOutliers); !strings.HasPrefix(got, "3 outliers") {
		t.Errorf("rate not kept: %s", got)
	}
}
