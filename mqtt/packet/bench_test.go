package packet

import (
	"bytes"
	"fmt"
	"testing"
)

// publishOf returns an encoded PUBLISH and its frame.
func publishOf(t testing.TB, qos byte, payload int, v Version) (Publish, Frame) {
	t.Helper()
	p := Publish{QoS: qos, Topic: []byte("bench/12/messages"), Payload: bytes.Repeat([]byte("x"), payload)}
	if qos > 0 {
		p.PacketID = 1234
	}
	raw, err := p.Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	f, ok, err := scan(raw, v)
	if err != nil || !ok {
		t.Fatal(err)
	}
	return p, f
}

// The path of a message does not allocate, nor does an encoder if dst has room.
func TestNoAllocations(t *testing.T) {
	dst := make([]byte, 0, 64<<10)
	for _, g := range readGoldens(t) {
		if g.fault != "" {
			continue
		}
		c, err := decode(g.raw, g.v)
		if err != nil {
			t.Fatal(err)
		}
		if g.again != nil && len(g.again) == 0 {
			continue
		}
		wantNoAllocs(t, g.name+" Append", func() { _, _ = c.Append(dst, g.v) })
		f, _, _ := scan(g.raw, g.v)
		switch c := c.(type) {
		case *Publish:
			wantNoAllocs(t, g.name+" Decode", func() { _ = c.Decode(f, g.v) })
		case *Ack:
			if c.Properties.IsZero() {
				wantNoAllocs(t, g.name+" Decode", func() { _ = c.Decode(f, g.v) })
			}
		}
	}
	wantNoAllocs(t, "AppendAck", func() { _ = AppendAck(dst, PUBREL, 7) })
	p, _ := publishOf(t, 1, 10, V5)
	tmpl, err := NewTemplate(&p, V5)
	if err != nil {
		t.Fatal(err)
	}
	wantNoAllocs(t, "Template", func() { _ = tmpl.Append(dst, 7) })
}

// The read path of a connection in steady state.
func TestReadPathNoAllocations(t *testing.T) {
	raw, _ := stream(t)
	s := NewScanner(make([]byte, 4096), 0)
	var d PublishDecoder
	var p Publish
	read := func() {
		s.Advance(copy(s.Space(), raw))
		for {
			f, ok, err := s.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				return
			}
			if f.Type() == PUBLISH {
				err = d.Decode(&p, f, V5)
			} else {
				err = DecodePing(f, V5)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	read()
	wantNoAllocs(t, "read path", read)
	wantNoAllocs(t, "MatchTopic", func() { _ = MatchTopic("bench/+/#", "bench/12/messages") })
	wantNoAllocs(t, "ValidateTopicFilter", func() { _ = ValidateTopicFilter("$share/group/a/+/a/long/filter/of/many/levels/#") })
}

func wantNoAllocs(t *testing.T, what string, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(20, f); n != 0 {
		t.Errorf("%s: %v allocations", what, n)
	}
}

// The decoder must reject a bad topic after a good one, and must not keep a topic that
// points into a buffer.
func TestPublishDecoder(t *testing.T) {
	var d PublishDecoder
	var p Publish
	buf := []byte{0, 1, 'a', 'x'}
	for _, c := range []struct {
		topic byte
		ok    bool
	}{{'a', true}, {'a', true}, {'#', false}, {'a', true}, {'b', true}, {'+', false}, {0, false}, {'b', true}} {
		buf[2] = c.topic
		err := d.Decode(&p, Frame{First: 0x30, Body: buf}, V311)
		if (err == nil) != c.ok {
			t.Errorf("topic %q: %v", c.topic, err)
		}
		if err == nil && (string(p.Topic) != string(c.topic) || string(p.Payload) != "x") {
			t.Errorf("topic %q, payload %q", p.Topic, p.Payload)
		}
	}
}

func eachPublish(b *testing.B, run func(b *testing.B, qos byte, payload int)) {
	for qos := range byte(3) {
		for _, payload := range []int{10, 1024, 8192} {
			b.Run(fmt.Sprintf("qos=%d/payload=%d", qos, payload), func(b *testing.B) {
				b.ReportAllocs()
				run(b, qos, payload)
			})
		}
	}
}

func BenchmarkPublishDecode(b *testing.B) {
	eachPublish(b, func(b *testing.B, qos byte, payload int) {
		var p Publish
		_, f := publishOf(b, qos, payload, V5)
		for b.Loop() {
			if err := p.Decode(f, V5); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkPublishDecoder(b *testing.B) {
	eachPublish(b, func(b *testing.B, qos byte, payload int) {
		var d PublishDecoder
		var p Publish
		_, f := publishOf(b, qos, payload, V5)
		for b.Loop() {
			if err := d.Decode(&p, f, V5); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkPublishAppend(b *testing.B) {
	eachPublish(b, func(b *testing.B, qos byte, payload int) {
		p, _ := publishOf(b, qos, payload, V5)
		dst := make([]byte, 0, 16<<10)
		for b.Loop() {
			if _, err := p.Append(dst, V5); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkTemplateAppend(b *testing.B) {
	eachPublish(b, func(b *testing.B, qos byte, payload int) {
		p, _ := publishOf(b, qos, payload, V5)
		tmpl, err := NewTemplate(&p, V5)
		if err != nil {
			b.Fatal(err)
		}
		dst := make([]byte, 0, 16<<10)
		for b.Loop() {
			_ = tmpl.Append(dst, 1234)
		}
	})
}

// BenchmarkScannerNext counts one packet as one operation.
func BenchmarkScannerNext(b *testing.B) {
	for _, payload := range []int{10, 1024} {
		b.Run(fmt.Sprintf("payload=%d", payload), func(b *testing.B) {
			p, _ := publishOf(b, 0, payload, V311)
			var raw []byte
			for len(raw) < 60<<10 {
				raw, _ = p.Append(raw, V311)
			}
			buf := make([]byte, 64<<10)
			copy(buf, raw)
			s := NewScanner(buf, 0)
			b.ReportAllocs()
			for b.Loop() {
				if _, ok, _ := s.Next(); !ok {
					_ = s.Space()
					s.Advance(len(raw))
				}
			}
		})
	}
}

func BenchmarkAckDecode(b *testing.B) {
	f := Frame{First: 0x40, Body: []byte{1, 2}}
	var a Ack
	b.ReportAllocs()
	for b.Loop() {
		if err := a.Decode(f, V5); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMatchTopic(b *testing.B) {
	for b.Loop() {
		if !MatchTopic("bench/+/messages/#", "bench/12/messages/of/many") {
			b.Fatal("no match")
		}
	}
}
