package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/result"
)

func calibrationReport() *result.Report {
	must, aim, memory := 4.0, 2.5, 8192.0
	load, fastest, slow := 0.5, 250.0, 400.0
	params := func(place, qos string) []result.Param {
		return []result.Param{
			{Key: "work", Value: "engine"}, {Key: "place", Value: place}, {Key: "transport", Value: "tcp"},
			{Key: "payload", Value: "10"}, {Key: "qos", Value: qos}, {Key: "protocol", Value: "3.1.1"},
		}
	}
	c := &result.Calibration{Rounds: 5, LoadAverage: &load, Figures: []result.Figure{
		{
			Name: "CPU per message, client", Params: params("own-process", "0")[1:5], Unit: "ns", Against: "raw echo", Must: &must, Aim: &aim,
			Value: &result.Spread{Median: 151.26, Min: 120, Max: 1834}, Ratio: &result.Spread{Median: 4.126, Min: 3, Max: 5.5},
		},
		{Name: "memory per idle connection", Unit: "bytes", Must: &memory, Value: &result.Spread{Median: 6144, Min: 6144, Max: 6144}},
		{Name: "difference", Params: []result.Param{{Key: "pairs", Value: "1"}}, Unit: "ns", Value: &result.Spread{Median: -5.25, Min: -1200, Max: 3}},
		{Name: "unknown", Must: &must, Reason: "no /proc here"},
	}, Answers: []result.Answer{{Name: "two and two", Expected: "4", Seen: "4", Passed: true}, {Name: "three", Expected: "3", Seen: "5"}}}
	for i := range c.Figures {
		c.Figures[i].Judge()
	}
	r := &result.Report{Calibration: c, Cases: []result.Case{
		{Params: []result.Param{{Key: "work", Value: "echo"}, {Key: "payload", Value: "10"}}, Summary: result.Summary{MinNS: &slow}},
		{Params: params("in-process", "0"), Summary: result.Summary{MinNS: &fastest}},
		{Params: params("own-process", "0"), Summary: result.Summary{MinNS: &slow}},
		{Params: params("own-process", "1")},
	}}
	return r
}

func TestCalibration(t *testing.T) {
	for name, write := range map[string]func(*bytes.Buffer, *result.Report) error{
		"console":  func(b *bytes.Buffer, r *result.Report) error { return writeConsole(b, r) },
		"markdown": func(b *bytes.Buffer, r *result.Report) error { return writeMarkdown(b, r) },
	} {
		var b bytes.Buffer
		if err := write(&b, calibrationReport()); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(strings.Fields(b.String()), " ")
		for _, want := range []string{
			"Calibration: 5 interleaved rounds, medians (least-most); CPU is that of getrusage; load average before 0.5",
			"| CPU per message, client | own-process, tcp, 10 B, QoS 0 | 151 ns (120 ns-1.83 μs) | 4.13x raw echo (3.00-5.50) | at most 4x, aim 2.5x | misses |",
			"| memory per idle connection | | 6.0 KiB | | at most 8.0 KiB | holds |",
			"| difference | 1 pair | -5.25 ns (-1.2 μs-3 ns) | | | - |",
			"| unknown | | NA | | at most 4 | not measured: no /proc here |",
			"1 of 3 goals hold, 0 of them reach what was aimed at; 1 missed, 1 not measured",
			"missed: CPU per message, client (own-process, tcp, 10 B, QoS 0): 4.13x raw echo (3.00-5.50), at most 4x, aim 2.5x",
			"| tcp | 0 | 10 | 3.1.1 | 4,000,000 | 2,500,000 |",
			"| tcp | 1 | 10 | 3.1.1 | NA | NA |",
			"right two and two: 4", "WRONG three: expected 3, seen 5",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in:\n%s", name, want, b.String())
			}
		}
	}
}

func TestCeilingSection(t *testing.T) {
	r := &result.Report{Cases: []result.Case{{ID: "qos=0", Ceiling: &result.Ceiling{MessagesPerSec: 2e6, Share: 0.123}}, {ID: "qos=1"}}}
	var b bytes.Buffer
	if err := writeConsole(&b, r); err != nil {
		t.Fatal(err)
	}
	want := "// * Ceiling *\n  qos=0 -> 12 % of the 2,000,000 msg/s that this tool reaches on this machine\n"
	if !strings.Contains(b.String(), want) {
		t.Errorf("%q is not in:\n%s", want, b.String())
	}
}
