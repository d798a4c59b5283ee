package load

import (
	"time"

	"github.com/mqttload/mqttload/result"
)

// rate is what the schedules of a case asked for in the measured time, and how
// well they were kept. It is zero in a closed loop.
type rate struct {
	offered float64 // messages per second that the schedule asks for
	inTime  int64   // messages due in the measured time that were sent before its end
	lasted  int64   // the measured time of the schedules, ns
	held    heldTotal
}

// offer notes a schedule whose first warm messages, those of the warm-up, do
// not count.
func (r *rate) offer(s *schedule, warm uint64, warmTime time.Duration) {
	r.offered = float64(s.total-warm) / (time.Duration(s.duration) - warmTime).Seconds()
}

// result is nil for a closed loop and before anything was measured.
func (r *rate) result() *result.Offered {
	if r.offered <= 0 {
		return nil
	}
	o := &result.Offered{MessagesPerSec: r.offered}
	if r.lasted > 0 {
		achieved := float64(r.inTime) * 1e9 / float64(r.lasted)
		o.Achieved = &achieved
	}
	return o
}

// heldTotal is how long publishers could not send due messages, out of all the
// time that they had.
type heldTotal struct{ window, buffer, time int64 }

func (t *heldTotal) add(h held, time int64) {
	t.window += h.window
	t.buffer += h.buffer
	t.time += time
}

func (h heldTotal) shares() (window, buffer float64) {
	if h.time == 0 {
		return 0, 0
	}
	return float64(h.window) / float64(h.time), float64(h.buffer) / float64(h.time)
}
