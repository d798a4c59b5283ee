package load

import (
	"bytes"

	"github.com/mqttload/mqttload/scenarios"
)

// payloadBytes is the payload of every message of a case or, where messages
// differ, that of the largest before it is filled in. The first bytes belong to
// the stamp, where there is one.
func payloadBytes(p scenarios.Payload) []byte {
	if b, ok := p.Fixed(); ok {
		return b
	}
	b := make([]byte, p.Max())
	if f := p.Filler(0, 0); p.Kind != scenarios.PayloadTemplate {
		f.Fill(b, 0, 0)
	}
	return b
}

// varied is how the messages of a flow differ; nil where they do not.
type varied struct {
	filler *scenarios.Filler
	sized  bool // in size: each is the beginning of one content
	opaque bool // in a way that only the sender knows
}

func newVaried(c *scenarios.Case, stream uint32) *varied {
	f := c.Payload.Filler(c.Load.Seed, uint64(stream))
	if f == nil {
		return nil
	}
	return &varied{filler: f, sized: c.Payload.Kind != scenarios.PayloadTemplate, opaque: !c.Payload.Verifiable()}
}

// intact reports whether b is message seq of the flow, behind the stamp.
func (r *receipt) intact(b []byte, seq uint64) bool {
	v, want := r.flow.varied, r.flow.pub.payload
	if v == nil {
		return len(b) == len(want) && bytes.Equal(b[scenarios.StampSize:], want[scenarios.StampSize:])
	}
	if len(b) != v.filler.Size(seq) {
		return false
	}
	switch {
	case v.opaque:
		return true
	case !v.sized:
		in := r.in
		in.scratch = append(in.scratch[:0], b...)
		v.filler.Fill(in.scratch, seq, 0)
		want = in.scratch
	}
	return bytes.Equal(b[scenarios.StampSize:], want[scenarios.StampSize:len(b)])
}
