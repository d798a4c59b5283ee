package load

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/mqttload/mqttload/scenarios"
)

func mustSchedule(t *testing.T, arrival scenarios.Arrival, seed uint64, stages ...scenarios.Stage) *schedule {
	t.Helper()
	s, err := newSchedule(stages, arrival, seed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestScheduleKnownAnswers: message n of a rate r is due at n/r; in a ramp from
// 0 to r over T it is due at the root of n = r t^2 / 2T.
func TestScheduleKnownAnswers(t *testing.T) {
	const s = time.Second
	for name, tt := range map[string]struct {
		stages []scenarios.Stage
		total  uint64
		at     map[uint64]time.Duration
	}{
		"constant":      {[]scenarios.Stage{{Duration: 60 * s, From: 1000, To: 1000}}, 60_000, map[uint64]time.Duration{0: 0, 1: 1e6, 59_999: 59_999e6}},
		"thirds":        {[]scenarios.Stage{{Duration: s, From: 3, To: 3}}, 3, map[uint64]time.Duration{1: 333_333_333, 2: 666_666_667}},
		"slow":          {[]scenarios.Stage{{Duration: 10 * s, From: 0.25, To: 0.25}}, 3, map[uint64]time.Duration{2: 8 * s}},
		"less than one": {[]scenarios.Stage{{Duration: s, From: 0.5, To: 0.5}}, 1, map[uint64]time.Duration{0: 0}},
		"up":            {[]scenarios.Stage{{Duration: 2 * s, From: 0, To: 100}}, 100, map[uint64]time.Duration{0: 0, 1: 200e6, 25: s}},
		"down":          {[]scenarios.Stage{{Duration: 2 * s, From: 100, To: 0}}, 100, map[uint64]time.Duration{75: s, 99: 1_800_000_000}},
		"pause": {[]scenarios.Stage{{Duration: s, From: 10, To: 10}, {Duration: 3 * s}, {Duration: s, From: 20, To: 20}}, 30,
			map[uint64]time.Duration{9: 900e6, 10: 4 * s, 11: 4*s + 50e6, 29: 4*s + 950e6}},
		"late":  {[]scenarios.Stage{{Duration: 2 * s}, {Duration: s, From: 10, To: 10}}, 10, map[uint64]time.Duration{0: 2 * s, 9: 2*s + 900e6}},
		"steps": {[]scenarios.Stage{{Duration: s, From: 10, To: 10}, {Duration: s, From: 20, To: 20}}, 30, map[uint64]time.Duration{10: s, 12: s + 100e6}},
	} {
		sch := mustSchedule(t, scenarios.Constant, 0, tt.stages...)
		if sch.total != tt.total {
			t.Errorf("%s: %d messages, want %d", name, sch.total, tt.total)
		}
		for n, want := range tt.at {
			if got := time.Duration(sch.at(n)); got != want {
				t.Errorf("%s: message %d is due at %s, want %s", name, n, got, want)
			}
		}
	}
}

// TestScheduleDue: due counts exactly the messages of which at is not later, and
// times never go back.
func TestScheduleDue(t *testing.T) {
	stages := []scenarios.Stage{
		{Duration: 700 * time.Millisecond, From: 0, To: 3333}, {Duration: time.Second, From: 3333, To: 3333},
		{Duration: 300 * time.Millisecond}, {Duration: time.Second, From: 100, To: 0},
	}
	for _, arrival := range []scenarios.Arrival{scenarios.Constant, scenarios.Poisson} {
		s := mustSchedule(t, arrival, 7, stages...)
		last := int64(0)
		for n := range s.total {
			at := s.at(n)
			if at < last || at >= s.duration {
				t.Fatalf("%s: message %d is due at %d, after %d", arrival, n, at, last)
			}
			last = at
			if due := s.due(at); due < n+1 || s.at(due-1) > at {
				t.Fatalf("%s: %d due at %d, when message %d is", arrival, due, at, n)
			}
			if due := s.due(at - 1); due > n {
				t.Fatalf("%s: %d due at %d, before message %d", arrival, due, at-1, n)
			}
		}
		if due := s.due(s.duration); due != s.total {
			t.Errorf("%s: %d of %d due at the end", arrival, due, s.total)
		}
	}
}

// TestPoisson: the gaps of seed 1 have the mean and the variation of an
// exponential distribution, and pass a Kolmogorov-Smirnov test at p > 0.01.
func TestPoisson(t *testing.T) {
	stage := scenarios.Stage{Duration: time.Minute, From: 1000, To: 1000}
	s := mustSchedule(t, scenarios.Poisson, 1, stage)
	gaps := make([]float64, s.total-1)
	for i := range gaps {
		gaps[i] = float64(s.at(uint64(i+1))-s.at(uint64(i))) / 1e6
	}
	n := float64(len(gaps))
	mean, sq := 0.0, 0.0
	for _, g := range gaps {
		mean += g / n
		sq += g * g / n
	}
	cv := math.Sqrt(sq-mean*mean) / mean
	if math.Abs(mean-1) > 0.01 || math.Abs(cv-1) > 0.02 {
		t.Errorf("mean gap %.4f ms, coefficient of variation %.4f", mean, cv)
	}
	if d := ksExponential(gaps, mean); d > 1.63/math.Sqrt(n) {
		t.Errorf("KS distance %.5f, above %.5f", d, 1.63/math.Sqrt(n))
	}
	same, other := mustSchedule(t, scenarios.Poisson, 1, stage), mustSchedule(t, scenarios.Poisson, 2, stage)
	if same.total != s.total || same.at(31_415) != s.at(31_415) || other.at(31_415) == s.at(31_415) {
		t.Error("a schedule is not a function of its seed")
	}
}

// TestScheduleBounds: what cannot be run is refused.
func TestScheduleBounds(t *testing.T) {
	for _, st := range [][]scenarios.Stage{nil, {{Duration: time.Second}}, {{Duration: 1e6 * time.Hour, From: 1e6, To: 1e6}}} {
		if s, err := newSchedule(st, scenarios.Constant, 0); err == nil {
			t.Errorf("%v: %d messages", st, s.total)
		}
	}
}

// ksExponential is the largest distance between the distribution of xs and the
// exponential one of the mean.
func ksExponential(xs []float64, mean float64) (d float64) {
	sorted := append([]float64(nil), xs...)
	slices.Sort(sorted)
	n := float64(len(sorted))
	for i, x := range sorted {
		f := 1 - math.Exp(-x/mean)
		d = max(d, math.Abs(f-float64(i)/n), math.Abs(float64(i+1)/n-f))
	}
	return d
}
