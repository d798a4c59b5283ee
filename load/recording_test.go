package load

import (
	"context"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/result"
)

// TestRecording: every message that is recorded is in ledger and histograms,
// with the latencies that its times make; and one that is not is told.
func TestRecording(t *testing.T) {
	for _, o := range []recordingSetup{
		{Payload: 8, Batch: 1}, {Payload: 10, Batch: 1000}, {Payload: 200, Batch: 7, Scattered: true}, {Payload: 10, Batch: 100, Open: true},
	} {
		d, err := newDriver(o)
		if err != nil {
			t.Fatal(err)
		}
		defer d.stop()
		const batches = 5
		d.run(batches, true)
		d.run(batches, false)
		if err := d.check(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
		n := int64(batches * o.Batch)
		if s := d.sub.shard; o.Open {
			// Sent and there half a batch's time apart; the last message is due
			// when it is there, the first a whole batch before.
			d.pub.shard.flush()
			service, lag := s.service.hist, d.pub.shard.lag.hist
			if service.TotalCount() != n || lag.TotalCount() != n || service.Max()/1000 != 50 || s.e2e.hist.Max()/1000 != 100 {
				t.Errorf("open: %d service times up to %d, %d lags, end to end up to %d", service.TotalCount(), service.Max(), lag.TotalCount(), s.e2e.hist.Max())
			}
		}
		if o.Scattered && d.sub.shard.e2e.hist.Max()-d.sub.shard.e2e.hist.Min() < 5*recordingInterval {
			t.Errorf("latencies of one batch lie within %d ns", d.sub.shard.e2e.hist.Max()-d.sub.shard.e2e.hist.Min())
		}
		d.pub.seq++ // one more than has come
		if err := d.check(); err == nil || !strings.Contains(err.Error(), "delivered") {
			t.Errorf("a message that has not come: %v", err)
		}
	}
	if _, err := recordingCost(recordingSetup{Payload: 10, Batch: 10}, 1000); err != nil {
		t.Error(err)
	}
}

// TestNobodyWatches: an observer without funcs costs nothing.
func TestNobodyWatches(t *testing.T) {
	c := newCaseRun(New(Config{RunID: "r"}), 0, askingCase())
	ctx, none := context.Background(), latencies{}
	if n := testing.AllocsPerRun(100, func() {
		_ = c.enter(ctx, Publishing, 2)
		c.rec.tell(result.Tick{}, &none)
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
