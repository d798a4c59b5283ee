package packet

// A Resizer is a Template whose payload may be cut to another length from one
// sending to the next, for messages of differing sizes. It is for one goroutine
// at a time.
type Resizer struct {
	template Template
	buf      []byte // room for the longest fixed header, variable header, largest payload
	head     int    // length of the variable header
	idAt     int    // of the packet identifier in it
}

// longestHeader is that of the fixed header: type and Remaining Length.
const longestHeader = 5

// NewResizer encodes p, whose payload is the largest that Resize may be asked
// for, for version v. The error is an *InvalidError.
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

// Resize returns the template with the first n bytes of the payload, valid
// until the next call. n must not be above the length of the payload.
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
