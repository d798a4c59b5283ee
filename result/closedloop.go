package result

import (
	"fmt"
	"math"
)

const (
	// A latency of at least so many ns, and so many medians, belongs to a stall.
	loopStallNS      = 100e6
	loopStallMedians = 100
	// loopStallWeight is how many times as many messages as were slow an open loop
	// would have had late, for the stall to be called under-weighted.
	loopStallWeight = 2
)

// closedLoopStall finds the stalls that a closed loop hides. While the broker
// stalls, only the messages in flight wait, a few of very many. Clients that send on
// schedule would have had one late message for each that was due (G. Tene's coordinated
// omission): the warning says how many.
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
		Message: fmt.Sprintf("a closed loop under-weights stalls: %s of %s latencies are above %s, up to %s; on a schedule of the same rate about %s messages would have been late in the longest stall alone",
			FormatInt(slow), FormatInt(h.Count), FormatNS(slowLimit(h)), FormatNS(float64(h.MaxNS)), FormatInt(int64(threeDigits(late)))),
		Hint: "a closed loop sends nothing while the broker stalls: measure latency with --rate, which sends on schedule",
	}}
}

// closedLoopLatency is the latency of the messages of a closed loop: end to end,
// or of the acknowledgement if that is all there is; nil if c is not a closed loop.
func closedLoopLatency(c *Case) *Histogram {
	switch l := &c.Latency; {
	case c.Offered != nil || l.Service != nil:
		return nil // it has a schedule
	case l.EndToEnd == nil:
		return l.Ack
	case c.Request != "":
		return nil // the messages of a request do not wait in a window
	default:
		return l.EndToEnd
	}
}

// slowLimit is the least latency, in ns, that belongs to a stall.
func slowLimit(h *Histogram) float64 { return max(loopStallNS, loopStallMedians*float64(h.P50NS)) }

// slowOf counts the values of h that belong to a stall; 0 if h has no buckets.
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

// missedBy estimates how many messages would have been due during the longest latency
// at the case's own rate, for the share of the in-flight messages that it delayed. The
// mean number in flight is rate times mean latency (Little's law).
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
