package load

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// publisher is a connection that publishes, to one topic or to several in turn.
// Four sides drive it: acknowledgements (its own reader), deliveries (the
// subscribers' readers), room in the out buffer, and the pacer. Each calls
// pump. The first one works, the others leave it a note, and none waits.
type publisher struct {
	number        int // among the launch's publishers
	flows         []*flow
	payload       []byte
	stamped       bool
	clock         func() int64
	asked         uint64 // window that was asked for; the one in force does not exceed it
	window        uint64
	qos           byte
	shard         *shard
	client        *mqtt.Client
	fillFn        func(p []byte)
	hasReceivers  bool    // its messages have receivers
	receiversAway bool    // its receivers are away while it publishes: its window counts acknowledgements
	returns       bool    // its connection is made again when it is lost
	chunk         uint64  // messages per reading of the clock
	pacing        *pacing // nil in a closed loop
	pacer         *pacer  // of an open loop
	measured      uint64  // first message that counts in an open loop, 0 in a closed one
	// properties are those of its messages, expected what their receivers must find.
	properties packet.Properties
	expected   *expectation

	// By the goroutine that pumps. Messages are numbered over all flows.
	state    atomic.Int32 // pumpIdle, pumpBusy, pumpAgain
	running  *countdown   // of the iteration's publishers, nil between iterations
	current  *flow        // whose messages fill stamps
	wall     int64        // time of day of what is sent, ns since 1970
	first    uint64       // the iteration's first message
	seq      uint64       // next to send
	limit    uint64       // the iteration sends up to here
	until    int64        // or, when not 0, stops at this time
	complete int          // flows, from the first, of which everything has been received
	held     held

	// sentAt is a ring of send times by number. The subscriber reads what the
	// publisher wrote before the message went out; in a closed loop a slot is
	// written again only when no delivery that reads it is left in the window, and
	// in an open one a slot that may have been written again is not read.
	sentAt []int64

	// Set by the readers, for this iteration.
	began         atomic.Int64 // when it began; acknowledgements of older messages are ignored
	acked, nacked atomic.Int64
	warmAcked     atomic.Int64  // of the warm-up of an open loop, refused or not
	dropped       atomic.Int64  // messages that a broker without the session will not acknowledge
	lastAt        atomic.Int64  // time of the last delivery or acknowledgement, or, where there are none, write
	sent          atomic.Uint64 // seq, for others to read
	ending        atomic.Bool   // all is sent: every receiver has to pump
	halt          atomic.Bool   // send no more
	away          atomic.Bool   // its connection was lost, and is being made again
	dead          atomic.Bool   // its connection has ended, or those of all its receivers
}

const (
	pumpIdle = iota
	pumpBusy
	pumpAgain
)

// newPublisher returns a case's publisher with that number. It remembers so
// many send times.
func newPublisher(spec *scenarios.Case, number int, payload []byte, sendTimes int, clock func() int64) *publisher {
	window := uint64(spec.Load.Inflight)
	p := &publisher{
		number: number, payload: payload, stamped: spec.Stamped(), clock: clock,
		asked: window, window: window, qos: spec.QoS, chunk: maxChunk, returns: spec.Target.Reconnect,
	}
	p.sentAt = make([]int64, sendTimes)
	p.fillFn = p.fill
	return p
}

// countdown waits for the publishers of an iteration.
type countdown struct {
	left atomic.Int64  // that have not ended
	done chan struct{} // closed when none is left
}

func newCountdown(n int) *countdown {
	c := &countdown{done: make(chan struct{})}
	c.left.Store(int64(n))
	return c
}

// end counts a publisher that has ended.
func (c *countdown) end() {
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
}

// fill stamps one copy of the template in the out buffer.
func (p *publisher) fill(b []byte) {
	f := p.current
	if v := f.varied; v != nil && !v.sized {
		v.filler.Fill(b, f.seq, p.wall)
	}
	if p.stamped {
		f.stamp.put(b, f.seq)
		f.seq++
		p.seq++
		return
	}
	f.seq++
	p.seq++
	// A message without a stamp is known only by its order: it must count as sent
	// before it can be delivered.
	p.sent.Store(p.seq)
}

// pump sends what may be sent now.
func (p *publisher) pump() {
	for !p.state.CompareAndSwap(pumpIdle, pumpBusy) {
		if p.state.CompareAndSwap(pumpBusy, pumpAgain) || p.state.Load() == pumpAgain {
			return
		}
	}
	for {
		p.step()
		if p.state.CompareAndSwap(pumpBusy, pumpIdle) {
			return
		}
		p.state.Store(pumpBusy)
	}
}

// hold keeps all others from pumping until release.
func (p *publisher) hold() {
	for !p.state.CompareAndSwap(pumpIdle, pumpBusy) {
		runtime.Gosched()
	}
}

func (p *publisher) release() { p.state.Store(pumpIdle) }

func (p *publisher) step() {
	if p.running == nil {
		return
	}
	for n := p.allowed(); n > 0 && p.send(n); n = p.allowed() {
		if p.hasReceivers && p.pacing == nil && !p.receiversAway {
			break // the delivery that moves the window pumps again
		}
	}
	p.checkEnd()
}

// allowed is how many messages the window and the iteration, or the schedule,
// allow now.
func (p *publisher) allowed() int {
	if p.seq < p.limit && (p.halt.Load() || p.dead.Load()) {
		p.limit = p.seq
	}
	if p.away.Load() {
		return 0 // due messages stay due
	}
	limit := p.limit
	if p.pacing != nil {
		limit = min(limit, p.pacer.dueOf(p))
		if p.seq < p.measured {
			limit = min(limit, p.measured) // the warm-up is sent apart from what counts
		}
	}
	if p.seq >= limit {
		return 0
	}
	n := min(limit-p.seq, p.chunk)
	if p.pacing != nil {
		// The client itself keeps QoS 1 and 2 within the window.
		return int(n)
	}
	out := p.outstanding()
	if out >= p.window {
		return 0
	}
	return int(min(n, p.window-out))
}

// maxChunk is the most messages that are sent with one reading of the clock.
const maxChunk = 4096

// warmStamp stamps the warm-up messages of an open loop: their acknowledgements
// are older than any that count.
const warmStamp = -1

// outstanding is how many messages of a closed loop the slowest receiver lacks
// or, without receivers, how many are not acknowledged.
func (p *publisher) outstanding() (n uint64) {
	if !p.hasReceivers || p.receiversAway {
		if p.qos == 0 {
			return 0 // the out buffer is the only bound
		}
		return p.seq - p.first - min(p.seq-p.first, uint64(p.answered()))
	}
	for _, f := range p.flows {
		if len(f.receipts) == 0 {
			continue
		}
		// A message that a later one has overtaken does not fill the window: on an
		// ordered flow it will not come, and if it does it is counted.
		n += f.seq - min(f.seq, f.reached())
	}
	return n
}

// send appends up to n messages and writes them. It reports whether all of them
// were sent.
func (p *publisher) send(n int) bool {
	now := p.clock()
	if p.until != 0 && now >= p.until && p.seq > p.first {
		p.limit = p.seq
		return false
	}
	from := p.seq
	sent, err := p.publish(n, now)
	p.sent.Store(p.seq)
	if sent > 0 && !p.hasReceivers && p.qos == 0 {
		p.lastAt.Store(now) // nothing will answer it
	}
	if p.pacing != nil {
		p.pacing.recordLag(p, from, now)
		p.noteHeld(now, sent < n)
	}
	if err == nil {
		err = p.client.Flush()
	}
	switch {
	case err != nil && p.returns:
		p.away.Store(true)
	case err != nil:
		p.dead.Store(true)
		p.limit = p.seq
	}
	return sent == n && err == nil
}

// publish appends up to n messages, sent at now, to the out buffer.
func (p *publisher) publish(n int, now int64) (sent int, err error) {
	stamp, mask := now, uint64(len(p.sentAt)-1)
	if p.seq < p.measured {
		stamp = warmStamp
	}
	for i := range uint64(min(n, len(p.sentAt))) {
		p.sentAt[(p.seq+i)&mask] = now
	}
	if p.current.varied != nil {
		p.wall = time.Now().UnixNano()
	}
	if len(p.flows) == 1 && !p.current.sized() {
		return p.client.PublishAliased(p.current.message, n, stamp, p.fillFn)
	}
	for sent < n {
		f := p.flows[p.seq%uint64(len(p.flows))]
		if f.sized() {
			f.message.Resize(f.varied.filler.Size(f.seq))
		}
		p.current = f
		one, err := p.client.PublishAliased(f.message, 1, stamp, p.fillFn)
		if one == 0 || err != nil {
			return sent, err
		}
		sent++
	}
	return sent, nil
}

// checkEnd ends the iteration for this publisher once everything sent has been
// delivered and acknowledged, or no longer can be.
func (p *publisher) checkEnd() {
	if p.seq < p.limit {
		return
	}
	p.ending.Store(true)
	n := int64(p.seq - p.first)
	settled := p.allReceived() && (p.qos == 0 || p.answered() >= n)
	if settled || p.dead.Load() {
		running := p.running
		p.running = nil
		running.end()
	}
}

// answered is how many messages of the iteration the broker has acknowledged or
// refused, or will never answer.
func (p *publisher) answered() int64 {
	return p.acked.Load() + p.nacked.Load() + p.warmAcked.Load() + p.dropped.Load()
}

func (p *publisher) allReceived() bool {
	for ; p.complete < len(p.flows); p.complete++ {
		if !p.flows[p.complete].allReceived() {
			return false
		}
	}
	return true
}

// begin prepares the publisher for an iteration of so many messages, or until a
// time. The first pump starts it.
func (p *publisher) begin(running *countdown, start, messages, until int64) {
	p.hold()
	p.acked.Store(0)
	p.nacked.Store(0)
	p.warmAcked.Store(0)
	p.dropped.Store(0)
	p.lastAt.Store(start)
	p.began.Store(start)
	p.ending.Store(false)
	for _, f := range p.flows {
		f.begin()
	}
	p.running, p.first, p.complete, p.until, p.limit = running, p.seq, 0, until, p.seq+uint64(messages)
	p.release()
}

// giveUp ends the iteration with messages outstanding. It reports whether there
// were messages left that could not be sent.
func (p *publisher) giveUp() (stalled bool) {
	p.hold()
	stalled = p.running != nil && p.seq < p.limit
	p.running, p.limit = nil, p.seq
	p.release()
	return stalled
}

// account adds the iteration that has ended to d and it.
func (p *publisher) account(d *result.Delivery, it *result.Iteration, measured bool) (untimed int64) {
	sent, acked := int64(p.seq-max(p.first, min(p.measured, p.seq))), p.acked.Load()
	d.Sent += sent
	d.Acked += acked
	d.Nacked += p.nacked.Load()
	it.Sent += sent
	it.Acked += acked
	it.Requests += p.completed()
	for _, f := range p.flows {
		untimed += f.account(d, it, measured)
	}
	return untimed
}

// ahead is how many messages may be on their way before sent counts them.
func (p *publisher) ahead() uint64 {
	if p.pacing != nil {
		return p.chunk
	}
	return p.asked
}

// completed is how many requests of the iteration have ended: messages that
// every receiver has or, without receivers, that were acknowledged or written.
func (p *publisher) completed() (n int64) {
	switch {
	case p.hasReceivers:
		for _, f := range p.flows {
			n += f.completed()
		}
		return n
	case p.qos > 0:
		return p.acked.Load() + p.warmAcked.Load()
	}
	return int64(p.sent.Load() - p.first)
}

// Between the members of a shared group a message may be overtaken by many: its
// publisher remembers so many windows, up to so many send times.
const (
	sharedWindows = 64
	sharedRing    = 1 << 16
)

// SendTimes is how many send times, of 8 bytes each, every publisher of a case
// remembers in a closed loop: those of two windows, so that a delivery within
// the window finds its own. The whole window may be of one topic, and as many
// messages to each of the other topics may have been sent since.
func SendTimes(c *scenarios.Case) int {
	least, ring := 2*c.Load.Inflight*max(c.Load.TopicsPerPublisher, 1), 1
	if c.Target.Reconnect {
		least *= 2 // a window that was given up may still arrive
	}
	if c.Load.Share != "" {
		least = max(least, min(sharedWindows*c.Load.Inflight, sharedRing))
	}
	for ring < least {
		ring *= 2
	}
	return ring
}

// lostReceivers reports whether all receivers of the publisher's messages are
// gone.
func (p *publisher) lostReceivers() bool {
	for _, f := range p.flows {
		if slices.ContainsFunc(f.receipts, func(r *receipt) bool { return !r.dead() }) {
			return false
		}
	}
	return true
}
