package result

import "cmp"

// keptShare is the share of an offered rate that must have been sent for the
// rate to count as kept.
const keptShare = 0.98

// Offered is the rate that an open loop was to keep and the one that it kept,
// both over the measured time, in messages per second published.
type Offered struct {
	MessagesPerSec float64 `json:"messages_per_sec"`
	// Achieved is the rate of the messages that were due in the measured time and were
	// sent before its end; nil if nothing was measured.
	Achieved *float64 `json:"achieved_per_sec"`
}

// RateKept reports whether an open loop sent what its schedule asked for: at
// least 98 % of the offered rate, and nothing unsent. A closed loop has no
// rate to keep.
func (c *Case) RateKept() bool {
	o := c.Offered
	if o == nil {
		return true
	}
	return c.Delivery.Unsent == 0 && o.Achieved != nil && *o.Achieved >= keptShare*o.MessagesPerSec
}

// mergedOffered adds the rates of runs that ran side by side, and takes the mean of
// those that ran one after the other; nil if one has none.
func mergedOffered(parts []*Offered, side bool) *Offered {
	var sum Offered
	achieved, share := 0.0, 1.0
	if !side {
		share = 1 / float64(len(parts))
	}
	for _, o := range parts {
		if o == nil {
			return nil
		}
		sum.MessagesPerSec += share * o.MessagesPerSec
		if o.Achieved != nil {
			achieved += share * *o.Achieved
			sum.Achieved = &achieved
		}
	}
	return &sum
}

// addedLosses is of the deliveries that a and b lost; either may be nil.
func addedLosses(a, b *Losses) *Losses {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &Losses{
		First: min(a.First, b.First), Last: max(a.Last, b.Last),
		Acked: a.Acked + b.Acked, Unacked: a.Unacked + b.Unacked,
	}
}

// Losses has details of the deliveries that were lost. Numbers are those of
// messages within a flow, that is, of one publisher to one topic, from 0 over
// the whole launch.
type Losses struct {
	First int64 `json:"first"` // lowest number that some receiver did not get
	Last  int64 `json:"last"`  // highest
	// Acked is the least number of lost deliveries whose messages the broker had
	// acknowledged, Unacked the greatest number of those it had not. At QoS 0
	// both are 0.
	Acked   int64 `json:"acked"`
	Unacked int64 `json:"unacked"`
}

// StreamAccount is the account of one flow (one publisher to one topic) to one
// receiver (a subscriber, or a shared group) over the measured iterations of a
// launch.
type StreamAccount struct {
	Launch                                                               int // from 1
	Stream                                                               int // number of the flow in the launch, from 0
	Topic                                                                string
	Publisher                                                            string // client id
	Subscriber                                                           string // client id, of a shared group its first member's
	Sent                                                                 int64
	Delivered, Lost, Duplicated, Redelivered, Reordered, Corrupted, Late int64
	// FirstLost and LastLost are numbers within the flow; -1 if none was lost.
	FirstLost, LastLost int64
	// Timed counts the deliveries whose latency was recorded, end to end, and
	// MeanNS is its mean over them, in ns; 0 if there are none.
	Timed  int64
	MeanNS float64
}
