package load

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// inbox is one receiver: a subscriber, or the members of a shared group, which
// then have one shard. The shard's lock guards it.
type inbox struct {
	client   int // number of its first member
	shard    *shard
	filters  []string
	base     uint32                // stream number of the first of receipts
	receipts []*receipt            // by stream number; nil where it gets none of the flow
	topics   map[string][]*receipt // where messages carry no stamp
	members  atomic.Int32          // that still receive

	scratch []byte     // for the expected content
	last    *receipt   // of the previous message of this batch
	serial  uint64     // of the batch
	touched []*receipt // in this batch
	foreign int64
	wills   map[string]bool // topics and payloads of this run's wills
	// tally is set where there are no flows: then the inbox only counts
	// messages and their bytes.
	tally           bool
	expected        *expectation // of a tally, which does not know the publishers
	violations      violations
	received, bytes int64
	enough          *enough // nil without a limit
}

// enough is how many messages all listeners of a launch may still receive.
type enough struct {
	left atomic.Int64
	done chan struct{} // closed with the last
}

// allow reports whether one more message counts.
func (e *enough) allow() bool {
	left := e.left.Add(-1)
	if left == 0 {
		close(e.done)
	}
	return left >= 0
}

// deliver accounts for one message that came at now. Nearly every message has
// the next number of the flow of the previous one: these take the short path.
func (in *inbox) deliver(m *packet.Publish, now int64) {
	if r := in.last; r != nil && len(m.Payload) == len(r.content) && binary.BigEndian.Uint64(m.Payload) == r.next &&
		r.ledger.next < r.bound && bytes.Equal(m.Topic, r.flow.topic) && bytes.Equal(m.Payload[scenarios.StampSize:], r.content[scenarios.StampSize:]) {
		l := &r.ledger
		seq := l.next
		l.next++
		l.delivered++
		l.bytes += int64(len(m.Payload))
		r.next = r.flow.stamp.of(l.next)
		if r.ring == nil {
			r.flow.pub.pacing.time(r, r.flow.place(seq), now)
			return
		}
		in.shard.e2e.add(now - r.ring[r.flow.place(seq)&uint64(len(r.ring)-1)])
		return
	}
	in.deliverAny(m, now)
}

// deliverAny is deliver for all other messages.
func (in *inbox) deliverAny(m *packet.Publish, now int64) {
	switch {
	case in.topics != nil:
		in.count(m)
		return
	case in.tally:
		if in.enough != nil && !in.enough.allow() {
			return
		}
		in.checkProperties(in.expected, m)
		in.received++
		in.bytes += int64(len(m.Payload))
		return
	case len(m.Payload) < scenarios.StampSize:
		in.countUnexpected(m)
		return
	}
	v := binary.BigEndian.Uint64(m.Payload)
	i := int(streamOf(v)) - int(in.base)
	if uint(i) >= uint(len(in.receipts)) || in.receipts[i] == nil {
		in.countUnexpected(m)
		return
	}
	r := in.receipts[i]
	if in.last != r {
		in.creditLatencies()
	}
	if !r.accept(m, v, now) {
		in.countUnexpected(m)
		return
	}
	if r.batch != in.serial {
		in.touch(r)
	}
	r.expect()
	in.last = r
}

// countUnexpected accounts for a message that belongs to no flow: a will of
// this run, or a message from elsewhere.
func (in *inbox) countUnexpected(m *packet.Publish) {
	if in.wills == nil || !in.wills[willKey(string(m.Topic), m.Payload)] {
		in.foreign++
	}
}

func willKey(topic string, payload []byte) string { return topic + "\x00" + string(payload) }

// expect prepares the short path for the next number, which must have been
// sent.
func (r *receipt) expect() {
	r.bound = 0
	if l := &r.ledger; !l.gaps && l.next >= l.measured && r.flow.varied == nil && r.flow.pub.expected == nil {
		r.bound = r.flow.sentOf(r.flow.pub.sent.Load())
		r.next = r.flow.stamp.of(l.next)
	}
}

func (in *inbox) touch(r *receipt) {
	r.batch = in.serial
	in.touched = append(in.touched, r)
}

// accept accounts for a message with the stamp v. It reports false where the
// message does not belong to the flow after all.
func (r *receipt) accept(m *packet.Publish, v uint64, now int64) bool {
	f, l := r.flow, &r.ledger
	p := f.pub
	if !bytes.Equal(m.Topic, f.topic) {
		return false
	}
	seq, ours := f.stamp.parse(v, l.next)
	// A number that was never sent is not this run's, whatever its stamp: messages
	// on their way are at most a window, or a chunk of an open loop, ahead.
	if !ours || f.place(seq) >= p.sent.Load()+p.ahead() {
		return false
	}
	r.in.checkProperties(p.expected, m)
	warm := seq < l.measured
	if warm {
		l.swap()
	}
	if !r.intact(m.Payload, seq) {
		l.corrupted++
	}
	before := l.duplicated
	first := l.arrive(seq)
	if first {
		l.bytes += int64(len(m.Payload))
	}
	switch {
	case first && !warm:
		r.time(seq, now)
	case m.Dup && l.duplicated != before:
		l.flagged++
	}
	if warm {
		l.swap()
	}
	return true
}

// time records the latency of message seq, which came at now.
func (r *receipt) time(seq uint64, now int64) {
	p := r.flow.pub
	place := r.flow.place(seq)
	if p.pacing != nil {
		p.pacing.time(r, place, now)
		return
	}
	if (r.ledger.next-seq)*uint64(len(p.flows)) > uint64(len(p.sentAt))/2 {
		r.ledger.untimed++
		return
	}
	r.in.shard.e2e.add(now - p.sentAt[place&uint64(len(p.sentAt)-1)])
}

// count accounts for a message without a stamp: it counts for the first of the
// topic's flows that still lacks messages.
func (in *inbox) count(m *packet.Publish) {
	rs := in.topics[string(m.Topic)]
	if len(rs) == 0 || !rs[0].flow.mayBe(m) || m.Retain && !slices.ContainsFunc(rs, (*receipt).begun) {
		in.countUnexpected(m)
		return
	}
	in.checkProperties(rs[0].flow.pub.expected, m)
	for _, r := range rs {
		l := &r.ledger
		warm := l.next < l.measured
		if warm {
			l.swap()
		}
		ok := l.count(r.flow.sentOf(r.flow.pub.sent.Load()), len(m.Payload))
		if warm {
			l.swap()
		}
		if ok {
			if r.batch != in.serial {
				in.touch(r)
			}
			return
		}
	}
	rs[0].ledger.duplicated++
}

// begun reports whether any message of the flow has been sent. Earlier messages
// are retained ones of earlier runs, whatever their RETAIN flag means.
func (r *receipt) begun() bool { return r.flow.pub.sent.Load() > r.flow.index }

// mayBe reports whether m, which carries no stamp, may be a message of the
// flow: neither one that the broker retained before, nor the one by which a run
// clears what it has retained.
func (f *flow) mayBe(m *packet.Publish) bool {
	fits := len(m.Payload) == len(f.pub.payload)
	if f.varied != nil {
		fits = len(m.Payload) > 0 || !m.Retain
	}
	return fits && (!m.Retain || f.pub.expected.mayRetain())
}

// creditLatencies adds the latencies recorded since its last call to their
// receipt.
func (in *inbox) creditLatencies() {
	if r := in.last; r != nil {
		t := in.shard.e2e.drainSum()
		r.ledger.timed += t.n
		r.ledger.latencyNS += float64(t.ns)
	}
}

// publishProgress publishes what the batch has changed, so that the publishers
// can continue. The lock is held.
func (in *inbox) publishProgress(now int64) {
	in.creditLatencies()
	for _, r := range in.touched {
		l := &r.ledger
		n := l.delivered + l.warm.delivered
		r.delivered.Store(n)
		r.volume.Store(l.bytes + l.warm.bytes)
		if l.unordered {
			r.high.Store(r.flow.first + uint64(n) + r.released)
		} else {
			r.high.Store(l.next)
		}
		r.flow.pub.lastAt.Store(now)
	}
}

// begin starts an iteration.
func (in *inbox) begin() {
	in.shard.mu.Lock()
	in.foreign = 0 // the messages of a listener count from its SUBACK on
	in.shard.mu.Unlock()
}

// account adds to d and it the messages that belong to no flow.
func (in *inbox) account(d *result.Delivery, it *result.Iteration) {
	in.shard.mu.Lock()
	defer in.shard.mu.Unlock()
	d.Foreign += in.foreign
	d.Expected += in.received
	d.Received += in.received
	d.Delivered += in.received
	it.Received += in.received
	it.Requests += in.received
	it.Bytes += in.bytes
}

// lose ends the receipts when the last connection of the receiver is lost, and
// reports whether this was the last.
func (in *inbox) lose() bool {
	if in.members.Add(-1) > 0 {
		return false
	}
	in.shard.mu.Lock()
	defer in.shard.mu.Unlock()
	for _, r := range in.receipts {
		if r != nil {
			r.high.Store(gone)
		}
	}
	return true
}

// stopUnheard ends the publishers of a closed loop that have lost their last
// receiver; an open loop publishes to the end.
func (in *inbox) stopUnheard() {
	for _, r := range in.receipts {
		if r == nil {
			continue
		}
		p := r.flow.pub
		if p.pacing == nil && p.lostReceivers() {
			p.dead.Store(true)
		}
		p.pump()
	}
}
