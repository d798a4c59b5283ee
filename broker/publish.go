package broker

import (
	"encoding/binary"
	"unsafe"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// onPublish handles a PUBLISH of the client. A QoS 2 message is delivered at
// its first PUBLISH, not at its PUBREL. [MQTT5 4.3.3, method B]
func (c *client) onPublish(f packet.Frame) error {
	p := &c.pub
	r := c.decodeSame(f)
	if r == nil {
		var err error
		if r, err = c.decode(f); err != nil {
			return err
		}
	}
	c.in++
	if p.QoS > c.b.maxQoS {
		return &closeError{packet.ReasonQoSNotSupported, "publication above the Maximum QoS"}
	}
	if p.Retain && c.b.cfg.RetainUnavailable {
		return &closeError{packet.ReasonRetainNotSupported, "retained publication"}
	}
	if c.b.faults != nil {
		return c.publishFaulty(r)
	}
	switch p.QoS {
	case 0:
		return c.route0(r)
	case 1:
		return c.route1(r)
	}
	return c.route2(r)
}

// decodeSame decodes f if it has the topic of the previous PUBLISH, or its alias,
// and no other properties, which is nearly always so. It then only compares these
// bytes, as the scanner has checked the flags. Otherwise it returns nil.
func (c *client) decodeSame(f packet.Frame) *route {
	r := c.routes.last
	if r == nil || c.routes.version != c.b.subs.version.Load() {
		return nil
	}
	b, body, alias := f.Body, f.Body, uint16(0)
	switch {
	case len(b) >= len(r.head) && string(b[:len(r.head)]) == r.head:
		b = b[len(r.head):]
	case c.lastAlias > 0 && len(b) >= 2 && b[0]|b[1] == 0:
		b, body, alias = b[2:], nil, c.lastAlias
	default:
		return nil
	}
	qos, id := f.First>>1&3, uint16(0)
	if qos > 0 {
		if len(b) < 2 || b[0]|b[1] == 0 {
			return nil
		}
		id = uint16(b[0])<<8 | uint16(b[1])
		b = b[2:]
	}
	switch {
	case alias > 0: // the only property, three bytes long [MQTT5 3.3.2.3.4]
		if len(b) < 4 || b[0] != 3 || b[1] != idTopicAlias || binary.BigEndian.Uint16(b[2:]) != alias {
			return nil
		}
		b = b[4:]
	case c.v5:
		if len(b) == 0 || b[0] != 0 {
			return nil
		}
		b = b[1:]
	}
	p := &c.pub
	p.QoS, p.Retain, p.PacketID, p.Payload = qos, f.First&1 != 0, id, b
	c.body, c.props, c.scan = body, nil, propertyScan{expiry: -1}
	return r
}

// decode decodes any PUBLISH and finds its route.
func (c *client) decode(f packet.Frame) (*route, error) {
	if err := c.decoder.Decode(&c.pub, f, c.version); err != nil {
		return nil, err
	}
	topic, err := c.unwrap(f)
	if err != nil {
		return nil, err
	}
	r := c.lookup(topic)
	c.lastAlias = c.scan.alias
	if r.control {
		return nil, &closeError{packet.ReasonMalformedPacket, "topic name with control characters"}
	}
	return r, nil
}

// unwrap decodes the properties: it resolves the Topic Alias and determines the
// properties to forward.
func (c *client) unwrap(f packet.Frame) (topic []byte, err error) {
	p := &c.pub
	c.body, c.props, c.scan = f.Body, nil, propertyScan{expiry: -1}
	if len(p.RawProperties) == 0 {
		return p.Topic, nil
	}
	c.props, c.scan = p.RawProperties, scanProperties(p.RawProperties)
	// [MQTT-3.3.4-6]
	if c.scan.hasSubscriptionID {
		return nil, &closeError{packet.ReasonProtocolError, "subscription identifier from a client"}
	}
	if c.scan.alias == 0 {
		return p.Topic, nil
	}
	// [MQTT-3.3.2-7] The alias is between this client and the broker, on this
	// connection.
	c.body = nil
	c.propBuf = appendWithout(c.propBuf[:0], p.RawProperties, idTopicAlias)
	c.props = c.propBuf
	return c.resolveAlias(p.Topic)
}

// resolveAlias sets or reads a Topic Alias. [MQTT5 3.3.2.3.4]
func (c *client) resolveAlias(topic []byte) ([]byte, error) {
	alias := int(c.scan.alias)
	// [MQTT-3.3.2-9] [MQTT-3.3.2-12]
	if alias > int(c.b.cfg.TopicAliasMaximum) {
		return nil, &closeError{packet.ReasonTopicAliasInvalid, "topic alias above the maximum"}
	}
	known := ""
	if alias < len(c.aliases) {
		known = c.aliases[alias]
	}
	if len(topic) == 0 {
		if known == "" {
			return nil, &closeError{packet.ReasonTopicAliasInvalid, "topic alias not set before"}
		}
		return viewOf(known), nil
	}
	if known != string(topic) {
		if alias >= len(c.aliases) {
			c.aliases = append(c.aliases, make([]string, alias+1-len(c.aliases))...)
		}
		c.aliases[alias] = string(topic)
	}
	return topic, nil
}

func (c *client) route0(r *route) error {
	if err := c.makeRoom(); err != nil {
		return err
	}
	c.publish(r)
	return nil
}

func (c *client) route1(r *route) error {
	if err := c.checkQuota(); err != nil {
		return err
	}
	if err := c.makeRoom(); err != nil {
		return err
	}
	c.publish(r)
	// [MQTT-3.3.4-1] [MQTT-4.3.2-4] [MQTT-4.3.2-5] [MQTT-2.2.1-5], [MQTT-4.3.2-2] of 3.1.1
	c.ackWith(packet.PUBACK, c.pub.PacketID, c.outcome())
	c.unsent++
	return nil
}

func (c *client) route2(r *route) error {
	in := &c.sess.inbound
	if !in.has(c.pub.PacketID) {
		if err := c.checkQuota(); err != nil {
			return err
		}
		if err := c.makeRoom(); err != nil {
			return err
		}
		in.add(c.pub.PacketID)
		c.publish(r)
	}
	// [MQTT-4.3.3-8] [MQTT-4.3.3-10], [MQTT-4.3.3-2] of 3.1.1
	c.ack(packet.PUBREC, c.pub.PacketID)
	return nil
}

// outcome is the reason code of the message published last: whether it had any
// subscriber. [MQTT5 table 3-4]
func (c *client) outcome() packet.ReasonCode {
	if len(c.route.targets)+len(c.route.shares) == 0 {
		return packet.ReasonNoMatchingSubscribers
	}
	return packet.ReasonSuccess
}

// checkQuota checks that the client keeps the broker's Receive Maximum, counting
// the messages whose acknowledgement it cannot have read yet. 3.x has no such
// limit. [MQTT-3.3.4-7]
func (c *client) checkQuota() error {
	if c.v5 && c.unsent+c.sess.inbound.open >= int(c.b.cfg.ReceiveMaximum) {
		return &closeError{packet.ReasonReceiveMaximumExceeded, "more unacknowledged publications than the Receive Maximum allows"}
	}
	return nil
}

// onAck handles PUBACK, PUBREC and PUBCOMP of a subscriber, PUBREL of a publisher.
func (c *client) onAck(f packet.Frame) error {
	t, id, code := f.Type(), uint16(0), packet.ReasonSuccess
	if len(f.Body) == 2 && isPlainAck(f.First) {
		id = uint16(f.Body[0])<<8 | uint16(f.Body[1])
	}
	if id == 0 {
		if err := c.ackDecoder.Decode(f, c.version); err != nil {
			return err
		}
		id, code = c.ackDecoder.PacketID, c.ackDecoder.Code
	}
	if t == packet.PUBREL {
		c.onPubrel(id)
		return nil
	}
	for ok := true; ok; id, ok = c.wc.Scanner().NextAck(f.First) {
		if err := c.acknowledged(t, id, code); err != nil {
			return err
		}
		code = packet.ReasonSuccess
	}
	return nil
}

func (c *client) acknowledged(t packet.Type, id uint16, code packet.ReasonCode) error {
	s := c.sess
	c.hold(s)
	s.acks++
	slot := s.win.find(id)
	switch {
	case slot == nil && t == packet.PUBREC:
		c.ackWith(packet.PUBREL, id, packet.ReasonPacketIdentifierNotFound)
	case slot == nil:
		// It belongs to an earlier connection, or is wrong: no answer is due.
	case t == packet.PUBACK && slot.State == awaitPuback,
		t == packet.PUBCOMP && slot.State == awaitPubcomp,
		// [MQTT-4.4.0-2] [MQTT-4.8.2-6]
		t == packet.PUBREC && slot.State == awaitPubrec && code.IsError():
		c.finish(slot)
	case t == packet.PUBREC && slot.State != awaitPuback:
		c.onPubrec(id, slot)
	default:
		return &closeError{packet.ReasonProtocolError, t.String() + " does not match the state of its packet identifier"}
	}
	return nil
}

// isPlainAck reports whether first starts an acknowledgement of any version.
func isPlainAck(first byte) bool {
	switch first {
	case byte(packet.PUBACK) << 4, byte(packet.PUBREC) << 4, byte(packet.PUBREL)<<4 | 2, byte(packet.PUBCOMP) << 4:
		return true
	}
	return false
}

// onPubrec starts the second half of a QoS 2 exchange.
func (c *client) onPubrec(id uint16, slot *slot) {
	s := c.sess
	if slot.State == awaitPubrec {
		slot.State = awaitPubcomp
		s.bytes -= s.win.released(id)
		c.freed = c.freed || len(s.waiters) > 0
	}
	// [MQTT-4.3.3-4], [MQTT-4.3.3-1] of 3.1.1
	c.ack(packet.PUBREL, id)
}

// finish frees an identifier used for the client and sends queued messages. The
// client's session is held.
func (c *client) finish(slot *slot) {
	s := c.sess
	s.bytes -= s.win.free(slot)
	c.freed = c.freed || len(s.waiters) > 0
	if s.queue.len() > 0 {
		c.out = s.pump(c, c.out)
		c.mark()
	}
}

// onPubrel ends QoS 2 exchanges of a publisher: that of id, and those whose PUBREL
// follows directly. [MQTT-4.3.3-11] [MQTT-4.3.3-12] [MQTT-4.3.3-13]
func (c *client) onPubrel(id uint16) {
	const plain = byte(packet.PUBREL)<<4 | 2
	in, acks, next := &c.sess.inbound, c.ackBuffer(), c.wc.Scanner()
	for ok := true; ok; id, ok = next.NextAck(plain) {
		if in.release(id) {
			*acks = packet.AppendAck(*acks, packet.PUBCOMP, id)
		} else {
			c.ackWith(packet.PUBCOMP, id, packet.ReasonPacketIdentifierNotFound)
		}
		c.unsent++
	}
}

// viewOf returns the bytes of s without a copy. They must not be changed.
func viewOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
