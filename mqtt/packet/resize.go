package packet

// A Resizer is a Template for messages of different sizes: its payload can be cut to
// another length for each message. It is for one goroutine at a time.
type Resizer struct {
	template Template
	buf      []byte // the longest fixed header, the variable header, the largest payload
	head     int    // length of the variable header
	idAt     int    // offset of the packet identifier in the variable header
}

// longestHeader is the largest size of a fixed header: type and Remaining Length.
const longestHeader = 5

// NewResizer encodes p for version v. The payload of p is the largest one. The error is
// an *InvalidError.
func NewResizer(p *Publish, v Version) (*Resizer, error) {
	t, err := NewTemplate(p, v)
	if err != nil {
		return nil, err
	}
	header := 2
	for VarintSize(len(t.packet)-header) != header-1 {
		header++
	}
	r := &Resizer{head: t.payload - header, idAt: t.idAt - header}
	r.buf = append(make([]byte, longestHeader, longestHeader+len(t.packet)-header), t.packet[header:]...)
	r.template = *t
	return r, nil
}

// Resize returns a template with the first n bytes of the payload. n must not be larger
// than the payload. The template is valid until the next call.
func (r *Resizer) Resize(n int) *Template {
	t, remaining := &r.template, r.head+n
	size := VarintSize(remaining)
	start := longestHeader - 1 - size
	first := t.packet[0]
	_ = AppendVarint(append(r.buf[:start], first), remaining)
	t.packet, t.payload = r.buf[start:longestHeader+remaining], 1+size+r.head
	if t.idAt != 0 {
		t.idAt = 1 + size + r.idAt
	}
	return t
}
