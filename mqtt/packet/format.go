package packet

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Format describes f in one line for tests and diagnostics, such as
//
//	PUBLISH q1 id=7 topic="a/b" payload=10B
//
// Of payloads, passwords and other binary data it shows only the length. For a packet
// that cannot be decoded it shows the error.
func Format(f Frame, v Version) string {
	l := line{v: v}
	l.add("%s", f.Type())
	if err := l.packet(f); err != nil {
		if bad, ok := errors.AsType[*MalformedError](err); ok {
			return fmt.Sprintf("%s malformed at byte %d: %s", f.Type(), bad.Offset, bad.Rule)
		}
	}
	return strings.Join(l.parts, " ")
}

// A line collects the parts of the description of one packet.
type line struct {
	parts []string
	v     Version
}

func (l *line) add(format string, args ...any) {
	l.parts = append(l.parts, fmt.Sprintf(format, args...))
}

func (l *line) flag(on bool, name string) {
	if on {
		l.parts = append(l.parts, name)
	}
}

func (l *line) packet(f Frame) error {
	switch f.Type() {
	case CONNECT:
		return l.connect(f)
	case CONNACK:
		return l.connack(f)
	case PUBLISH:
		return l.publish(f)
	case PUBACK, PUBREC, PUBREL, PUBCOMP:
		return l.ack(f)
	case SUBSCRIBE:
		return l.subscribe(f)
	case SUBACK:
		return l.suback(f)
	case UNSUBSCRIBE:
		return l.unsubscribe(f)
	case UNSUBACK:
		return l.unsuback(f)
	case PINGREQ, PINGRESP:
		return DecodePing(f, l.v)
	case DISCONNECT:
		return l.disconnect(f)
	case AUTH:
		return l.auth(f)
	}
	return &MalformedError{Rule: firstByteRule(f.First), Code: ReasonMalformedPacket}
}

func (l *line) connect(f Frame) error {
	var c Connect
	if err := c.Decode(f); err != nil {
		return err
	}
	l.add("v%s id=%q keepalive=%ds", c.Version, c.ClientID, c.KeepAlive)
	l.flag(c.CleanStart, "clean")
	if c.HasUsername {
		l.add("user=%q", c.Username)
	}
	if c.HasPassword {
		l.add("password=%dB", len(c.Password))
	}
	l.properties(CONNECT, &c.Properties)
	if c.Will != nil {
		l.add("will q%d topic=%q payload=%dB", c.Will.QoS, c.Will.Topic, len(c.Will.Payload))
		l.flag(c.Will.Retain, "retain")
		l.properties(WillProperties, &c.Will.Properties)
	}
	return nil
}

func (l *line) connack(f Frame) error {
	var c Connack
	if err := c.Decode(f, l.v); err != nil {
		return err
	}
	l.flag(c.SessionPresent, "session-present")
	if l.v == V5 {
		l.code(c.Code)
	} else {
		l.add("code=%d (%s)", byte(c.Code), ConnackReturnString(c.Code))
	}
	l.properties(CONNACK, &c.Properties)
	return nil
}

func (l *line) publish(f Frame) error {
	var p Publish
	if err := p.Decode(f, l.v); err != nil {
		return err
	}
	l.add("q%d", p.QoS)
	l.flag(p.Dup, "dup")
	l.flag(p.Retain, "retain")
	if p.QoS > 0 {
		l.add("id=%d", p.PacketID)
	}
	l.add("topic=%q payload=%dB", p.Topic, len(p.Payload))
	l.rawProperties(PUBLISH, p.RawProperties)
	return nil
}

func (l *line) ack(f Frame) error {
	var a Ack
	if err := a.Decode(f, l.v); err != nil {
		return err
	}
	l.add("id=%d", a.PacketID)
	if a.Code != ReasonSuccess {
		l.code(a.Code)
	}
	l.properties(a.Type, &a.Properties)
	return nil
}

func (l *line) subscribe(f Frame) error {
	var s Subscribe
	if err := s.Decode(f, l.v); err != nil {
		return err
	}
	l.add("id=%d", s.PacketID)
	for _, sub := range s.Subscriptions {
		l.add("filter=%q q%d", sub.Filter, sub.QoS)
		l.flag(sub.NoLocal, "no-local")
		l.flag(sub.RetainAsPublished, "retain-as-published")
		l.flag(sub.RetainHandling > 0, "retain-handling="+strconv.Itoa(int(sub.RetainHandling)))
	}
	l.properties(SUBSCRIBE, &s.Properties)
	return nil
}

func (l *line) suback(f Frame) error {
	var s Suback
	if err := s.Decode(f, l.v); err != nil {
		return err
	}
	l.add("id=%d codes=% X", s.PacketID, rawCodes(s.Codes))
	l.properties(SUBACK, &s.Properties)
	return nil
}

func (l *line) unsubscribe(f Frame) error {
	var u Unsubscribe
	if err := u.Decode(f, l.v); err != nil {
		return err
	}
	l.add("id=%d", u.PacketID)
	for _, s := range u.Filters {
		l.add("filter=%q", s)
	}
	l.properties(UNSUBSCRIBE, &u.Properties)
	return nil
}

func (l *line) unsuback(f Frame) error {
	var u Unsuback
	if err := u.Decode(f, l.v); err != nil {
		return err
	}
	l.add("id=%d", u.PacketID)
	if l.v == V5 {
		l.add("codes=% X", rawCodes(u.Codes))
	}
	l.properties(UNSUBACK, &u.Properties)
	return nil
}

func (l *line) disconnect(f Frame) error {
	var d Disconnect
	if err := d.Decode(f, l.v); err != nil {
		return err
	}
	switch {
	case l.v != V5:
	case d.Code == ReasonNormalDisconnection:
		l.add("code=0x00 (Normal disconnection)")
	default:
		l.code(d.Code)
	}
	l.properties(DISCONNECT, &d.Properties)
	return nil
}

func (l *line) auth(f Frame) error {
	var a Auth
	if err := a.Decode(f, l.v); err != nil {
		return err
	}
	l.code(a.Code)
	l.properties(AUTH, &a.Properties)
	return nil
}

func (l *line) code(c ReasonCode) { l.add("code=0x%02X (%s)", byte(c), c) }

func rawCodes(codes []ReasonCode) []byte {
	b := make([]byte, len(codes))
	for i, c := range codes {
		b[i] = byte(c)
	}
	return b
}

func (l *line) properties(t Type, p *Properties) {
	if raw, err := AppendProperties(nil, t, p); err == nil {
		l.rawProperties(t, raw)
	}
}

// rawProperties adds the properties, with the names of the specification.
func (l *line) rawProperties(t Type, raw []byte) {
	r := reader{body: raw, pkt: t}
	var words []string
	for r.left() > 0 {
		p := r.property()
		words = append(words, p.String())
	}
	if len(words) > 0 {
		l.add("{%s}", strings.Join(words, ", "))
	}
}

// String returns name=value. Of binary data, which may be secret, it gives the length.
func (p property) String() string {
	info := propertyTable[p.id]
	switch info.kind {
	case kindText:
		return fmt.Sprintf("%s=%q", info.name, p.text)
	case kindPair:
		return fmt.Sprintf("%s %q=%q", info.name, p.text, p.value)
	case kindBinary:
		return fmt.Sprintf("%s=%dB", info.name, len(p.text))
	}
	return fmt.Sprintf("%s=%d", info.name, p.num)
}
