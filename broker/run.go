package broker

import (
	"bytes"
	"encoding/binary"

	"github.com/mqttload/mqttload/internal/wire"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// runBytes bounds a run, and so by how much an out buffer can exceed its high
// water mark.
const runBytes = 16 << 10

// run delivers the PUBLISH packets at the front of the read buffer that have the
// topic of the previous one, written in the same bytes. All of them together cost
// one search, one lock and, at QoS 0, one copy. It stops at the first packet that
// needs a closer look, and reports whether it has delivered any.
func (c *client) run() bool {
	r := c.routes.last
	if r == nil || len(c.jammed) > 0 || len(r.shares) > 0 || c.routes.version != c.b.subs.version.Load() {
		return false
	}
	b := c.wc.Scanner().Peek()
	if len(b) == 0 {
		return false
	}
	// Neither DUP nor RETAIN.
	var n, size int
	switch qos := b[0] >> 1 & 3; {
	case b[0] != publishByte(false, qos, false) || qos > c.b.maxQoS:
	case qos == 0:
		n, size = c.run0(r, b)
	default:
		n, size = c.run12(r, b, qos)
	}
	c.wc.Scanner().Skip(size)
	c.in += int64(n)
	return n > 0
}

// similar looks at the packet at the start of b. If the packet is complete, starts
// with first, has the topic in head and a length of at most two bytes, similar
// returns where the topic and the packet end.
func similar(b []byte, first byte, head string) (topic, end int, ok bool) {
	if len(b) < 3 || b[0] != first {
		return 0, 0, false
	}
	at, n := 2, int(b[1])
	if n >= 0x80 {
		if b[2]-1 >= 0x7f { // more than two bytes of length, or an encoding that is too long
			return 0, 0, false
		}
		at, n = 3, n&0x7f|int(b[2])<<7
	}
	end, topic = at+n, at+len(head)
	if end > len(b) || topic > end || string(b[at:topic]) != head {
		return 0, 0, false
	}
	return topic, end, true
}

// plain reports whether b starts with no properties.
func (c *client) plain(b []byte) bool { return !c.v5 || len(b) > 0 && b[0] == 0 }

// run0 delivers a run of QoS 0 to each target, and returns the number of its
// packets and bytes.
func (c *client) run0(r *route, b []byte) (n, size int) {
	largest := 0
	for size < runBytes {
		topic, end, ok := similar(b[size:], publishByte(false, 0, false), r.head)
		if !ok || end > c.b.cfg.MaxPacketSize || !c.plain(b[size+topic:size+end]) {
			break
		}
		largest = max(largest, end)
		head := topic
		if c.v5 {
			head++
		}
		k := repeats(b[size:], head, end, runBytes-size)
		size += k * end
		n += k
	}
	if n == 0 {
		return 0, 0
	}
	c.msg, c.route = nil, r
	for i := range r.targets {
		t := &r.targets[i]
		c.hold(t.sess)
		switch {
		case c.to == nil: // QoS 0 is not kept
		case !c.to.takesAsIs(c.v5, t) || largest > c.to.maxPacket:
			c.each(t, b[:size])
		default:
			c.mark()
			c.out = append(c.out, b[:size]...)
			c.sent += int64(n)
			if len(c.out) >= wire.HighWater {
				c.jam(t.sess)
			}
		}
	}
	return n, size
}

// repeats returns how many packets of end bytes at the start of b have the same
// first head bytes, and so the same length. The last one starts before limit.
func repeats(b []byte, head, end, limit int) (n int) {
	for at := 0; at < limit && at+end <= len(b) && bytes.Equal(b[at:at+head], b[:head]); at += end {
		n++
	}
	return n
}

// each delivers a run of QoS 0 to t, one by one.
func (c *client) each(t *target, b []byte) {
	for len(b) > 0 {
		topic, end, _ := similar(b, b[0], c.route.head)
		c.decodeSame(packet.Frame{First: b[0], Body: b[topic-len(c.route.head) : end]})
		c.deliver(t)
		b = b[end:]
	}
}

// run12 delivers a run of QoS 1 or 2 to the only target of the route.
func (c *client) run12(r *route, b []byte, qos byte) (n, size int) {
	if len(r.targets) != 1 {
		return 0, 0
	}
	t := &r.targets[0]
	c.hold(t.sess)
	room := c.roomFor(t, qos)
	if room <= 0 {
		return 0, 0
	}
	// [MQTT-4.3.2-4] [MQTT-4.3.3-8]
	first, answer, state := publishByte(false, qos, false), packet.PUBACK+packet.Type(qos-1), awaitAck(qos)
	win, in, acks := &t.sess.win, &c.sess.inbound, c.ackBuffer()
	for n < room && size < runBytes && len(c.out) < wire.HighWater {
		topic, end, ok := similar(b[size:], first, r.head)
		if !ok || end > min(c.b.cfg.MaxPacketSize, c.to.maxPacket) || end < topic+2 {
			break
		}
		p := b[size : size+end]
		id := binary.BigEndian.Uint16(p[topic:])
		if id == 0 || !c.plain(p[topic+2:]) {
			break
		}
		if qos == 2 {
			if in.has(id) {
				break
			}
			in.add(id)
		}
		at := len(c.out) + topic
		c.out = append(c.out, p...)
		binary.BigEndian.PutUint16(c.out[at:], win.take(state))
		*acks = packet.AppendAck(*acks, answer, id)
		size += end
		n++
	}
	if n == 0 {
		return 0, 0
	}
	if qos == 1 {
		c.unsent += n
	}
	c.mark()
	c.sent += int64(n)
	if len(c.out) >= wire.HighWater {
		c.jam(t.sess)
	}
	return n, size
}

// roomFor is how many messages can be copied to t at once: 0 if they have to be
// kept, encoded again, or refused. t's session is held.
func (c *client) roomFor(t *target, qos byte) int {
	s := t.sess
	if c.to == nil || !c.to.takesAsIs(c.v5, t) || s.keep || t.qos < qos || s.queue.len() > 0 {
		return 0
	}
	room := min(s.win.quota, maxPacketIDs-s.win.ids.Used())
	if c.v5 {
		// [MQTT-3.3.4-7]
		room = min(room, int(c.b.cfg.ReceiveMaximum)-c.unsent-c.sess.inbound.open)
	}
	return room
}
