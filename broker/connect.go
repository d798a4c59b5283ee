package broker

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// connect handles the first packet. [MQTT-3.1.0-1]
func (c *client) connect(f packet.Frame) error {
	if f.Type() != packet.CONNECT {
		return &closeError{packet.ReasonProtocolError, "first packet is " + f.Type().String()}
	}
	var p packet.Connect
	// [MQTT-3.1.4-1]
	if err := p.Decode(f); err != nil {
		var malformed *packet.MalformedError
		if errors.As(err, &malformed) {
			c.refuse(claimedVersion(f.Body), malformed.Code)
		}
		return fmt.Errorf("%w: %v", errRefused, err)
	}
	c.version, c.v5 = p.Version, p.Version == packet.V5
	// [MQTT-2.1.3-1] From here on the flags have to be those of the version.
	c.wc.Scanner().SetVersion(p.Version)
	if m := p.Properties.MaximumPacketSize; c.v5 && m != nil {
		c.maxPacket = min(c.maxPacket, int(*m))
	}
	code := c.b.admit(&p)
	switch {
	case code != packet.ReasonSuccess:
		return c.turnAway(code)
	case c.v5 && p.Properties.AuthMethod != nil:
		return c.startExchange(&p)
	}
	if code = c.b.identify(&p); code != packet.ReasonSuccess {
		return c.turnAway(code)
	}
	return c.accept(&p)
}

// turnAway refuses a CONNECT, and returns the error that ends its connection:
// nothing after the CONNECT is read. [MQTT-3.1.4-6] [MQTT-3.2.2-7], [MQTT-3.1.4-5] of 3.1.1
func (c *client) turnAway(code packet.ReasonCode) error {
	c.refuse(c.version, code)
	return fmt.Errorf("%w: %s", errRefused, code)
}

// accept gives a client its session.
func (c *client) accept(p *packet.Connect) error {
	assigned := p.ClientID == ""
	present, code := c.b.enter(c, p)
	if code != packet.ReasonSuccess {
		return c.turnAway(code)
	}
	return c.start(p, present, assigned)
}

// claimedVersion reads the protocol version of a CONNECT that may be malformed.
func claimedVersion(body []byte) packet.Version {
	for _, name := range []string{"\x00\x04MQTT", "\x00\x06MQIsdp"} {
		if rest, ok := bytes.CutPrefix(body, []byte(name)); ok && len(rest) > 0 {
			if rest[0] >= byte(packet.V5) {
				return packet.V5
			}
			return packet.V311
		}
	}
	return packet.V311
}

// returnCodes are the return codes of 3.x for reason codes. [MQTT311 3.2.2.3]
var returnCodes = map[packet.ReasonCode]packet.ReasonCode{
	packet.ReasonUnsupportedProtocolVersion: 1,
	packet.ReasonClientIdentifierNotValid:   2,
	packet.ReasonServerUnavailable:          3,
	packet.ReasonServerBusy:                 3,
	packet.ReasonQuotaExceeded:              3,
	packet.ReasonServerShuttingDown:         3,
	packet.ReasonBadUserNameOrPassword:      4,
	packet.ReasonNotAuthorized:              5,
}

// refuse answers CONNECT with an error, if the version has a code for it.
// [MQTT-3.1.4-2], [MQTT-3.2.2-4] and [MQTT-3.2.2-6] of 3.1.1
func (c *client) refuse(v packet.Version, code packet.ReasonCode) {
	if v != packet.V5 {
		code = returnCodes[code]
		if code == 0 {
			return
		}
	}
	ack := packet.Connack{Code: code}
	if c.b.refers(v) && code == c.b.cfg.ServerReferenceCode {
		ack.Properties.ServerReference = &c.b.cfg.ServerReference
	}
	out := c.appendAcks(c.wc.Begin()) // an AUTH of the same batch goes first
	// [MQTT-3.1.2-24]
	if with, err := ack.Append(out, v); err == nil && len(with)-len(out) <= c.maxPacket {
		out = with
	}
	c.wc.End(out)
}

// refers reports whether clients of version v are referred to another server.
func (b *Broker) refers(v packet.Version) bool { return v == packet.V5 && b.cfg.ServerReference != "" }

// admit checks a well-formed CONNECT against the capabilities of the broker.
func (b *Broker) admit(p *packet.Connect) packet.ReasonCode {
	switch {
	case hasControl(p.ClientID), hasControl(p.Username), p.Will != nil && hasControl(p.Will.Topic):
		return packet.ReasonMalformedPacket
	// [MQTT-3.1.3-5] [MQTT31-3.1] In 3.1 more than 23 characters are answered with return code 2.
	case p.Version == packet.V31 && utf8.RuneCountInString(p.ClientID) > 23:
		return packet.ReasonClientIdentifierNotValid
	case b.refers(p.Version):
		return b.cfg.ServerReferenceCode // [MQTT5 4.11]
	// [MQTT-3.2.2-12]
	case p.Will != nil && p.Will.QoS > b.maxQoS:
		return packet.ReasonQoSNotSupported
	// [MQTT-3.2.2-13]
	case p.Will != nil && p.Will.Retain && b.cfg.RetainUnavailable:
		return packet.ReasonRetainNotSupported
	}
	return packet.ReasonSuccess
}

// sessionExpiry is the Session Expiry Interval in force, in seconds.
func (b *Broker) sessionExpiry(p *packet.Connect) uint32 {
	expiry := uint32(0)
	switch {
	case p.Version == packet.V5:
		if p.Properties.SessionExpiry != nil {
			expiry = *p.Properties.SessionExpiry
		}
	case !p.CleanStart:
		expiry = noExpiry
	}
	return b.capExpiry(expiry)
}

// grantKeepAlive is the Keep Alive in force, in seconds.
func (b *Broker) grantKeepAlive(p *packet.Connect) uint16 {
	limit := b.cfg.MaxKeepAlive / time.Second
	if p.Version == packet.V5 && limit > 0 && time.Duration(p.KeepAlive) > limit {
		return uint16(limit)
	}
	return p.KeepAlive
}

func (b *Broker) capExpiry(expiry uint32) uint32 {
	if limit := b.cfg.MaxSessionExpiry; limit > 0 {
		return min(expiry, uint32(min(max(limit/time.Second, 1), noExpiry)))
	}
	return expiry
}

// enter gives c its session: a new one or, unless the client wants a clean start,
// the one kept for its client identifier. It first ends a connection that has
// this session.
func (b *Broker) enter(c *client, p *packet.Connect) (present bool, code packet.ReasonCode) {
	for {
		old, present, code := b.tryEnter(c, p)
		if old == nil {
			return present, code
		}
		// [MQTT-3.1.4-3], [MQTT-3.1.4-2] of 3.1.1
		old.kick(packet.ReasonSessionTakenOver)
		<-old.done
	}
}

// tryEnter is enter, unless another connection has the session: it then returns
// this connection.
func (b *Broker) tryEnter(c *client, p *packet.Connect) (old *client, present bool, code packet.ReasonCode) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// [MQTT-3.1.3-2]
	s := b.sessions[p.ClientID]
	switch {
	case b.closed:
		return nil, false, packet.ReasonServerShuttingDown
	case s != nil && s.owner != nil:
		return s.owner, false, 0
	case b.entered >= b.cfg.MaxClients:
		return nil, false, packet.ReasonServerBusy
	case s != nil && (p.CleanStart || s.expiresAt != 0 && b.now() >= s.expiresAt):
		// [MQTT-3.1.2-4] [MQTT-3.1.4-4] [MQTT-3.2.2-2], [MQTT-3.1.2-6] of 3.1.1
		b.end(s)
		s = nil
	}
	// [MQTT-3.1.2-5] [MQTT-3.1.2-6] [MQTT-3.2.2-3], [MQTT-3.2.2-1] to [MQTT-3.2.2-3]
	// of 3.1.1
	if present = s != nil; present {
		s.inbound.resume()
	} else {
		if len(b.sessions) >= b.cfg.MaxSessions {
			return nil, false, packet.ReasonQuotaExceeded
		}
		s = &session{id: b.clientID(p), subs: map[string]*subscription{}}
		b.sessions[s.id] = s
	}
	// [MQTT-3.1.3-9] The client is back: its delayed will is not sent.
	s.owner, s.will, s.expiresAt, s.expiry = c, nil, 0, b.sessionExpiry(p)
	delete(b.timed, s)
	b.entered++
	c.sess, c.self = s, s
	return nil, present, 0
}

// clientID returns the identifier of a new session, and assigns one if the client
// has sent none. [MQTT-3.1.3-6] [MQTT-3.2.2-16] b.mu is held.
func (b *Broker) clientID(p *packet.Connect) string {
	if p.ClientID != "" {
		return strings.Clone(p.ClientID)
	}
	for {
		b.serial++
		id := fmt.Sprintf("auto-%d", b.serial)
		if b.sessions[id] == nil {
			return id
		}
	}
}

// start answers CONNECT and opens the session for messages.
func (c *client) start(p *packet.Connect, present, assigned bool) error {
	// [MQTT-3.1.2-7] [MQTT-3.1.2-8]
	c.will = newWill(p.Will, c.sess)
	limit := c.b.cfg.MaxInflight
	if c.v5 {
		if m := p.Properties.ReceiveMaximum; m != nil {
			// [MQTT-3.3.4-9]
			limit = min(limit, int(*m))
		}
		// [MQTT-3.1.2-27] If it is absent it is 0.
		if m := p.Properties.TopicAliasMaximum; m != nil && *m > 0 {
			c.given = &aliases{limit: int(min(*m, c.b.cfg.TopicAliasMaximum)), numbers: map[string]uint16{}}
		}
	}
	const half = int64(time.Second / 2)
	// [MQTT-3.1.2-22], [MQTT-3.1.2-24] of 3.1.1: one and a half times the Keep Alive.
	// [MQTT-3.2.2-22]
	c.keepAlive.Store(3 * half * int64(c.b.grantKeepAlive(p)))
	ack := packet.Connack{SessionPresent: present}
	if c.v5 {
		ack.Properties = c.connackProperties(p, assigned)
	}
	connack, err := ack.Append(nil, c.version)
	if err != nil {
		return fmt.Errorf("answer CONNECT: %w", err)
	}
	// [MQTT-3.1.2-24]
	if len(connack) > c.maxPacket {
		return fmt.Errorf("answer CONNECT: %d bytes exceed the client's Maximum Packet Size of %d", len(connack), c.maxPacket)
	}
	// [MQTT-3.1.4-5] [MQTT-3.2.0-1], [MQTT-3.1.4-4] of 3.1.1
	c.connected.Store(true)
	c.sess.attach(c, connack, limit)
	_ = c.wc.Flush() // after an error the next Fill fails, too
	return nil
}

// connackProperties tells an MQTT 5 client what differs from the defaults.
func (c *client) connackProperties(p *packet.Connect, assigned bool) packet.Properties {
	cfg, props := &c.b.cfg, packet.Properties{}
	if c.auth != nil {
		// [MQTT-4.12.0-5]
		props.AuthMethod, props.AuthData = p.Properties.AuthMethod, c.auth.final
	}
	if assigned {
		props.AssignedClientID = &c.sess.id
	}
	if asked := p.Properties.SessionExpiry; asked != nil && *asked != c.sess.expiry {
		props.SessionExpiry = &c.sess.expiry
	}
	if granted := c.b.grantKeepAlive(p); granted != p.KeepAlive {
		props.ServerKeepAlive = &granted
	}
	if cfg.ReceiveMaximum != 65_535 {
		props.ReceiveMaximum = &cfg.ReceiveMaximum
	}
	// [MQTT-3.2.2-9]
	if c.b.maxQoS < 2 {
		props.MaximumQoS = &c.b.maxQoS
	}
	if cfg.RetainUnavailable {
		props.RetainAvailable = new(byte)
	}
	if cfg.MaxPacketSize < packet.MaxPacketSize {
		size := uint32(cfg.MaxPacketSize)
		props.MaximumPacketSize = &size
	}
	props.TopicAliasMaximum = &cfg.TopicAliasMaximum
	return props
}

// onDisconnect handles the client's DISCONNECT. [MQTT5 3.14]
func (c *client) onDisconnect(f packet.Frame) error {
	var p packet.Disconnect
	if err := p.Decode(f, c.version); err != nil {
		return err
	}
	c.release()
	if e := p.Properties.SessionExpiry; c.v5 && e != nil && !c.setExpiry(*e) {
		return &closeError{packet.ReasonProtocolError, "session expiry set by DISCONNECT was 0 in CONNECT"}
	}
	// [MQTT-3.14.4-3], [MQTT-3.14.4-2] of 3.1.1: with any other reason the will is due.
	if p.Code == packet.ReasonNormalDisconnection {
		c.will = nil
	}
	return errDisconnected
}

// setExpiry changes the Session Expiry Interval and reports whether that is
// allowed: 0 must stay 0. [MQTT5 3.14.2.2.2]
func (c *client) setExpiry(seconds uint32) bool {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.sess.expiry == 0 && seconds != 0 {
		return false
	}
	c.sess.expiry = c.b.capExpiry(seconds)
	return true
}

// leave releases the session of c, which has ended, and publishes its will or
// schedules it.
func (b *Broker) leave(c *client) {
	s := c.sess
	s.detach()
	b.mu.Lock()
	var due []*will
	w := c.will
	c.will = nil
	if b.closed {
		w = nil
	}
	s.owner = nil
	b.entered--
	now := b.now()
	// [MQTT-3.1.2-23] [MQTT-4.1.0-2]
	if s.expiry == 0 {
		b.end(s)
	} else if s.expiry != noExpiry {
		s.expiresAt = now + int64(s.expiry)*1e9
	}
	if w != nil {
		if w.delay == 0 || s.expiry == 0 {
			due = append(due, w)
		} else {
			s.will, s.willAt = w, now+int64(w.delay)*1e9
		}
	}
	if s.expiresAt != 0 || s.will != nil {
		b.timed[s] = struct{}{}
		b.startSweeper()
	}
	b.mu.Unlock()
	b.publishWills(due)
}

// end removes a session that has no connection. A goroutine of its own publishes
// its will and hands over its messages of shared subscriptions, because this must
// not happen under b.mu. b.mu is held.
func (b *Broker) end(s *session) {
	if b.sessions[s.id] == s {
		delete(b.sessions, s.id)
	}
	delete(b.timed, s)
	b.subs.unsubscribeAll(s)
	// [MQTT-3.1.2-10] The will is due when the session ends.
	w := s.will
	s.will = nil
	if b.closed || w == nil && !s.sharing {
		return
	}
	b.wg.Add(1)
	go func() {
		defer b.wg.Done()
		if w != nil {
			b.publishWills([]*will{w})
		}
		b.handOver(s.orphans())
	}()
}
