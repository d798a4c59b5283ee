package cmd

import (
	"testing"

	"github.com/mqttload/mqttload/result"
)

func TestCalibrateVerdict(t *testing.T) {
	right, wrong := result.Answer{Passed: true}, result.Answer{Name: "n", Expected: "1", Seen: "2"}
	for _, c := range []struct {
		name    string
		answers []result.Answer
		want    int
	}{
		{"all well", []result.Answer{right, right}, exitOK},
		{"a wrong answer", []result.Answer{right, wrong}, exitInternal},
	} {
		code := exitOK
		if bad := calibrateVerdict(&result.Calibration{Answers: c.answers}).InOrder(); len(bad) > 0 {
			code = exitCodes[bad[0].Class]
		}
		if code != c.want {
			t.Errorf("%s: exit code %d, want %d", c.name, code, c.want)
		}
	}
}
