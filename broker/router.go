package broker

import (
	"encoding/binary"

	"github.com/mqttload/mqttload/internal/wire"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// router delivers the messages of one goroutine: a connection's reader, or
// whoever publishes a will.
//
// It keeps the session it delivers to locked, with the connection's out
// buffer, until it needs another one: a run of messages to one subscriber
// takes the locks once. It never holds two, never waits while holding one, and
// whoever wants to take another lock calls release first.
type router struct {
	b      *Broker
	self   *session // the publisher, for No Local; nil for wills
	routes routes

	held   *session
	to     *client // connection of held
	out    []byte  // out buffer of to, between Begin and End
	marked bool    // to is on somebody's dirty list
	freed  bool    // held has got room

	dirty  []*client  // to be flushed at the end of the batch
	jammed []*session // perhaps to be waited for before the next message

	pub   packet.Publish // the message; Topic is not used
	body  []byte         // its packet's body where it may be copied, else nil
	v5    bool           // version of body
	props []byte         // properties to forward
	scan  propertyScan
	route *route
	msg   *message // made when somebody keeps it

	in, sent, dropped, oversize int64
}

// hold locks s and its connection's out buffer, if it has a connection.
func (r *router) hold(s *session) {
	if r.held == s {
		return
	}
	r.release()
	s.mu.Lock()
	r.held, r.to, r.marked = s, s.conn, false
	if r.to != nil {
		r.out = r.to.wc.Begin()
	}
}

// release unlocks what hold has locked.
func (r *router) release() {
	s := r.held
	if s == nil {
		return
	}
	if r.to != nil {
		r.to.wc.End(r.out)
	}
	if r.freed {
		r.freed = false
		s.wake()
	}
	s.mu.Unlock()
	r.held, r.to, r.out = nil, nil, nil
}

// mark puts the connection held on the dirty list, unless it is on one: whoever
// has it there flushes after this router has let go of the buffer.
func (r *router) mark() {
	if r.marked {
		return
	}
	r.marked = true
	if r.to.dirty.CompareAndSwap(false, true) {
		r.dirty = append(r.dirty, r.to)
	}
}

// flush releases and writes what this batch has caused.
func (r *router) flush() {
	r.release()
	for i, c := range r.dirty {
		c.dirty.Store(false)
		_ = c.wc.Flush() // an error ends that connection's own reader
		r.dirty[i] = nil
	}
	r.dirty = r.dirty[:0]
	r.report()
}

// report adds up the batch's counters.
func (r *router) report() {
	n := &r.b.count
	if r.in > 0 {
		n.in.Add(r.in)
	}
	if r.sent > 0 {
		n.out.Add(r.sent)
	}
	if r.dropped > 0 {
		n.dropped.Add(r.dropped)
	}
	if r.oversize > 0 {
		n.oversize.Add(r.oversize)
	}
	r.in, r.sent, r.dropped, r.oversize = 0, 0, 0, 0
}

// publish delivers the message in r to everybody who has subscribed to topic.
func (r *router) publish(topic []byte) {
	r.msg = nil
	if r.pub.Retain {
		// Before the subscribers are looked up: who subscribes meanwhile must get
		// it one way or the other.
		r.release()
		r.retain(topic)
	}
	r.route = r.routes.current(&r.b.subs, topic)
	if r.route == nil {
		r.release()
		r.route = r.routes.find(&r.b.subs, topic, r.self)
	}
	for i := range r.route.targets {
		r.deliver(&r.route.targets[i])
	}
	for i := range r.route.shares {
		if t := r.route.shares[i].pick(); t != nil {
			r.deliver(t)
		}
	}
}

// retain stores or, with an empty payload, removes. [MQTT-3.3.1-5] [MQTT-3.3.1-6]
func (r *router) retain(topic []byte) {
	if len(r.pub.Payload) == 0 {
		r.b.retained.remove(string(topic))
		return
	}
	if !r.b.retained.set(r.message(string(topic))) {
		r.b.count.refusedRetained.Add(1)
	}
}

// message copies the message to be kept.
func (r *router) message(topic string) *message {
	if r.msg != nil {
		return r.msg
	}
	m := &message{topic: topic, payload: append([]byte(nil), r.pub.Payload...), qos: r.pub.QoS}
	if len(r.props) > 0 {
		m.props = appendWithout(nil, r.props, idMessageExpiry)
	}
	if r.scan.expiry >= 0 {
		m.expires = max(r.b.now()+r.scan.expiry*1e9, 1)
	}
	r.msg = m
	return m
}

// deliver gives the message to one session.
func (r *router) deliver(t *target) {
	s := t.sess
	r.hold(s)
	// [MQTT-3.8.4-8]
	qos := min(r.pub.QoS, t.qos)
	// [MQTT-3.3.1-12] [MQTT-3.3.1-13]
	retain := r.pub.Retain && t.retain
	if r.to == nil || qos > 0 && (s.queue.len() > 0 || !s.win.hasRoom()) {
		r.enqueue(s, t, qos, retain)
		return
	}
	o := outgoing{qos: qos, retain: retain, v5: r.to.v5, ids: t.ids, expiry: -1}
	copied := r.body != nil && r.v5 == o.v5 && qos == r.pub.QoS && len(t.ids) == 0
	if !copied {
		o.topic, o.payload, o.props = r.route.topic, r.pub.Payload, r.props
	}
	if r.tooLarge(&o, copied) {
		r.oversize++
		return
	}
	if qos > 0 {
		o.id = s.win.take(awaitAck(qos))
		if s.keep {
			m := r.message(r.route.topic)
			s.bytes += m.size()
			s.win.keep(o.id, delivery{msg: m, ids: t.ids, cost: m.size(), qos: qos, retain: retain})
		}
	}
	r.mark()
	if copied {
		r.copy(&o)
	} else {
		r.out = o.append(r.out)
	}
	r.sent++
	if len(r.out) >= wire.HighWater {
		r.jam(s)
	}
}

// copy appends the packet as it came, but for the first byte and the identifier.
func (r *router) copy(o *outgoing) {
	out := appendVarint(append(r.out, publishByte(false, o.qos, o.retain)), len(r.body))
	at := len(out) + 2 + len(r.route.topic)
	out = append(out, r.body...)
	if o.qos > 0 {
		binary.BigEndian.PutUint16(out[at:], o.id)
	}
	r.out = out
}

// tooLarge applies the subscriber's Maximum Packet Size. [MQTT-3.1.2-24]
func (r *router) tooLarge(o *outgoing, copied bool) bool {
	if copied {
		return 1+varintSize(len(r.body))+len(r.body) > r.to.maxPacket
	}
	return o.size() > r.to.maxPacket
}

// enqueue keeps the message for a session that cannot take it now. QoS 0
// messages are not kept for a session without connection.
func (r *router) enqueue(s *session, t *target, qos byte, retain bool) {
	if qos == 0 || r.to == nil && !s.keep {
		return
	}
	m := r.message(r.route.topic)
	d := delivery{msg: m, ids: t.ids, cost: m.size(), qos: qos, retain: retain}
	if !s.enqueue(&r.b.cfg, d) {
		r.dropped++
		return
	}
	if s.queue.len() >= softQueue || s.bytes >= r.b.cfg.MaxQueuedBytes {
		r.jam(s)
	}
}

// jam notes that s may have to be waited for.
func (r *router) jam(s *session) {
	if n := len(r.jammed); n == 0 || r.jammed[n-1] != s {
		r.jammed = append(r.jammed, s)
	}
}
