package result

import (
	"math"
	"slices"
	"testing"

	"github.com/mqttload/mqttload/result/stats"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %.12g, want %.12g within %g", what, got, want, tolerance)
	}
}

// stalledCase is a hundred iterations of 2,000 operations, one of them stalled
// for six seconds: the hidden content of one published row.
func stalledCase() Case {
	us := []float64{34.9073}
	for i := range 98 {
		us = append(us, 34.9073+6.452*float64(1-2*(i%2)))
	}
	us = append(us, 3012.3673)
	c := Case{ID: "qos=1/payload=8192", OperationsPerMessage: 2}
	for i, x := range us {
		c.Iterations = append(c.Iterations, Iteration{
			Launch: 1 + i/10, Index: 1 + i%10, Stage: StageActual, ElapsedNS: int64(math.Round(x * 2000 * 1000)),
			Operations: 2000, Sent: 1000, Received: 1000, Bytes: 1000 * 8192,
		})
	}
	return c
}

func TestSummarizeStalled(t *testing.T) {
	c := stalledCase()
	c.Iterations = append(c.Iterations, Iteration{Stage: StageWarmup, ElapsedNS: 1, Operations: 1, Bytes: 1})
	s := Summarize(c.Iterations, 2)
	if s.N != 100 {
		t.Fatalf("N = %d, want the 100 actual iterations", s.N)
	}
	near(t, "mean", *s.MeanNS/1e3, 64.682, 5e-4)
	near(t, "stddev", *s.StdDevNS/1e3, 297.815, 5e-4)
	near(t, "error", *s.ErrorNS/1e3, 101.0049, 5e-5)
	near(t, "req/sec", *s.ReqPerSec, 15460.28, 5e-2)
	near(t, "median", *s.MedianNS/1e3, 34.9073, 6.4521)
	near(t, "max", *s.MaxNS/1e3, 3012.3673, 1e-9)
	near(t, "msg/s is half of the operations", *s.MessagesPerSec, *s.ReqPerSec/2, 1e-6)
	near(t, "bytes/s", *s.BytesPerSec, 8192**s.MessagesPerSec, 1e-3)

	sorted := slices.Sorted(slices.Values(samples(c.Iterations)))
	near(t, "upper fence", stats.TukeyFences(sorted).Upper/1e3, 60.715, 5e-4)
	if low, _, high := stats.Outliers(sorted); len(low) != 0 || len(high) != 1 {
		t.Errorf("%d low and %d high outliers, want 0 and 1", len(low), len(high))
	}
}

func TestSummarizeUndefined(t *testing.T) {
	none := Summarize(nil, 1)
	if none != (Summary{}) {
		t.Errorf("summary of nothing = %+v, want all nil", none)
	}
	one := Summarize([]Iteration{{Stage: StageActual, ElapsedNS: 1000, Operations: 10}}, 1)
	if one.N != 1 || *one.MeanNS != 100 || *one.MedianNS != 100 || *one.ReqPerSec != 1e7 {
		t.Errorf("summary of one iteration = %+v", one)
	}
	if one.StdDevNS != nil || one.ErrorNS != nil {
		t.Error("one iteration has a deviation or an error")
	}
	empty := Summarize([]Iteration{{Stage: StageActual, ElapsedNS: 1000}}, 1)
	if empty.N != 0 || empty.MeanNS != nil || *empty.MessagesPerSec != 0 {
		t.Errorf("summary of an iteration without operations = %+v", empty)
	}
}

func TestThroughputWeighsByTime(t *testing.T) {
	its := []Iteration{
		{Stage: StageActual, ElapsedNS: 1e9, Operations: 100, Bytes: 1000},
		{Stage: StageActual, ElapsedNS: 3e9, Operations: 100, Bytes: 1000},
	}
	s := Summarize(its, 1)
	near(t, "messages/s", *s.MessagesPerSec, 50, 1e-12)
	near(t, "bytes/s", *s.BytesPerSec, 500, 1e-12)
	near(t, "req/sec", *s.ReqPerSec, 50, 1e-12)
}
