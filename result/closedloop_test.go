package result

import (
	"slices"
	"strings"
	"testing"
)

// latencies is a histogram of so many values each.
func latencies(of map[int64]int64) *Histogram {
	h := NewHDR()
	for v, n := range of {
		Record(h, v, n)
	}
	return NewHistogram(h)
}

const ms = int64(1e6)

// stalledLoop is ten clients, window 1, 1 ms a message, of which each meets one
// stall of 2 s in a minute (KAT-6).
func stalledLoop() Case {
	c := steady(1, 60e9, 580_010)
	c.Latency.EndToEnd = latencies(map[int64]int64{ms: 580_000, 2001 * ms: 10})
	return c
}

func TestClosedLoopStall(t *testing.T) {
	// 580,010 messages in 60 s are 9,667 a second: in 2.001 s, about 19,300.
	want := "a closed loop under-weights stalls: 10 of 580,010 latencies are above 100.0 ms, up to 2.002 s; " +
		"on a schedule of the same rate about 19,300 messages would have been late in the longest stall alone"
	if got := message(t, Analyze(stalledLoop()), CodeClosedLoopStall); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	one := stalledLoop() // of ten in flight one was held up
	one.Latency.EndToEnd = latencies(map[int64]int64{ms: 599_000, 1000 * ms: 1})
	if got := message(t, Analyze(one), CodeClosedLoopStall); !strings.Contains(got, ": 1 of 599,001 ") || !strings.Contains(got, "about 998 messages would") {
		t.Error(got)
	}
	acks := stalledLoop()
	acks.Latency.Ack, acks.Latency.EndToEnd, acks.Request = acks.Latency.EndToEnd, nil, "one message acknowledged"
	message(t, Analyze(acks), CodeClosedLoopStall)
}

func TestClosedLoopStallIsNotNoisy(t *testing.T) {
	for name, change := range map[string]func(*Case){
		"open loop":          func(c *Case) { c.Offered = &Offered{MessagesPerSec: 9667} },
		"older open loop":    func(c *Case) { c.Latency.Service = c.Latency.EndToEnd },
		"offline queue":      func(c *Case) { c.Request = "one message delivered that had waited" },
		"below 100 ms":       func(c *Case) { c.Latency.EndToEnd = latencies(map[int64]int64{ms / 10: 580_000, 99 * ms: 10}) },
		"slow all the time":  func(c *Case) { c.Latency.EndToEnd = latencies(map[int64]int64{30 * ms: 580_000, 2001 * ms: 10}) },
		"all of it was late": func(c *Case) { c.Latency.EndToEnd = latencies(map[int64]int64{ms: 30_000, 2001 * ms: 20_000}) },
		"no messages":        func(c *Case) { c.Latency.EndToEnd = nil },
		"no buckets":         func(c *Case) { c.Latency.EndToEnd.HDR = "" },
	} {
		c := stalledLoop()
		change(&c)
		if got := codes(Analyze(c)); slices.Contains(got, CodeClosedLoopStall) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
