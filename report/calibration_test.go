package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/result"
)

func calibrationReport() *result.Report {
	load, fastest, slow := 0.5, 250.0, 400.0
	params := func(place, qos string) []result.Param {
		return []result.Param{
			{Key: "work", Value: "engine"}, {Key: "place", Value: place}, {Key: "transport", Value: "tcp"},
			{Key: "payload", Value: "10"}, {Key: "qos", Value: qos}, {Key: "protocol", Value: "3.1.1"},
		}
	}
	c := &result.Calibration{Rounds: 5, LoadAverage: &load, Answers: []result.Answer{
		{Name: "two and two", Expected: "4", Seen: "4", Passed: true}, {Name: "three", Expected: "3", Seen: "5"},
	}}
	r := &result.Report{Calibration: c, Cases: []result.Case{
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
			"Calibration: 5 interleaved rounds; load average before 0.5",
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
