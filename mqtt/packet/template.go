package packet

// A Template is one PUBLISH, checked and encoded in advance: sending it is a
// copy and two bytes of packet identifier. It is read-only after NewTemplate
// and may be shared.
type Template struct {
	packet  []byte
	idAt    int // of the packet identifier; 0 at QoS 0
	payload int // offset of the payload
	qos     byte
}

// NewTemplate encodes p for version v; p.PacketID is of no account. The error
// is an *InvalidError.
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

// Append appends the packet with packet identifier id, which is not used at
// QoS 0. To send it again, the caller sets DUP: dst[n] |= 0x08, where n was
// len(dst) before.
func (t *Template) Append(dst []byte, id uint16) []byte {
	n := len(dst)
	dst = append(dst, t.packet...)
	if t.idAt != 0 {
		at := dst[n+t.idAt:]
		at[0], at[1] = byte(id>>8), byte(id)
	}
	return dst
}

// Size returns the length of the packet in bytes, fixed header included.
func (t *Template) Size() int { return len(t.packet) }

// QoS returns the packet's QoS.
func (t *Template) QoS() byte { return t.qos }

// PayloadLen returns the length of the payload in bytes.
func (t *Template) PayloadLen() int { return len(t.packet) - t.payload }

// PayloadOffset returns where the payload starts, counted from the start of
// the packet, for callers that stamp it in place.
func (t *Template) PayloadOffset() int { return t.payload }
