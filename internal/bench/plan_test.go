package bench

import (
	"testing"
	"time"

	"github.com/mqttload/mqttload/scenarios"
)

// TestOfferInBrief: a plan sums up the stages of a trace.
func TestOfferInBrief(t *testing.T) {
	l := scenarios.Load{Shape: scenarios.Publish, Topics: 1, Publishers: 1, TopicsPerPublisher: 1}
	for i := range 1000 {
		r := float64(i % 2 * 100)
		l.Stages = append(l.Stages, scenarios.Stage{Duration: 10 * time.Millisecond, From: r, To: r})
	}
	if got, want := offer(l), "1 publisher with a total of 0 to 100 msg/s, mean 50, in 1,000 stages over 10s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
