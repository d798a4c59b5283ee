package packet

import "encoding/binary"

// AppendAck appends a PUBACK, PUBREC, PUBREL or PUBCOMP that reports success: four
// bytes, the same in every version. The UNSUBACK of 3.x has this form too. The caller
// must pass the id of the packet that is acknowledged; it must not be 0.
// [MQTT-2.2.1-5], [MQTT-2.3.1-6] of 3.1.1
func AppendAck(dst []byte, t Type, id uint16) []byte {
	return append(dst, firstByte(t), 2, byte(id>>8), byte(id))
}

func isAck(t Type) bool { return t >= PUBACK && t <= PUBCOMP }

// Append appends a, encoded for version v, to dst. It uses the shortest form: it
// leaves out the reason code if that is Success and there are no properties, and both
// in 3.x. On error, which is an *InvalidError, it returns dst unchanged.
func (a *Ack) Append(dst []byte, v Version) ([]byte, error) {
	w := begin(dst, a.Type)
	if !isAck(a.Type) {
		w.fail("type", "must be PUBACK, PUBREC, PUBREL or PUBCOMP")
	}
	w.packetID(a.PacketID)
	if v == V5 {
		w.reasonAndProperties(a.Code, &a.Properties)
	}
	return w.end()
}

// reasonAndProperties appends a reason code and properties, in the shortest form.
func (w *writer) reasonAndProperties(c ReasonCode, p *Properties) {
	switch {
	case !p.IsZero():
		w.reason(c)
		w.properties(w.pkt, p)
	case c != ReasonSuccess:
		w.reason(c)
	}
}

// Decode decodes f, a PUBACK, PUBREC, PUBREL or PUBCOMP of version v, into a. It
// allocates only for properties. The error is a *MalformedError.
func (a *Ack) Decode(f Frame, v Version) error {
	*a = Ack{Type: f.Type()}
	if len(f.Body) == 2 && isAck(a.Type) && f.First == firstByte(a.Type) {
		if a.PacketID = binary.BigEndian.Uint16(f.Body); a.PacketID != 0 {
			return nil
		}
	}
	want := a.Type
	if !isAck(want) {
		want = PUBACK
	}
	r := open(f, want, v)
	a.PacketID = r.packetID()
	if v == V5 {
		a.Code = r.reasonAndProperties(&a.Properties)
	}
	return r.close()
}

// reasonAndProperties reads a reason code and properties, each of which may be
// missing. A missing reason code is Success.
func (r *reader) reasonAndProperties(p *Properties) (c ReasonCode) {
	if r.left() > 0 {
		c = r.reason()
	}
	if r.left() > 0 {
		r.properties(r.pkt, p)
	}
	return c
}
