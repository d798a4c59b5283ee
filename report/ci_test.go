package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/result"
)

func TestErrorLines(t *testing.T) {
	want := []string{
		"::error title=mqttload%3A run::the run ended before everything was measured",
		"::error title=mqttload%3A delivery::qos=1/payload=10: 3 of 199,990 messages were lost at QoS 1 (<0.01 %25)",
		"::error title=mqttload%3A gate::qos=1/payload=10: gate lost == 0 failed: the value is 3",
		"::error title=mqttload%3A gate::qos=2/payload=10: gate p99 < 5ms failed: the value does not exist",
	}
	if got := ErrorLines(partialReport()); !slices.Equal(got, want) {
		t.Errorf("got:\n%s", strings.Join(got, "\n"))
	}
	if got := ErrorLines(matrixReport()); got != nil {
		t.Errorf("a good run has %q", got)
	}
}

// TestErrorLinesStayOneCommand: GitHub reads a command at the start of a line.
func TestErrorLinesStayOneCommand(t *testing.T) {
	for _, line := range ErrorLines(spitefulReport()) {
		if strings.ContainsAny(line, "\r\n") || strings.Count(line[len("::error title=mqttload%3A gate::"):], "\x1b") != 0 {
			t.Errorf("%q", line)
		}
	}
	if got, want := commandProperty("a:b,c%\r\n"), `a%3Ab%2Cc%25\r\n`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestStepSummary(t *testing.T) {
	if s := StepSummary(matrixReport()); !strings.HasPrefix(s, "### ✅ mqttload: 6 cases\n") || !strings.Contains(s, "| qos | payload |") {
		t.Errorf("got:\n%s", s)
	}
	s := StepSummary(partialReport())
	if !strings.HasPrefix(s, "### ❌ mqttload: 4 findings in 3 cases\n\n- the run ended") || strings.Count(s, "\n- ") != 4 {
		t.Errorf("got:\n%s", s)
	}
	if s := StepSummary(spitefulReport()); strings.Contains(s, "\n- topic") || strings.Contains(s, "- <") {
		t.Errorf("a finding starts markup:\n%s", s)
	}
}

// TestStepSummaryFits: GitHub refuses more than 1 MiB.
func TestStepSummaryFits(t *testing.T) {
	r := blank()
	for range 4000 {
		c := result.Case{ID: strings.Repeat("x", 400)}
		c.Delivery.Lost = 1
		r.Cases = append(r.Cases, c)
	}
	s := StepSummary(r)
	if len(s) >= 1<<20 || !strings.Contains(s, "too long for a step summary") || !strings.Contains(s, "and 3,980 more") {
		t.Errorf("%d bytes, %q", len(s), s[:200])
	}
}
