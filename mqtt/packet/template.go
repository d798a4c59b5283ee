package packet

// A Template is a PUBLISH that was checked and encoded once, to be sent many times. Each
// copy costs a memory copy and the packet identifier. It is read-only after NewTemplate
// and may be shared.
type Template struct {
	packet  []byte
	idAt    int // offset of the packet identifier; 0 at QoS 0
	payload int // offset of the payload
	qos     byte
}

// NewTemplate encodes p for version v. It ignores p.PacketID. The error is an
// *InvalidError.
func NewTemplate(p *Publish, v Version) (*Template, error) {
	q := *p
	q.PacketID = 1
	b, err := q.Append(make([]byte, 0, 5+max(q.size(v), 0)), v)
	if err != nil {
		return nil, err
	}
	t := &Template{packet: b, payload: len(b) - len(p.Payload), qos: p.QoS}
	if p.QoS > 0 {
		t.idAt = 1 + VarintSize(q.size(v)) + 2 + len(p.Topic)
	}
	return t, nil
}

// Append appends the packet with packet identifier id, which it ignores at QoS 0. To
// resend a message, the caller sets DUP afterwards: dst[n] |= 0x08, where n was len(dst)
// before.
func (t *Template) Append(dst []byte, id uint16) []byte {
	n := len(dst)
	dst = append(dst, t.packet...)
	if t.idAt != 0 {
		at := dst[n+t.idAt:]
		at[0], at[1] = byte(id>>8), byte(id)
	}
	return dst
}

// Size returns the size of the packet in bytes, fixed header included.
func (t *Template) Size() int { return len(t.packet) }

// QoS returns the packet's QoS.
func (t *Template) QoS() byte { return t.qos }

// PayloadLen returns the size of the payload in bytes.
func (t *Template) PayloadLen() int { return len(t.packet) - t.payload }

// PayloadOffset returns the offset of the payload in the packet, for callers that change
// the payload of an appended packet.
func (t *Template) PayloadOffset() int { return t.payload }
