package load

import (
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/pace"
	"github.com/mqttload/mqttload/scenarios"
)

// TestPacerSleepsOverTheEnd: a pacer that the system has let sleep beyond the
// end of the schedule tells what became due in its sleep, though it is stopped.
func TestPacerSleepsOverTheEnd(t *testing.T) {
	s, err := newSchedule([]scenarios.Stage{{From: 1000, To: 1000, Duration: time.Second}}, scenarios.Constant, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := pace.Sleeper()
	o := &pacing{schedule: s, publishers: 1}
	pc := &pacer{pacing: o, waiter: w, publishers: []*publisher{{}}}
	o.pacers = []*pacer{pc}
	now := int64(time.Second / 2)
	o.clock = func() int64 {
		if pc.due.Load() < 500 {
			return now
		}
		w.Stop()
		defer func() { now = s.duration }() // after the next look
		return now
	}
	pc.run()
	if due := pc.due.Load(); due != s.total {
		t.Errorf("%d of %d messages are due", due, s.total)
	}
}
