package broker

import (
	"encoding/binary"
	"time"

	"github.com/mqttload/mqttload/internal/wire"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// router delivers the messages of one goroutine: a connection's reader, or one
// that publishes wills.
//
// It keeps a session locked, with the out buffer of its connection, until it
// delivers to another one: a run of messages to one subscriber takes the locks
// once. It never holds two sessions and never waits while it holds one. Code that
// takes another lock must call release first.
type router struct {
	b      *Broker
	self   *session // the publisher, for No Local; nil if it has none
	routes routes

	held   *session
	to     *client // connection of held
	out    []byte  // out buffer of to, between Begin and End
	marked bool    // to is on a dirty list
	freed  bool    // held has room again

	dirty  []*client  // to be flushed at the end of the batch
	jammed []*session // that may need room before the next message

	pub   packet.Publish // the message; Topic is not used
	body  []byte         // the body of its packet if it may be copied, else nil
	v5    bool           // version of body
	props []byte         // properties to forward
	scan  propertyScan
	route *route
	msg   *message // made when a session or the store keeps it

	// Only faults set these.
	late time.Duration // delay of the message
	dup  bool          // the message is a copy with the DUP flag

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

// mark puts the connection held on the dirty list, unless it is on one. The router
// with that list flushes after this one has released the buffer.
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
		_ = c.wc.Flush() // an error ends the reader of that connection
		r.dirty[i] = nil
	}
	r.dirty = r.dirty[:0]
	r.report()
}

// report adds the counters of the batch to the broker's.
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

// lookup finds the route of a topic.
func (r *router) lookup(topic []byte) *route {
	if rt := r.routes.current(&r.b.subs, topic); rt != nil {
		return rt
	}
	r.release()
	return r.routes.find(&r.b.subs, topic, r.self)
}

// publish delivers the message in r to all targets of the route that lookup has
// found, or of a newer one.
func (r *router) publish(rt *route) {
	r.msg, r.route = nil, rt
	// [MQTT-3.3.1-8], [MQTT-3.3.1-12] of 3.1.1
	if r.pub.Retain {
		// This comes before the route is final: a client that subscribes now
		// must get the message as a retained one or by the route.
		r.release()
		r.retain()
	}
	if r.routes.version != r.b.subs.version.Load() {
		r.release()
		r.route = r.routes.find(&r.b.subs, viewOf(rt.topic), r.self)
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

// retain stores the message or, if its payload is empty, removes the stored one. [MQTT-3.3.1-5] [MQTT-3.3.1-6]
// [MQTT-3.3.1-7], [MQTT-3.3.1-11] of 3.1.1
func (r *router) retain() {
	if len(r.pub.Payload) == 0 {
		r.b.retained.remove(r.route.topic)
		return
	}
	if !r.b.retained.set(r.message()) {
		r.b.count.refusedRetained.Add(1)
	}
}

// message returns a copy of the message that can be kept.
func (r *router) message() *message {
	if r.msg != nil {
		return r.msg
	}
	m := &message{topic: r.route.topic, payload: append([]byte(nil), r.pub.Payload...), qos: r.pub.QoS}
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
	if r.b.faults != nil {
		r.deliverFaulty(t)
		return
	}
	r.hand(t)
}

// hand gives the message to one session: its connection, or its queue.
func (r *router) hand(t *target) {
	s := t.sess
	r.hold(s)
	// [MQTT-3.8.4-8], [MQTT-3.8.4-6] of 3.1.1
	qos := min(r.pub.QoS, t.qos)
	// [MQTT-3.3.1-12] [MQTT-3.3.1-13], [MQTT-3.3.1-9] of 3.1.1
	retain := r.pub.Retain && t.retain
	if r.to == nil || qos > 0 && (s.queue.len() > 0 || !s.win.hasRoom()) {
		r.enqueue(s, t, qos)
		return
	}
	if r.body != nil && r.to.takesAsIs(r.v5, t) && qos == r.pub.QoS {
		r.forward(s, t, retain)
	} else {
		r.encode(s, t, qos, retain)
	}
	if len(r.out) >= wire.HighWater {
		r.jam(s)
	}
}

// forward appends the packet as it came, except for the first byte and the
// identifier: most messages are equal on both sides. It clears DUP.
// [MQTT-3.3.1-3]
func (r *router) forward(s *session, t *target, retain bool) {
	n := len(r.body)
	if 1+packet.VarintSize(n)+n > r.to.maxPacket {
		r.oversize++
		return
	}
	r.mark()
	out := append(r.out, publishByte(false, r.pub.QoS, retain), byte(n))
	if n >= 0x80 {
		out = packet.AppendVarint(out[:len(out)-1], n)
	}
	at := len(out) + 2 + len(r.route.topic)
	out = append(out, r.body...)
	if r.pub.QoS > 0 {
		binary.BigEndian.PutUint16(out[at:], r.take(s, t, r.pub.QoS))
	}
	r.out = out
	r.sent++
}

// encode appends the message in the subscriber's version, with its properties. [MQTT-3.3.2-4] [MQTT-3.3.2-15] [MQTT-3.3.2-16] [MQTT-3.3.2-17]
// [MQTT-3.3.2-18] [MQTT-3.3.2-20]
func (r *router) encode(s *session, t *target, qos byte, retain bool) {
	o := outgoing{
		topic: r.route.topic, payload: r.pub.Payload, props: r.props, ids: t.ids,
		expiry: -1, qos: qos, dup: r.dup && qos > 0, retain: retain, v5: r.to.v5,
	}
	// [MQTT-3.1.2-24]
	topic := r.to.given.use(&o, r.to.maxPacket)
	if o.size() > r.to.maxPacket {
		r.oversize++
		return
	}
	r.to.given.said(topic, &o)
	r.mark()
	if qos > 0 {
		o.id = r.take(s, t, qos)
	}
	r.out = o.append(r.out)
	r.sent++
}

// take returns an identifier for the message and keeps a copy if it may be sent
// again: to a session that outlives its connection, or to another member of a
// shared subscription.
func (r *router) take(s *session, t *target, qos byte) uint16 {
	id := s.win.take(awaitAck(qos))
	if s.keep || t.share != nil && qos == 1 {
		d := r.delivery(t, qos)
		s.bytes += d.cost
		s.win.keep(id, d)
	}
	return id
}

// delivery is the form in which the message is kept for one session.
func (r *router) delivery(t *target, qos byte) delivery {
	m := r.message()
	return delivery{
		msg: m, ids: t.ids, share: t.share, cost: m.size(), qos: qos,
		retain: r.pub.Retain && t.retain, dup: r.dup && qos > 0,
	}
}

// enqueue keeps the message for a session that cannot take it now.
func (r *router) enqueue(s *session, t *target, qos byte) {
	if qos == 0 || r.to == nil && !s.keeps(qos, t.share) {
		return
	}
	r.put(s, r.delivery(t, qos))
}

// put adds d to the queue of the session held.
func (r *router) put(s *session, d delivery) {
	if s.gone && d.share != nil {
		r.release()
		r.b.handOver([]delivery{d})
		return
	}
	if !s.enqueue(&r.b.cfg, d) {
		r.dropped++
		return
	}
	if s.queue.len() >= softQueue || s.bytes >= r.b.cfg.MaxQueuedBytes {
		r.jam(s)
	}
}

// jam notes that the next message may have to wait for s.
func (r *router) jam(s *session) {
	if n := len(r.jammed); n == 0 || r.jammed[n-1] != s {
		r.jammed = append(r.jammed, s)
	}
}
