package result

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// calibrated is a calibration of 10 B at 2,000,000/s (500 ns), 1,024 B at
// 500,000/s (2,000 ns), at QoS 1 over TCP, in another process.
func calibrated() *Report {
	r := &Report{Run: Run{ID: "cal"}, Environment: Environment{CPU: "a", Cores: 2, GOMAXPROCS: 2}, Tool: Tool{Version: "1", Commit: "c"}}
	for payload, ns := range map[string]float64{"1024": 2000, "10": 500} {
		r.Cases = append(r.Cases, Case{
			Params: []Param{
				{ParamWork, WorkEngine}, {ParamPlace, PlaceOwn}, {"transport", "tcp"}, {"payload", payload}, {"qos", "1"},
			},
			Summary: Summary{MinNS: &ns},
		})
	}
	return r
}

func TestCeilings(t *testing.T) {
	rate := 100e3
	for _, c := range []struct {
		payload, qos, transport string
		ns                      float64 // per message at the ceiling; 0 for none
	}{
		{"10", "1", "tcp", 500}, {"10", "1", "", 500},
		{"1", "1", "tcp", 500},
		{"517", "1", "tcp", 1250},  // halfway
		{"2048", "1", "tcp", 4000}, // beyond: by its bytes
		{"10", "0", "tcp", 0}, {"10", "1", "tls", 0}, {"@file", "1", "tcp", 0},
	} {
		r := &Report{Cases: []Case{{Params: []Param{{"qos", c.qos}, {"payload", c.payload}}, Summary: Summary{MessagesPerSec: &rate}}}}
		if c.transport != "" {
			r.Cases[0].Params = append(r.Cases[0].Params, Param{"transport", c.transport})
		}
		AddCeilings(calibrated(), r)
		k := r.Cases[0].Ceiling
		if (k == nil) != (c.ns == 0) {
			t.Errorf("%+v: ceiling %+v", c, k)
			continue
		}
		if k != nil && (math.Abs(1e9/k.MessagesPerSec-c.ns) > 1e-6 || math.Abs(k.Share-rate*c.ns/1e9) > 1e-9 || k.Calibration != "cal") {
			t.Errorf("%+v: ceiling %+v, want %v ns", c, k, c.ns)
		}
	}
}

// What a small payload costs says nothing about a large one.
func TestCeilingOfSmallPayloadsAlone(t *testing.T) {
	cal, rate := calibrated(), 1.0
	cal.Cases = slices.DeleteFunc(cal.Cases, func(c Case) bool { return c.param("payload") != "10" })
	r := &Report{Cases: []Case{{Params: []Param{{"qos", "1"}, {"payload", "1024"}}, Summary: Summary{MessagesPerSec: &rate}}}}
	if AddCeilings(cal, r); r.Cases[0].Ceiling != nil {
		t.Errorf("ceiling %+v", r.Cases[0].Ceiling)
	}
}

func TestNearCeiling(t *testing.T) {
	run := func(rate float64, embedded bool) Case {
		r := &Report{
			Target: Target{Embedded: embedded},
			Cases:  []Case{{Params: []Param{{"qos", "1"}, {"payload", "10"}}, Summary: Summary{MessagesPerSec: &rate}}},
		}
		AddCeilings(calibrated(), r)
		return r.Cases[0]
	}
	if c := run(1e6, false); len(c.Warnings) != 0 || c.Ceiling.Share != 0.5 {
		t.Errorf("at half: %+v %+v", c.Ceiling, c.Warnings)
	}
	c := run(1.2e6, false)
	if len(c.Warnings) != 1 || c.Warnings[0].Code != CodeNearCeiling ||
		c.Warnings[0].Message != "60 % of the 2,000,000 msg/s that this tool reaches on this machine at qos=1/payload=10" {
		t.Errorf("above half: %+v", c.Warnings)
	}
	// What two processes reach says nothing about one.
	if c := run(1.2e6, true); c.Ceiling != nil {
		t.Errorf("embedded: %+v", c.Ceiling)
	}
}

func TestStaleCalibration(t *testing.T) {
	if err := CheckCalibration(calibrated(), calibrated()); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(*Report){
		"processor":  func(r *Report) { r.Environment.CPU = "b" },
		"cores":      func(r *Report) { r.Environment.Cores = 4 },
		"GOMAXPROCS": func(r *Report) { r.Environment.GOMAXPROCS = 1 },
		"version":    func(r *Report) { r.Tool.Version = "2" },
		"commit":     func(r *Report) { r.Tool.Commit = "d" },
	} {
		r := calibrated()
		change(r)
		var stale *staleError
		if err := CheckCalibration(calibrated(), r); !errors.As(err, &stale) || stale.What != what {
			t.Errorf("%s: %v", what, err)
		}
	}
}
