package broker

import (
	"sync"
	"sync/atomic"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// softQueue is how many messages may wait for the window of a connected
// subscriber before its publishers have to wait.
const softQueue = 1024

// noExpiry is the Session Expiry Interval of a session that never ends.
const noExpiry = 0xFFFFFFFF

// session is the Session State of one client identifier. [MQTT5 4.1]
type session struct {
	id string
	// subs are the subscriptions by filter; the tree's lock guards them.
	subs map[string]*subscription
	// online says whether the session has a connection, for shared subscriptions.
	online atomic.Bool

	// Guarded by Broker.mu.
	owner     *client // the connection, until its goroutine has released the session
	expiry    uint32  // Session Expiry Interval, seconds
	expiresAt int64   // without an owner: when the session ends; 0 means never
	will      *will   // to be published at willAt, or when the session ends
	willAt    int64

	// Only the owner's goroutine uses these and, after it, the one that ends the
	// session.
	inbound inbound
	sharing bool // it has had a shared subscription

	mu      sync.Mutex
	conn    *client // nil while messages have to be queued
	keep    bool    // the session outlives its connection
	win     window
	queue   queue
	bytes   int       // of the messages in queue and window
	waiters []*client // publishers that wait for room in this session
	blocked bool      // the owner's goroutine waits for another session
	stalls  int       // faults that keep messages in the queue
	gone    bool      // the session has ended; other members get its shared messages
	acks    int64     // acknowledgements received, a sign of life
}

// inbound is the set of QoS 2 packet identifiers received and not yet released.
// Their messages have been delivered: another PUBLISH with the same identifier is
// a resend. [MQTT-4.3.3-10]
type inbound struct {
	bits *[maxPacketIDs/64 + 1]uint64
	// earlier are those of earlier connections: a Receive Maximum applies to the
	// current one only. [MQTT5 3.1.2.11.3]
	earlier *[maxPacketIDs/64 + 1]uint64
	open    int // how many of this connection
}

// resume makes the set that of a new connection.
func (in *inbound) resume() {
	if in.bits != nil {
		earlier := *in.bits
		in.earlier = &earlier
	}
	in.open = 0
}

func (in *inbound) has(id uint16) bool {
	return in.bits != nil && in.bits[id>>6]>>(id&63)&1 != 0
}

func (in *inbound) add(id uint16) {
	if in.bits == nil {
		in.bits = new([maxPacketIDs/64 + 1]uint64)
	}
	in.bits[id>>6] |= 1 << (id & 63)
	in.open++
}

// release removes id and reports whether it was in the set.
func (in *inbound) release(id uint16) bool {
	if !in.has(id) {
		return false
	}
	bit := uint64(1) << (id & 63)
	in.bits[id>>6] &^= bit
	if in.earlier != nil && in.earlier[id>>6]&bit != 0 {
		in.earlier[id>>6] &^= bit
		return true
	}
	in.open--
	return true
}

// enqueue adds d to the queue. It returns false if the queue of a session without
// a connection is full. s.mu is held.
func (s *session) enqueue(cfg *Config, d delivery) bool {
	if s.conn == nil && (s.queue.len() >= cfg.MaxQueuedMessages || s.bytes >= cfg.MaxQueuedBytes) {
		return false
	}
	s.bytes += d.cost
	s.queue.push(d)
	return true
}

// keeps reports whether a message is kept for s while it has no connection: never
// at QoS 0. [MQTT-4.5.0-1], [MQTT-3.1.2-5] of 3.1.1. s.mu is held.
func (s *session) keeps(qos byte, share *group) bool { return qos > 0 && (s.keep || share != nil) }

// pump sends queued messages as far as the window and the out buffer allow. c is
// the connection of s, and out its buffer. s.mu is held.
func (s *session) pump(c *client, out []byte) []byte {
	if s.stalls > 0 {
		return out
	}
	for s.queue.len() > 0 {
		if c.wc.Room(out) <= 0 {
			break // Room has asked to be called back
		}
		d := *s.queue.front()
		// [MQTT-3.3.4-9] [MQTT-4.9.0-2]; PUBREL is exempt [MQTT-3.3.4-10] [MQTT-4.9.0-3]
		if d.qos > 0 && !d.pubrel && (s.win.quota <= 0 || d.id == 0 && !s.win.hasRoom()) {
			break
		}
		s.queue.pop()
		out = s.send(c, out, d)
	}
	return out
}

// send appends one queued delivery to out. s.mu is held.
func (s *session) send(c *client, out []byte, d delivery) []byte {
	if d.pubrel {
		return packet.AppendAck(out, packet.PUBREL, d.id)
	}
	o := outgoing{
		topic: d.msg.topic, payload: d.msg.payload, props: d.msg.props, ids: d.ids,
		// [MQTT-3.3.1-1] [MQTT-3.3.1-2] [MQTT-3.3.1-3]
		expiry: -1, id: d.id, qos: d.qos, dup: d.dup || d.id != 0, retain: d.retain, v5: c.v5,
	}
	if d.msg.expires != 0 {
		now := c.b.now()
		// [MQTT-3.3.2-5] [MQTT-4.3.3-7] A resend is not dropped.
		if d.id == 0 && d.msg.expired(now) {
			s.bytes -= d.cost
			c.b.count.expired.Add(1)
			return out
		}
		o.expiry = d.msg.remaining(now)
	}
	topic := c.given.use(&o, c.maxPacket)
	// [MQTT-3.1.2-24] [MQTT-3.1.2-25]
	if o.size() > c.maxPacket {
		if slot := s.win.find(d.id); d.id != 0 && slot != nil {
			d.cost = s.win.free(slot)
		}
		s.bytes -= d.cost
		c.b.count.oversize.Add(1)
		return out
	}
	c.given.said(topic, &o)
	switch {
	case d.qos == 0:
		s.bytes -= d.cost
	case d.id != 0:
		s.win.quota--
	default:
		o.id = s.win.take(awaitAck(d.qos))
		if s.keep || d.share != nil && d.qos == 1 {
			s.win.keep(o.id, d)
		} else {
			s.bytes -= d.cost
		}
	}
	c.b.count.out.Add(1)
	return o.append(out)
}

func awaitAck(qos byte) byte {
	if qos == 2 {
		return awaitPubrec
	}
	return awaitPuback
}

// congested reports whether the publisher p has to wait before it sends more to s.
// A session whose own goroutine waits for room cannot read the acknowledgements
// that would make room, and its client may be unable to read while it writes:
// waiting for it could be a deadlock. So it may get more, up to the hard limit,
// and so may a client that publishes to itself. s.mu is held.
func (s *session) congested(p *client) bool {
	c := s.conn
	if c == nil {
		return false
	}
	out := c.wc.Begin()
	pending := len(out)
	full := c.wc.Room(out) <= 0
	c.wc.End(out)
	switch {
	case p == c:
		return pending >= p.b.cfg.MaxQueuedBytes
	case pending+s.bytes >= p.b.cfg.MaxQueuedBytes:
		return true
	case s.blocked:
		return false
	}
	return full || s.queue.len() >= softQueue
}

// hasRoomFor reports whether p may send more to s. If not, p will be woken up.
func (s *session) hasRoomFor(p *client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.congested(p) {
		return true
	}
	s.waiters = append(s.waiters, p)
	return false
}

// wake wakes the publishers that wait for s, so that they check again. s.mu is
// held.
func (s *session) wake() {
	for i, c := range s.waiters {
		c.wakeUp()
		s.waiters[i] = nil
	}
	s.waiters = s.waiters[:0]
}

// setBlocked notes that the owner's goroutine starts or stops waiting.
func (s *session) setBlocked(blocked bool) {
	s.mu.Lock()
	s.blocked = blocked
	if blocked {
		s.wake()
	}
	s.mu.Unlock()
}

// attach makes c the connection of s, with CONNACK as its first packet, and starts
// to send unfinished and queued messages. [MQTT-3.2.0-1] [MQTT-4.4.0-1]
// [MQTT-4.8.2-4]
func (s *session) attach(c *client, connack []byte, limit int) {
	s.mu.Lock()
	items := s.win.unfinished()
	for s.queue.len() > 0 {
		// Resends queued for the previous connection are in the window, too, and
		// QoS 0 messages were for that connection only.
		if d := s.queue.front(); d.id == 0 && d.qos > 0 {
			items = append(items, *d)
		} else if d.id == 0 {
			s.bytes -= d.cost
		}
		s.queue.pop()
	}
	s.queue.replace(items)
	s.conn, s.keep = c, s.expiry > 0
	s.win.open(limit)
	s.online.Store(true)
	c.wc.End(s.pump(c, append(c.wc.Begin(), connack...)))
	s.mu.Unlock()
}

// detach takes the connection from s: from now on messages are queued.
func (s *session) detach() {
	s.mu.Lock()
	s.conn = nil
	s.online.Store(false)
	s.wake()
	s.mu.Unlock()
}

// room is called when the out buffer of c, which was full, has room again.
func (s *session) room(c *client) {
	s.mu.Lock()
	if s.conn == c {
		c.wc.End(s.pump(c, c.wc.Begin()))
	}
	s.wake()
	s.mu.Unlock()
	_ = c.wc.Flush()
}

// waitsForAcks returns the number of acknowledgements so far, and whether a
// publisher waits for more of them.
func (s *session) waitsForAcks(limit int) (acks int64, waits, blocked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acks, len(s.waiters) > 0 && (s.queue.len() > 0 || s.bytes >= limit), s.blocked
}

// owed reports whether the messages to the client of s have reached the limit.
func (s *session) owed(limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes >= limit && s.queue.len() > 0
}
