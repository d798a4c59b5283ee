package packet

import "encoding/binary"

// AppendAck appends a PUBACK, PUBREC, PUBREL or PUBCOMP that reports success:
// four bytes, the same in every version. It also makes the UNSUBACK of 3.x.
// The caller sees to it that id is not 0, and is that of the packet which is
// acknowledged. [MQTT-2.2.1-5], [MQTT-2.3.1-6] of 3.1.1
func AppendAck(dst []byte, t Type, id uint16) []byte {
	return append(dst, firstByte(t), 2, byte(id>>8), byte(id))
}

func isAck(t Type) bool { return t >= PUBACK && t <= PUBCOMP }

// Append appends a as one control packet of version v, in its shortest form:
// the reason code is left out when it is Success and no property follows, and
// in 3.x both are. On an error, an *InvalidError, dst is returned as it was.
func (a *Ack) Append(dst []byte, v Version) ([]byte, error) {
	w := begin(dst, a.Type)
	if !isAck(a.Type) {
		w.fail("type", "must be PUBACK, PUBREC, PUBREL or PUBCOMP")
	}
	w.packetID(a.PacketID)
	if v == V5 {
		w.outcome(a.Code, &a.Properties)
	}
	return w.end()
}

// outcome appends a reason code and properties where they say something.
func (w *writer) outcome(c ReasonCode, p *Properties) {
	switch bare := p.IsZero(); {
	case !bare:
		w.reason(c)
		w.properties(w.pkt, p)
	case c != ReasonSuccess:
		w.reason(c)
	}
}

// Decode reads f, a PUBACK, PUBREC, PUBREL or PUBCOMP of version v, into a.
// Nothing is allocated unless there are properties. The error is a
// *MalformedError.
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
		a.Code = r.outcome(&a.Properties)
	}
	return r.close()
}

// outcome reads what [writer.outcome] appends; nothing left means Success.
func (r *reader) outcome(p *Properties) (c ReasonCode) {
	if r.left() > 0 {
		c = r.reason()
	}
	if r.left() > 0 {
		r.properties(r.pkt, p)
	}
	return c
}
