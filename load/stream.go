package load

import (
	"bytes"
	"runtime"
	"sync/atomic"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
)

// stream is one topic with its publisher and its subscriber. Publishing is
// driven from three sides: acknowledgements (the publisher's reader),
// deliveries (the subscriber's reader) and room in the out buffer. Each calls
// pump; whoever is first works, the others leave it a note, nobody waits.
type stream struct {
	topic   []byte
	stamp   stamp
	stamped bool
	payload []byte
	clock   func() int64
	window  uint64
	qos     byte

	client *mqtt.Client // the publisher's
	tmpl   *packet.Template
	fillFn func(p []byte)

	// By the goroutine that pumps.
	state atomic.Int32 // pumpIdle, pumpBusy, pumpAgain
	it    *iteration   // nil between iterations
	first uint64       // the iteration's first sequence number
	seq   uint64       // next to send
	limit uint64       // the iteration sends up to here
	until int64        // or, when not 0, stops at this time

	// sentAt is a ring of send times by sequence number. The subscriber reads
	// what the publisher wrote before the message went out; a slot is written
	// again only when no delivery that looks at it is in the window any more.
	sentAt []int64

	// Told by the readers, of this iteration.
	began         atomic.Int64 // when it began; acknowledgements of what is older are ignored
	acked, nacked atomic.Int64
	delivered     atomic.Int64
	high          atomic.Uint64 // one above the highest delivered
	lastAt        atomic.Int64  // time of the last delivery or acknowledgement
	sent          atomic.Uint64 // seq, for others to read
	halt          atomic.Bool   // send no more
	dead          atomic.Bool   // a connection of the stream has ended

	// Under the subscriber's shard.
	ledger   ledger
	subShard *shard
}

const (
	pumpIdle = iota
	pumpBusy
	pumpAgain
)

func newStream(c *caseRun, tag uint64, index int, topic string) *stream {
	s := &stream{
		topic: []byte(topic), stamp: newStamp(tag, uint32(index)),
		payload: c.payload, stamped: len(c.payload) >= stampSize,
		clock: c.x.clock, window: uint64(c.Load.Inflight), qos: c.QoS,
		ledger: newLedger(c.Load.Inflight),
	}
	ring := 1
	for ring < 2*c.Load.Inflight {
		ring *= 2
	}
	s.sentAt = make([]int64, ring)
	s.fillFn = s.fill
	return s
}

// fill stamps one copy of the template in the out buffer.
func (s *stream) fill(p []byte) {
	if s.stamped {
		s.stamp.put(p, s.seq)
		s.seq++
		return
	}
	s.seq++
	// A message without a stamp is known only by its turn: it must be counted
	// as sent before it can come back.
	s.sent.Store(s.seq)
}

// pump sends what may be sent now.
func (s *stream) pump() {
	for !s.state.CompareAndSwap(pumpIdle, pumpBusy) {
		if s.state.CompareAndSwap(pumpBusy, pumpAgain) || s.state.Load() == pumpAgain {
			return
		}
	}
	for {
		s.step()
		if s.state.CompareAndSwap(pumpBusy, pumpIdle) {
			return
		}
		s.state.Store(pumpBusy)
	}
}

// hold keeps everybody from pumping until release.
func (s *stream) hold() {
	for !s.state.CompareAndSwap(pumpIdle, pumpBusy) {
		runtime.Gosched()
	}
}

func (s *stream) release() { s.state.Store(pumpIdle) }

func (s *stream) step() {
	if s.it == nil {
		return
	}
	if n := s.allowed(); n > 0 {
		s.send(n)
	}
	s.checkEnd()
}

// allowed is how many messages the window and the iteration leave to send.
func (s *stream) allowed() int {
	if s.seq < s.limit && (s.halt.Load() || s.dead.Load()) {
		s.limit = s.seq
	}
	// What was skipped by a later delivery does not hold the window: on an
	// ordered stream it will not come, and if it does it is counted.
	out := s.seq - min(s.seq, s.high.Load())
	if out >= s.window || s.seq >= s.limit {
		return 0
	}
	return int(min(s.window-out, s.limit-s.seq))
}

func (s *stream) send(n int) {
	now := s.clock()
	if s.until != 0 && now >= s.until && s.seq > s.first {
		s.limit = s.seq
		return
	}
	mask := uint64(len(s.sentAt) - 1)
	for i := range uint64(n) {
		s.sentAt[(s.seq+i)&mask] = now
	}
	_, err := s.client.PublishN(s.tmpl, n, now, s.fillFn)
	s.sent.Store(s.seq)
	if err == nil {
		err = s.client.Flush()
	}
	if err != nil {
		s.dead.Store(true)
		s.limit = s.seq
	}
}

// checkEnd ends the iteration for this stream once everything sent has been
// delivered and acknowledged, or cannot be any more.
func (s *stream) checkEnd() {
	if s.seq < s.limit {
		return
	}
	n := int64(s.seq - s.first)
	settled := s.delivered.Load() >= n && (s.qos == 0 || s.acked.Load()+s.nacked.Load() >= n)
	if settled || s.dead.Load() {
		it := s.it
		s.it = nil
		it.streamEnded()
	}
}

// begin readies the stream for an iteration of so many messages, or until a
// time. The first pump starts it.
func (s *stream) begin(it *iteration, messages int64, until int64) {
	s.hold()
	s.subShard.mu.Lock()
	s.acked.Store(0)
	s.nacked.Store(0)
	s.delivered.Store(0)
	s.high.Store(s.seq)
	s.lastAt.Store(it.start)
	s.began.Store(it.start)
	s.ledger.begin(s.seq)
	s.it, s.first, s.until, s.limit = it, s.seq, until, s.seq+uint64(messages)
	s.subShard.mu.Unlock()
	s.release()
}

// giveUp ends the iteration whatever is still outstanding.
func (s *stream) giveUp() {
	s.hold()
	s.it, s.limit = nil, s.seq
	s.release()
}

// account adds the iteration that has ended to d and it.
func (s *stream) account(d *result.Delivery, r *result.Iteration) (untimed int64) {
	s.subShard.mu.Lock()
	defer s.subShard.mu.Unlock()
	sent := int64(s.seq - s.first)
	acked := s.acked.Load()
	d.Sent += sent
	d.Acked += acked
	d.Nacked += s.nacked.Load()
	s.ledger.add(d, sent)
	r.Sent += sent
	r.Acked += acked
	r.Received += s.ledger.delivered
	r.Lost += sent - s.ledger.delivered
	r.Bytes += s.ledger.delivered * int64(len(s.payload))
	return s.ledger.untimed
}

// deliver accounts for one message to the subscriber and returns the time it
// was sent; ok is false when it counts for no latency.
func (s *stream) deliver(m *packet.Publish) (sentAt int64, ok bool) {
	l := &s.ledger
	if !bytes.Equal(m.Topic, s.topic) {
		l.foreign++
		return 0, false
	}
	if !s.stamped {
		if len(m.Payload) != len(s.payload) || m.Retain {
			l.foreign++
			return 0, false
		}
		l.count(s.sent.Load())
		return 0, false
	}
	if len(m.Payload) < stampSize {
		l.foreign++
		return 0, false
	}
	seq, ours := s.stamp.take(m.Payload, l.next)
	// A number that was never sent is somebody else's, whatever its stamp.
	if !ours || seq >= s.sent.Load()+s.window {
		l.foreign++
		return 0, false
	}
	if !bytes.Equal(m.Payload[stampSize:], s.payload[stampSize:]) {
		l.corrupted++
	}
	first := l.arrive(seq)
	if !first {
		return 0, false
	}
	if l.next-seq > uint64(len(s.sentAt))/2 {
		l.untimed++
		return 0, false
	}
	return s.sentAt[seq&uint64(len(s.sentAt)-1)], true
}
