package report

import (
	"math"
	"testing"

	"github.com/mqttload/mqttload/result"
)

// chartedRates are the points of "Throughput over time" of c; NaN for gaps.
func chartedRates(t *testing.T, c result.Case) (rates []float64) {
	t.Helper()
	run, err := chartRunOf(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range run.Rate {
		if v == nil {
			rates = append(rates, math.NaN())
			continue
		}
		rates = append(rates, *v)
	}
	return rates
}

// quarters are n iterations of 250 ms, one after the other, after a warm-up of 250 ms.
func quarters(n int, run string) (its []result.Iteration) {
	const ns = 250e6
	its = append(its, result.Iteration{Stage: result.StageWarmup, ElapsedNS: ns, Run: run})
	for i := range n {
		its = append(its, result.Iteration{Stage: result.StageActual, StartNS: int64(i+1) * ns, ElapsedNS: ns, Run: run})
	}
	return its
}

// TestChartedRateOfShortIterations: a point of a second is divided by a second, not by
// the iteration that starts with it.
func TestChartedRateOfShortIterations(t *testing.T) {
	c := result.Case{Iterations: quarters(6, ""), Timeline: []result.Tick{{TNS: 250e6, Received: 1000}, {TNS: 1250e6, Received: 500}}}
	if got := chartedRates(t, c); got[0] != 1000 || got[1] != 1000 {
		t.Errorf("%v, want 1,000 per second in both points", got)
	}
}

// TestChartedRateLeavesGapsOut: the time between launches is in no iteration, and a stall
// is a rate of 0.
func TestChartedRateLeavesGapsOut(t *testing.T) {
	its := quarters(4, "")
	its = append(its, result.Iteration{Stage: result.StageActual, StartNS: 5e9, ElapsedNS: 1e9})
	c := result.Case{Iterations: its, Timeline: []result.Tick{{TNS: 250e6, Received: 1000}, {TNS: 5e9, Received: 1000}, {TNS: 6e9}, {TNS: 7e9}}}
	got := chartedRates(t, c)
	if got[0] != 1000 || got[1] != 1000 || got[2] != 0 || !math.IsNaN(got[3]) {
		t.Errorf("%v, want 1,000, 1,000, 0 and a gap", got)
	}
}

// TestChartedRateOfMergedRuns: the ticks of two runs alternate; each is a point of its own run.
func TestChartedRateOfMergedRuns(t *testing.T) {
	its := append(quarters(8, "a"), quarters(8, "b")...)
	c := result.Case{Iterations: its, Timeline: []result.Tick{
		{TNS: 250e6, Received: 1000, Run: "a"}, {TNS: 260e6, Received: 990, Run: "b"},
		{TNS: 1250e6, Received: 1000, Run: "a"}, {TNS: 1250e6, Received: 1000, Run: "b"},
	}}
	for i, v := range chartedRates(t, c) {
		if math.Abs(v-1000) > 1e-6 {
			t.Errorf("point %d is %g, want 1,000", i, v)
		}
	}
}
