package load

import (
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// TestBottleneck: each kind is named with the figure that says so.
func TestBottleneck(t *testing.T) {
	cores := int64(runtime.GOMAXPROCS(0))
	rate := 1000.0
	kept := &result.Offered{MessagesPerSec: rate, Achieved: &rate}
	half := rate / 2
	missed := &result.Offered{MessagesPerSec: rate, Achieved: &half}
	at := func(least, median, p99 time.Duration) *result.Histogram {
		return &result.Histogram{Count: 1, MinNS: int64(least), P50NS: int64(median), P99NS: int64(p99)}
	}
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		cpu     int64 // ns in a second
		offered *result.Offered
		latency result.Latency
		held    heldTotal
		pause   time.Duration
		qos     byte
		subs    int
		kind    string
		detail  string
	}{
		"own CPU":      {cpu: cores * 950e6, latency: result.Latency{EndToEnd: at(1, 1, 1)}, subs: 1, kind: "generator", detail: "CPU 95 % of"},
		"window":       {latency: result.Latency{EndToEnd: at(10*ms, 11*ms, 12*ms)}, subs: 1, kind: "window", detail: "100 in flight, the median latency is 1.1 times the least"},
		"queueing":     {latency: result.Latency{EndToEnd: at(ms, 5*ms, 9*ms)}, subs: 1, kind: "broker", detail: "5.0 times the least"},
		"acks queue":   {latency: result.Latency{Ack: at(ms, 5*ms, 9*ms)}, qos: 1, kind: "broker", detail: "the median acknowledgement is 5.0 times"},
		"written":      {kind: "network", detail: "as fast as the connections took them"},
		"target met":   {offered: kept, latency: result.Latency{SendLag: at(1, 1, ms/2)}, subs: 1, kind: "target met", detail: "1,000.0 of 1,000.0 msg/s sent, send lag p99 500"},
		"late sending": {offered: kept, latency: result.Latency{SendLag: at(1, 1, 30*ms)}, pause: 20 * ms, subs: 1, kind: "generator", detail: "send lag p99 30"},
		"full window": {offered: missed, latency: result.Latency{SendLag: at(1, 1, 30*ms), Service: at(10*ms, 10*ms, 10*ms)},
			held: heldTotal{window: 30, time: 100}, qos: 1, subs: 1, kind: "window", detail: "100 in flight: full 30 % of the time"},
		"slow broker": {offered: missed, latency: result.Latency{SendLag: at(1, 1, 30*ms), Service: at(ms, 100*ms, 100*ms)},
			held: heldTotal{window: 99, time: 100}, qos: 1, subs: 1, kind: "broker", detail: "was full 99 % of the time, and the median latency is 100.0 times"},
		"full buffer": {offered: missed, latency: result.Latency{SendLag: at(1, 1, 30*ms)}, held: heldTotal{buffer: 40, time: 100}, subs: 1,
			kind: "network", detail: "the write buffer was full 40 % of the time"},
		"gone": {offered: missed, latency: result.Latency{SendLag: at(1, 1, ms/2)}, subs: 1, kind: "broker", detail: "connections lost"},
	} {
		c := newCaseRun(New(Config{RunID: "r1"}), 0, &scenarios.Case{QoS: tt.qos, Load: scenarios.Load{Shape: scenarios.Pairs,
			Topics: 1, Publishers: 1, Subscribers: tt.subs, TopicsPerPublisher: 1, TopicsPerSubscriber: 1,
		}})
		rc := c.rec
		rc.busy, rc.connections.window, rc.used.cpu.UserNS, rc.rate.held, rc.used.longestPause = time.Second, 100, tt.cpu, tt.held, int64(tt.pause)
		b := rc.bottleneck(&result.Case{Offered: tt.offered, Latency: tt.latency})
		if b == nil || b.Kind != tt.kind || !strings.Contains(b.Detail, tt.detail) {
			t.Errorf("%s: %+v", name, b)
		}
		if tt.pause > 0 && !strings.Contains(b.Detail, "longest GC pause 20") {
			t.Errorf("%s: no word of the pause: %+v", name, b)
		}
	}
}

// TestPauses: a garbage collection leaves a pause behind, and none leaves none.
func TestPauses(t *testing.T) {
	before := gcPauses()
	if before.Counts == nil {
		t.Fatalf("%s is not a histogram", pauseMetric)
	}
	runtime.GC()
	after := gcPauses()
	if longestSince(after, after) != 0 {
		t.Error("a pause in no time")
	}
	n := func(h *metrics.Float64Histogram) (n uint64) {
		for _, c := range h.Counts {
			n += c
		}
		return n
	}
	if n(after) <= n(before) || longestSince(before, after) <= 0 {
		t.Errorf("%d pauses before, %d after a collection, the longest %d ns", n(before), n(after), longestSince(before, after))
	}
}
