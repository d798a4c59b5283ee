package packet

import (
	"bytes"
	"testing"
)

// TestResizer compares every length around the limits of Remaining Length with a packet
// encoded for that length, both shrinking and growing.
func TestResizer(t *testing.T) {
	const largest = 1<<14 + 300
	content := make([]byte, largest)
	for i := range content {
		content[i] = byte(i * 7)
	}
	for _, v := range []Version{V311, V5} {
		for qos := byte(0); qos <= 2; qos++ {
			p := Publish{QoS: qos, Topic: []byte("a/topic"), Payload: content, PacketID: 1}
			if qos == 0 {
				p.PacketID = 0
			}
			if v == V5 {
				if err := p.SetProperties(&Properties{UserProperties: []UserProperty{{"k", "v"}}}); err != nil {
					t.Fatal(err)
				}
			}
			r, err := NewResizer(&p, v)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{largest, 0, 1, 90, 100, 110, 111, 112, 113, 114, 115, 116, 117, 118, 127, 128, 16_340, 16_384, 100, largest} {
				p.Payload, p.PacketID = content[:n], 0x1234
				if qos == 0 {
					p.PacketID = 0
				}
				want, err := p.Append(nil, v)
				if err != nil {
					t.Fatal(err)
				}
				tmpl := r.Resize(n)
				got := tmpl.Append(nil, 0x1234)
				if !bytes.Equal(got, want) || tmpl.PayloadLen() != n || !bytes.Equal(got[tmpl.PayloadOffset():], content[:n]) {
					t.Fatalf("MQTT %s, QoS %d, %d bytes:\ngot  % x\nwant % x", v, qos, n, got[:40], want[:40])
				}
			}
		}
	}
}

func TestResizerAllocs(t *testing.T) {
	r, err := NewResizer(&Publish{QoS: 1, Topic: []byte("t"), Payload: make([]byte, 1000), PacketID: 1}, V5)
	if err != nil {
		t.Fatal(err)
	}
	dst, n := make([]byte, 0, 2000), 0
	if a := testing.AllocsPerRun(1000, func() { n = (n + 37) % 1000; dst = r.Resize(n).Append(dst[:0], 7) }); a != 0 {
		t.Errorf("%g allocations", a)
	}
}
