package cmd

import (
	"testing"

	"github.com/mqttload/mqttload/result"
)

func TestCalibrateVerdict(t *testing.T) {
	missed := []result.Figure{{Verdict: result.FigureMisses}, {Verdict: result.FigureAim}}
	wrong := []result.Answer{{Name: "n", Expected: "1", Seen: "2"}}
	for _, c := range []struct {
		name   string
		cal    result.Calibration
		strict bool
		want   int
	}{
		{"all well", result.Calibration{Answers: []result.Answer{{Passed: true}}}, true, exitOK},
		{"a goal missed", result.Calibration{Figures: missed}, false, exitOK},
		{"and strict", result.Calibration{Figures: missed}, true, exitGate},
		{"a wrong answer", result.Calibration{Answers: wrong}, false, exitInternal},
		{"both", result.Calibration{Figures: missed, Answers: wrong}, true, exitGate},
	} {
		code := exitOK
		if bad := calibrateVerdict(&c.cal, c.strict).InOrder(); len(bad) > 0 {
			code = exitCodes[bad[0].Class]
		}
		if code != c.want {
			t.Errorf("%s: exit code %d, want %d", c.name, code, c.want)
		}
	}
}
