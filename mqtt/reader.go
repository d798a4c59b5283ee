package mqtt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/mqttload/mqttload/internal/wire"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// run is the reader goroutine.
func (c *Client) run() {
	err := c.read()
	var pe *ProtocolError
	if errors.As(err, &pe) {
		_ = c.fail(err)
	}
	// [MQTT-4.13.2-1] A DISCONNECT from the broker is one of the errors.
	if errors.Is(err, net.ErrClosed) {
		err = ErrClosed
	}
	_ = c.conn.CloseWith(err)
	var disconnected *DisconnectedError
	if errors.As(err, &disconnected) {
		c.conn.Explain(err)
	}
	err = c.conn.Err()
	c.stopKeepAlive()
	c.detach()
	c.failWaiters()
	if c.link != nil {
		c.link.lost(err)
	} else {
		c.handler.Closed(err)
	}
	close(c.done)
}

func (c *Client) read() error {
	for {
		if err := c.handleBatch(); err != nil {
			return err
		}
		if _, err := c.conn.Fill(); err != nil {
			return err
		}
	}
}

// handleBatch handles every whole packet that has been read, then writes once. If a
// packet is bad, those before it are still handled and the handler gets its BatchEnd.
func (c *Client) handleBatch() error {
	started, err := c.handlePackets()
	if !started {
		return err
	}
	c.finishBatch()
	c.handler.BatchEnd()
	if err != nil {
		return err
	}
	_ = c.conn.Flush() // after an error Fill returns what the peer has sent, then fails
	return nil
}

// handlePackets handles the packets of a read, and reports whether there were any.
func (c *Client) handlePackets() (started bool, err error) {
	for {
		f, ok, err := c.conn.Next()
		if err != nil {
			return started, malformed(err)
		}
		if !ok {
			return started, nil
		}
		if !started {
			started = true
			c.handler.BatchStart()
		}
		if err := c.handle(f); err != nil {
			return started, err
		}
	}
}

// handle handles one packet. It collects replies, which finishBatch appends.
func (c *Client) handle(f packet.Frame) error {
	switch f.Type() {
	case packet.PUBLISH:
		return c.onPublish(f)
	case packet.PUBACK, packet.PUBREC, packet.PUBCOMP:
		return c.onAck(f)
	case packet.PUBREL:
		return c.onPubrel(f)
	case packet.SUBACK:
		return c.onSuback(f)
	case packet.UNSUBACK:
		return c.onUnsuback(f)
	case packet.PINGRESP:
		if err := packet.DecodePing(f, c.cfg.Version); err != nil {
			return malformed(err)
		}
		return nil
	case packet.DISCONNECT:
		return c.onDisconnect(f)
	case packet.AUTH:
		return c.onAuth(f)
	}
	// A second CONNACK, or a packet that only clients send.
	return protocolErrorf(packet.ReasonProtocolError, "unexpected %s", f.Type())
}

func (c *Client) onPublish(f packet.Frame) error {
	p := &c.pub
	if err := c.decoder.Decode(p, f, c.cfg.Version); err != nil {
		return badPublish(f, err)
	}
	if len(p.RawProperties) > 0 {
		if err := c.resolveAlias(p); err != nil {
			return err
		}
	}
	return c.deliver(p)
}

// deliver passes p, and the PUBLISH packets after it with the same header, to the
// handler. It collects the acknowledgements that the QoS requires, in the order of
// arrival and for every message, whether the handler wanted it or not.
// [MQTT-2.2.1-5, MQTT-3.3.4-1, MQTT-4.5.0-2, MQTT-4.6.0-2, MQTT-4.6.0-3]
func (c *Client) deliver(p *packet.Publish) error {
	in := c.conn.Scanner()
	switch p.QoS {
	case 0:
		for ok := true; ok; ok = c.decoder.Next(p, in) {
			c.handler.Message(p)
		}
	case 1:
		for ok := true; ok; ok = c.decoder.Next(p, in) {
			// [MQTT-4.3.2-5] After PUBACK the same id is a new message, DUP or not.
			c.handler.Message(p)
			// [MQTT-4.3.2-4] PUBACK follows once the handler has the message.
			c.replies = packet.AppendAck(c.replies, packet.PUBACK, p.PacketID)
		}
	case 2:
		for ok := true; ok; ok = c.decoder.Next(p, in) {
			if err := c.deliver2(p.PacketID); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Client) deliver2(id uint16) error {
	// [MQTT-4.3.3-10] Until PUBREL, the same id is the same message.
	if c.inbound2.add(id) {
		if err := c.checkQuota(); err != nil {
			return err
		}
		c.handler.Message(&c.pub)
	}
	// [MQTT-4.3.3-8]
	c.replies = packet.AppendAck(c.replies, packet.PUBREC, id)
	return nil
}

// badPublish is malformed for a PUBLISH: the error names the topic, if there is one.
func badPublish(f packet.Frame, err error) error {
	if len(f.Body) > 2 {
		topic := f.Body[2:min(len(f.Body), 2+int(binary.BigEndian.Uint16(f.Body)))]
		err = fmt.Errorf("%w (topic %.80q)", err, topic)
	}
	return malformed(err)
}

// checkQuota enforces the Receive Maximum of our CONNECT on the broker. Only QoS 2
// counts: QoS 1 messages are acknowledged at once.
func (c *Client) checkQuota() error {
	m := c.cfg.ReceiveMaximum
	if m != nil && c.inbound2.n > int(*m)+c.carriedOver() {
		// [MQTT-3.3.4-9]
		return protocolErrorf(packet.ReasonReceiveMaximumExceeded, "%d QoS 2 messages in flight, receive maximum %d", c.inbound2.n, *m)
	}
	return nil
}

// resolveAlias replaces a Topic Alias by its topic. [MQTT5 3.3.2.3.4]
func (c *Client) resolveAlias(p *packet.Publish) error {
	alias := p.TopicAlias()
	if alias == 0 {
		return nil
	}
	limit := uint16(0)
	if m := c.cfg.TopicAliasMaximum; m != nil {
		limit = *m
	}
	// [MQTT-3.1.2-26, MQTT-3.1.2-27] No alias above CONNECT's maximum; absent is 0.
	if alias > limit {
		return protocolErrorf(packet.ReasonTopicAliasInvalid, "topic alias %d, maximum %d", alias, limit)
	}
	if len(p.Topic) > 0 {
		if c.aliases == nil {
			c.aliases = make(map[uint16][]byte)
		}
		c.aliases[alias] = append(c.aliases[alias][:0], p.Topic...)
		return nil
	}
	topic, ok := c.aliases[alias]
	if !ok {
		return protocolErrorf(packet.ReasonProtocolError, "topic alias %d is not set", alias)
	}
	p.Topic = topic
	return nil
}

// decodeAck decodes f into c.ack.
func (c *Client) decodeAck(f packet.Frame) error {
	if c.ack == nil {
		c.ack = new(packet.Ack)
	}
	if err := c.ack.Decode(f, c.cfg.Version); err != nil {
		return malformed(err)
	}
	if c.cfg.Terse {
		return c.checkInfo(f.Type(), &c.ack.Properties)
	}
	return nil
}

// checkInfo rejects diagnostics that CONNECT has turned off. [MQTT-3.1.2-29] With
// Request Problem Information 0, only PUBLISH, CONNACK and DISCONNECT may have a
// Reason String or User Property. There is no such check for unrequested Response
// Information [MQTT-3.1.2-28]: the standard does not have a client refuse it.
func (c *Client) checkInfo(t packet.Type, p *packet.Properties) error {
	if c.cfg.Terse && (p.ReasonString != nil || len(p.UserProperties) > 0) {
		return protocolErrorf(packet.ReasonProtocolError, "%s with a reason string or user property, although CONNECT set request problem information to 0", t)
	}
	return nil
}

func (c *Client) onAck(f packet.Frame) error {
	if err := c.decodeAck(f); err != nil {
		return err
	}
	c.acks = append(c.acks, Ack{PacketID: c.ack.PacketID, Code: c.ack.Code})
	c.ackTypes = append(c.ackTypes, f.Type())
	for {
		id, ok := c.conn.Scanner().NextAck(f.First)
		if !ok {
			return nil
		}
		c.acks = append(c.acks, Ack{PacketID: id})
		c.ackTypes = append(c.ackTypes, f.Type())
	}
}

func (c *Client) onPubrel(f packet.Frame) error {
	if err := c.decodeAck(f); err != nil {
		return err
	}
	for id, ok := c.ack.PacketID, true; ok; id, ok = c.conn.Scanner().NextAck(f.First) {
		if err := c.release(id); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) release(id uint16) error {
	// [MQTT-4.3.3-11] PUBCOMP answers every PUBREL, also for an unknown id: the
	// broker may have missed the first PUBCOMP. [MQTT-4.3.3-12] The id is free again.
	if c.inbound2.remove(id) || c.cfg.Version != packet.V5 {
		c.replies = packet.AppendAck(c.replies, packet.PUBCOMP, id)
		return nil
	}
	a := packet.Ack{Type: packet.PUBCOMP, PacketID: id, Code: packet.ReasonPacketIdentifierNotFound}
	var err error
	c.replies, err = a.Append(c.replies, c.cfg.Version)
	return err
}

func (c *Client) onDisconnect(f packet.Frame) error {
	if c.cfg.Version != packet.V5 {
		return protocolErrorf(packet.ReasonProtocolError, "DISCONNECT from an MQTT %s server", c.cfg.Version)
	}
	var d packet.Disconnect
	if err := d.Decode(f, c.cfg.Version); err != nil {
		return malformed(err)
	}
	// [MQTT-3.14.2-2]
	if d.Properties.SessionExpiry != nil {
		return protocolErrorf(packet.ReasonProtocolError, "DISCONNECT (%s) with a session expiry interval, which only a client may send", d.Code)
	}
	e := &DisconnectedError{Code: d.Code}
	if r := d.Properties.ReasonString; r != nil {
		e.Reason = *r
	}
	if r := d.Properties.ServerReference; r != nil {
		e.ServerReference = *r
	}
	return e
}

// finishBatch applies the batch's acknowledgements to the window and appends its
// replies, all under one lock. Then it passes the acknowledgements to the handler.
// PUBRELs are appended in the order of their PUBRECs. [MQTT-4.6.0-4]
func (c *Client) finishBatch() {
	if len(c.acks) == 0 && len(c.replies) == 0 {
		return
	}
	out := c.conn.Begin()
	before := len(out)
	n := 0
	for i := range c.acks {
		var keep bool
		out, keep = c.apply(out, c.ackTypes[i], &c.acks[i])
		if keep {
			c.acks[n] = c.acks[i]
			n++
		}
	}
	if c.session != nil && len(c.session.pending) > 0 {
		out = c.resend(out)
	}
	out = append(out, c.replies...)
	if c.closing {
		// [MQTT-3.14.4-1] Nothing follows DISCONNECT.
		out = out[:before]
	}
	c.conn.End(out)
	c.replies = c.replies[:0]
	if n > 0 {
		c.notifyWaiters(c.acks[:n])
		c.handler.Acks(c.acks[:n])
	}
	c.acks, c.ackTypes = c.acks[:0], c.ackTypes[:0]
}

// apply moves one packet id to its next state. It reports whether the handler
// needs to see the acknowledgement: not if it is a repeated PUBREC, or if the id is
// not in use.
func (c *Client) apply(out []byte, t packet.Type, a *Ack) ([]byte, bool) {
	at := c.win.find(a.PacketID)
	state := uint8(idFree)
	if at != nil {
		state, a.Stamp = at.State, at.Value
	}
	switch {
	// [MQTT-4.3.2-3, MQTT-4.3.3-3, MQTT-4.3.3-5] Until here the message is unacknowledged.
	// [MQTT-4.4.0-2] An error code acknowledges it too.
	case t == packet.PUBACK && state == idPublish1,
		t == packet.PUBCOMP && state == idRelease,
		// [MQTT-4.3.3-4] A PUBREC with 0x80 or more ends the delivery without PUBREL.
		t == packet.PUBREC && state == idPublish2 && a.Code.IsError():
		c.win.free(at)
		a.Done = true
		return out, true
	case t == packet.PUBREC && state == idPublish2:
		at.State = idRelease
		if c.session != nil {
			c.session.released(a.PacketID)
		}
		return packet.AppendAck(out, packet.PUBREL, a.PacketID), true
	case t == packet.PUBREC && state == idRelease && !a.Code.IsError():
		return packet.AppendAck(out, packet.PUBREL, a.PacketID), false
	}
	c.unexpected.Add(1)
	if t == packet.PUBREC && state == idFree && !a.Code.IsError() {
		return c.answerUnknownPubrec(out, a.PacketID), false
	}
	return out, false
}

// answerUnknownPubrec appends the PUBREL for an id that is not in use, so that the
// broker can free the id.
func (c *Client) answerUnknownPubrec(out []byte, id uint16) []byte {
	if c.cfg.Version != packet.V5 {
		return packet.AppendAck(out, packet.PUBREL, id)
	}
	a := packet.Ack{Type: packet.PUBREL, PacketID: id, Code: packet.ReasonPacketIdentifierNotFound}
	if b, err := a.Append(out, c.cfg.Version); err == nil {
		return b
	}
	return out
}

// EndOf describes why a connection ended, in a few words. The text has no
// addresses, so that callers can count the errors of many clients by it.
func EndOf(err error) string {
	var op *net.OpError
	var de *DisconnectedError
	var gaveUp *GaveUpError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &gaveUp):
		return fmt.Sprintf("could not reconnect within %s: %s", gaveUp.Within, EndOf(gaveUp.Err))
	case errors.Is(err, wire.ErrClosed):
		return "closed by this side"
	case closedByBroker(err):
		return "closed by the broker"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset by the broker"
	case errors.As(err, &de):
		return de.Error()
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return err.Error()
}

// closedByBroker reports whether err means that the broker has closed the
// connection. The reader sees EOF, a writer EPIPE: which comes first is chance.
func closedByBroker(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}

// EndedSilently reports whether the broker closed or reset the connection without
// sending a reason.
func EndedSilently(err error) bool {
	return closedByBroker(err) || errors.Is(err, syscall.ECONNRESET)
}
