package load

import (
	"math"
	"sync/atomic"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/result"
)

// flow is the messages of one publisher to one topic. A publisher takes its
// flows in turn, so that its k-th message is number k/len(flows) of flow
// k%len(flows).
type flow struct {
	pub      *publisher
	index    uint64 // among the publisher's flows
	stride   uint64 // how many there are of them
	number   uint32 // in stamps
	topic    []byte
	stamp    stamp
	message  *mqtt.Aliased // of the publisher's present connection
	varied   *varied       // nil where all messages are the same
	receipts []*receipt    // of all receivers of its messages

	// By the goroutine that pumps.
	first uint64 // the iteration's first sequence number
	seq   uint64 // next to send
	low   uint64 // what reached has returned
	done  int    // receipts, from the first, that have all of the iteration

	// slowest is a receipt that no other is behind: until it advances, the window
	// need not look at the rest.
	slowest atomic.Int32
}

// receipt is what one receiver, a subscriber or a shared group, has received of
// one flow. The lock of the receiver's shard guards all but the atomics.
type receipt struct {
	flow   *flow
	in     *inbox
	index  int32 // among the flow's receipts
	ledger ledger
	batch  uint64 // of the inbox, when it was last touched
	// For the short path of deliver.
	next    uint64  // stamp of the ledger's next number
	bound   uint64  // numbers below have been sent
	content []byte  // of every message
	ring    []int64 // send times by place, nil in an open loop
	// released counts messages of this iteration that no longer fill a window,
	// though they have not come; only of a shared group, which has no order.
	released uint64
	// total sums up the measured iterations.
	total receiptTotal

	high      atomic.Uint64 // messages below count as received for the window
	delivered atomic.Int64  // in this iteration
	volume    atomic.Int64  // payload bytes of them
}

// receiptTotal sums up the measured iterations of a receipt.
type receiptTotal struct {
	sent int64
	counts
	missed span
}

// gone is the high of a receipt whose receiver has lost its connections: it no
// longer fills a window.
const gone = math.MaxUint64

// sized reports whether the messages differ in size.
func (f *flow) sized() bool { return f.varied != nil && f.varied.sized }

func (r *receipt) dead() bool { return r.high.Load() == gone }

// sentOf is how many messages of the flow are among the publisher's first k.
func (f *flow) sentOf(k uint64) uint64 {
	if f.stride == 1 {
		return k
	}
	return (k + f.stride - 1 - f.index) / f.stride
}

// place is the number among the publisher's messages of the flow's number seq.
func (f *flow) place(seq uint64) uint64 { return seq*f.stride + f.index }

// reached is one above the highest number that every receiver has, as far as
// the window is concerned. Until the slowest receipt advances it looks at no
// other, and then it first looks for another that is as slow: it visits all
// receipts once per step of all of them.
func (f *flow) reached() uint64 {
	if len(f.receipts) == 1 {
		return f.receipts[0].high.Load()
	}
	for {
		at := f.slowest.Load()
		if f.receipts[at].high.Load() == f.low {
			return f.low
		}
		at, low := f.findSlowest(at)
		// A receiver that advances from here on sees that it is the slowest, and pumps.
		f.slowest.Store(at)
		if f.receipts[at].high.Load() == low {
			f.low = low
			return low
		}
	}
}

func (f *flow) findSlowest(from int32) (at int32, low uint64) {
	n := int32(len(f.receipts))
	at, low = from, gone
	for i := range n {
		j := (from + i) % n
		if h := f.receipts[j].high.Load(); h < low {
			if at, low = j, h; h <= f.low {
				break
			}
		}
	}
	return at, low
}

// allReceived reports whether every remaining receiver has all messages of the
// iteration.
func (f *flow) allReceived() bool {
	n := int64(f.seq - f.first)
	for ; f.done < len(f.receipts); f.done++ {
		if r := f.receipts[f.done]; r.delivered.Load() < n && !r.dead() {
			return false
		}
	}
	return true
}

// completed is how many of the iteration's messages every remaining receiver
// has, or the least that any receiver had where none remains.
func (f *flow) completed() int64 {
	if len(f.receipts) == 0 {
		return int64(f.sentOf(f.pub.sent.Load()) - f.first)
	}
	least, leastOfAll := int64(math.MaxInt64), int64(math.MaxInt64)
	for _, r := range f.receipts {
		d := r.delivered.Load()
		leastOfAll = min(leastOfAll, d)
		if !r.dead() {
			least = min(least, d)
		}
	}
	if least == math.MaxInt64 {
		return leastOfAll
	}
	return least
}

// begin prepares the flow and its receipts for an iteration.
func (f *flow) begin() {
	f.first, f.low, f.done = f.seq, f.seq, 0
	for _, r := range f.receipts {
		r.in.shard.mu.Lock()
		r.delivered.Store(0)
		r.released = 0
		r.volume.Store(0)
		if !r.dead() {
			r.high.Store(f.seq)
		}
		r.ledger.begin(f.seq)
		r.ledger.measured = f.firstMeasured()
		r.bound = 0
		r.in.shard.mu.Unlock()
	}
}

// account adds the iteration that has ended to d and it; measured says whether
// it counts.
func (f *flow) account(d *result.Delivery, it *result.Iteration, measured bool) (untimed int64) {
	sent := int64(f.seq - max(f.first, min(f.seq, f.firstMeasured())))
	for _, r := range f.receipts {
		r.in.shard.mu.Lock()
		l := &r.ledger
		l.add(d, sent)
		it.Received += l.delivered
		it.Lost += sent - l.delivered
		it.Bytes += l.bytes
		untimed += l.untimed
		if measured {
			r.total.add(&l.counts, sent, l.missed(f.seq))
		}
		r.in.shard.mu.Unlock()
	}
	return untimed
}

// firstMeasured is the first number that counts: 0 in a closed loop.
func (f *flow) firstMeasured() uint64 { return f.sentOf(f.pub.measured) }

func (t *receiptTotal) add(c *counts, sent int64, missed span) {
	t.sent += sent
	t.delivered += c.delivered
	t.duplicated += c.duplicated
	t.flagged += c.flagged
	t.reordered += c.reordered
	t.corrupted += c.corrupted
	t.late += c.late
	t.untimed += c.untimed
	t.timed += c.timed
	t.latencyNS += c.latencyNS
	if missed.any {
		t.missed.add(missed.first)
		t.missed.add(missed.last)
	}
}
