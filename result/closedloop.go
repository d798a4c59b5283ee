package result

import (
	"fmt"
	"math"
)

const (
	// A latency counts as one of a stall from so many ns on, and so many medians.
	loopStallNS      = 100e6
	loopStallMedians = 100
	// loopStallWeight is how many times the slow messages that there are a stall
	// must have been worth before it is called under-weighted.
	loopStallWeight = 2
)

// closedLoopStall finds the stalls that a closed loop hides. While the broker
// stands still only what is in flight waits, a few messages of very many, where
// clients who send on time would have had one late message for each that was due
// (G. Tene's coordinated omission). It says how many that were.
func closedLoopStall(c Case) []Warning {
	h := closedLoopLatency(&c)
	if h == nil || float64(h.MaxNS) < slowLimit(h) {
		return nil
	}
	slow, elapsed := slowOf(h), 0.0
	for _, it := range actual(c.Iterations) {
		elapsed += float64(it.ElapsedNS)
	}
	if slow == 0 || elapsed <= 0 {
		return nil
	}
	late := missedBy(h, slow, elapsed)
	if late < loopStallWeight*float64(slow) {
		return nil
	}
	return []Warning{{
		Code: CodeClosedLoopStall,
		Message: fmt.Sprintf("closed loop: stalls are under-weighted: %s of %s latencies are beyond %s, up to %s; sent at this rate on time, about %s would have been late in the longest alone",
			FormatInt(slow), FormatInt(h.Count), FormatNS(slowLimit(h)), FormatNS(float64(h.MaxNS)), FormatInt(int64(threeDigits(late)))),
		Hint: "while the broker stands still a closed loop waits with it: measure latency with --rate, which sends on time",
	}}
}

// closedLoopLatency is the latency of the messages of a closed loop: end to end,
// or of the acknowledgement where that is all there is; nil where c is none.
func closedLoopLatency(c *Case) *Histogram {
	switch l := &c.Latency; {
	case c.Offered != nil || l.Service != nil:
		return nil // it has a schedule
	case l.EndToEnd == nil:
		return l.Ack
	case c.Request != "":
		return nil // what waits there is not a window
	default:
		return l.EndToEnd
	}
}

// slowLimit is from where on a latency is one of a stall.
func slowLimit(h *Histogram) float64 { return max(loopStallNS, loopStallMedians*float64(h.P50NS)) }

// slowOf counts the values of h that are of a stall; 0 where h holds no buckets.
func slowOf(h *Histogram) (n int64) {
	full, err := h.Decode()
	if err != nil {
		return 0
	}
	for _, b := range full.Distribution() {
		if float64(b.To) >= slowLimit(h) {
			n += b.Count
		}
	}
	return n
}

// missedBy is how many messages were due during the longest latency at the
// case's own rate, from those of the in-flight messages that it held up. What is
// in flight on average follows from Little's law: rate times mean latency.
func missedBy(h *Histogram, slow int64, elapsedNS float64) float64 {
	rate := float64(h.Count) / elapsedNS
	inFlight := max(rate*h.MeanNS, 1)
	return rate * float64(h.MaxNS) * min(1, float64(slow)/inFlight)
}

// threeDigits rounds x, 1 or more, to as many significant digits as a histogram has.
func threeDigits(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x))-significantDigits+1)
	return math.Round(x/unit) * unit
}
