package packet

import (
	"bytes"
	"encoding/binary"
)

// Flags in the first byte of PUBLISH. [MQTT5 3.3.1]
const (
	flagRetain = 0x01
	flagDup    = 0x08
)

// size returns the remaining length of p.
func (p *Publish) size(v Version) int {
	n := 2 + len(p.Topic) + len(p.Payload)
	if p.QoS > 0 {
		n += 2
	}
	if v == V5 {
		n += VarintSize(len(p.RawProperties)) + len(p.RawProperties)
	}
	return n
}

// Append appends p, encoded for version v, to dst. It checks the topic but copies
// RawProperties unchecked; in 3.x it leaves them out. On error, which is an
// *InvalidError, it returns dst unchanged.
func (p *Publish) Append(dst []byte, v Version) ([]byte, error) {
	size := p.size(v)
	if err := p.check(v, size); err != nil {
		return dst, err
	}
	first := byte(PUBLISH)<<4 | p.QoS<<1
	if p.Retain {
		first |= flagRetain
	}
	if p.Dup {
		first |= flagDup
	}
	dst = append(dst, first)
	dst = AppendVarint(dst, size)
	dst = append(dst, byte(len(p.Topic)>>8), byte(len(p.Topic)))
	dst = append(dst, p.Topic...)
	// [MQTT-2.2.1-2], [MQTT-2.3.1-5] of 3.1.1
	if p.QoS > 0 {
		dst = binary.BigEndian.AppendUint16(dst, p.PacketID)
	}
	if v == V5 {
		dst = AppendVarint(dst, len(p.RawProperties))
		dst = append(dst, p.RawProperties...)
	}
	return append(dst, p.Payload...), nil
}

// check returns an *InvalidError, or nil. Its result type is error, because a nil
// *InvalidError in an error would not be nil.
func (p *Publish) check(v Version, size int) error {
	field, rule := "", ""
	switch {
	case !knownVersion(v):
		field, rule = "version", ruleVersion
	// [MQTT-3.3.1-4]
	case p.QoS > 2:
		field, rule = "QoS", "must be 0, 1 or 2 [MQTT-3.3.1-4]"
	// [MQTT-3.3.1-2, MQTT-4.3.1-1]
	case p.QoS == 0 && p.Dup:
		field, rule = "DUP", "must be 0 at QoS 0 [MQTT-3.3.1-2]"
	// [MQTT-2.2.1-3]
	case p.QoS > 0 && p.PacketID == 0:
		field, rule = "packet identifier", ruleID
	case size > MaxRemainingLength:
		field, rule = "remaining length", "is larger than 268435455; send a shorter payload"
	case len(p.Topic) == 0 && v == V5 && hasTopicAlias(p.RawProperties):
	default:
		field, rule = "topic name", topicNameRule(p.Topic)
	}
	if rule == "" {
		return nil
	}
	return &InvalidError{Packet: PUBLISH, Field: field, Rule: rule}
}

func hasTopicAlias(raw []byte) bool {
	r := reader{body: raw, pkt: PUBLISH}
	return r.propertyList(PUBLISH, nil)>>idTopicAlias&1 != 0
}

// Decode decodes f, a PUBLISH of version v, into p. It does not allocate: Topic, Payload
// and RawProperties point into f. It checks all of them but Payload. If Topic is empty,
// there is a Topic Alias. After an error, which is a *MalformedError, p is undefined.
func (p *Publish) Decode(f Frame, v Version) error {
	_, err := p.decode(f, v, nil)
	return err
}

// decode is Decode with a topic known to be valid, which it does not check again. fresh
// reports whether the topic of f is another one.
func (p *Publish) decode(f Frame, v Version, known []byte) (fresh bool, err error) {
	b := f.Body
	if !legalFirst[f.First] || f.First>>4 != byte(PUBLISH) || len(b) < 2 {
		return true, p.decodeSlow(f, v)
	}
	qos := f.First >> 1 & 3
	end := 2 + int(b[0])<<8 + int(b[1])
	off := end + 2
	if qos == 0 {
		off = end
	}
	// The fast path is for PUBLISH without properties, which nearly all are.
	if v == V5 {
		if off >= len(b) || b[off] != 0 {
			return true, p.decodeSlow(f, v)
		}
		off++
	}
	if off > len(b) || end == 2 {
		return true, p.decodeSlow(f, v)
	}
	topic := b[2:end:end]
	fresh = !bytes.Equal(topic, known)
	if fresh && topicNameRule(topic) != "" {
		return true, p.decodeSlow(f, v)
	}
	id := uint16(0)
	if qos > 0 {
		if id = binary.BigEndian.Uint16(b[end:]); id == 0 {
			return true, p.decodeSlow(f, v)
		}
	}
	// The compiler makes fewer moves of these assignments than of a literal.
	p.Dup, p.QoS, p.Retain = f.First&flagDup != 0, qos, f.First&flagRetain != 0
	p.Topic, p.PacketID, p.Payload, p.RawProperties = topic, id, b[off:], nil
	return fresh, nil
}

// decodeSlow decodes a PUBLISH with properties, or finds the fault in a bad one.
func (p *Publish) decodeSlow(f Frame, v Version) error {
	r := open(f, PUBLISH, v)
	*p = Publish{Dup: f.First&flagDup != 0, QoS: f.First >> 1 & 3, Retain: f.First&flagRetain != 0}
	p.Topic = r.binary("topic name")
	rule, afterTopic := topicNameRule(p.Topic), r.off
	if len(p.Topic) > 0 && rule != "" {
		// 0x90, Topic Name invalid, is for well-formed names only. [MQTT5 table 3-10]
		r.failAt(0, ReasonMalformedPacket, "topic name "+rule)
	}
	if p.QoS > 0 {
		p.PacketID = r.packetID()
	}
	var seen uint64
	if v == V5 {
		start := r.off
		seen = r.properties(PUBLISH, nil)
		if n, size, _ := varint(r.body[start:]); r.err == nil && n > 0 {
			p.RawProperties = r.body[start+size : r.off : r.off]
		}
	}
	if len(p.Topic) == 0 && seen>>idTopicAlias&1 == 0 {
		r.failAt(afterTopic-2, ReasonProtocolError, "topic name "+rule)
	}
	p.Payload = r.bytes(r.left(), "payload")
	return r.close()
}

// ParseProperties decodes p.RawProperties into dst, which it resets first and which does
// not point into p afterwards. The error is a *MalformedError.
func (p *Publish) ParseProperties(dst *Properties) error {
	return ParseProperties(dst, PUBLISH, p.RawProperties)
}

// SetProperties sets p.RawProperties to src, encoded in new memory. On error, which is
// an *InvalidError, it leaves p unchanged.
func (p *Publish) SetProperties(src *Properties) error {
	raw, err := AppendProperties(nil, PUBLISH, src)
	if err == nil {
		p.RawProperties = raw
	}
	return err
}

// A PublishDecoder decodes the PUBLISH packets of one connection. It remembers the start
// of the last one, so that it checks a topic once for a run of messages to that topic.
// The zero value is ready to use.
type PublishDecoder struct {
	topic []byte // the last valid topic
	head  []byte // the last packet up to the end of its topic; empty if Next must not be used
	size  int    // of that packet
	v     Version
}

// Decode is [Publish.Decode].
func (d *PublishDecoder) Decode(p *Publish, f Frame, v Version) error {
	fresh, err := p.decode(f, v, d.topic)
	switch {
	case err != nil:
		d.head = d.head[:0]
	case fresh:
		d.topic, d.head = append(d.topic[:0], p.Topic...), d.head[:0]
	case p.RawProperties == nil:
		// This is the second message to the topic: more may follow.
		d.head = AppendVarint(append(d.head[:0], f.First), len(f.Body))
		d.head = append(d.head, f.Body[:2+len(d.topic)]...)
		d.size, d.v = f.Size(), v
	}
	return err
}

// Next does the work of [Scanner.Next] and Decode, if the next packet in s is whole, has
// the same size as the last one and the same bytes up to the end of the topic, and has
// no properties. Equal bytes need no second check. Otherwise it returns false and does
// nothing. p must be unchanged since the last Decode or Next, because Next sets only the
// packet identifier and the payload.
func (d *PublishDecoder) Next(p *Publish, s *Scanner) bool {
	b := s.buf[s.r:s.w]
	if len(d.head) == 0 || len(b) < d.size || string(b[:len(d.head)]) != string(d.head) {
		return false
	}
	b = b[:d.size:d.size]
	at := len(d.head)
	if p.QoS > 0 {
		id := binary.BigEndian.Uint16(b[at:])
		if id == 0 {
			return false
		}
		p.PacketID = id
		at += 2
	}
	if d.v == V5 {
		if b[at] != 0 {
			return false
		}
		at++
	}
	s.r += d.size
	p.Payload = b[at:]
	return true
}

func knownVersion(v Version) bool { return v == V31 || v == V311 || v == V5 }

const ruleVersion = "must be 3.1, 3.1.1 or 5"
