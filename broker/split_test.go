package broker

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// chopped is a connection whose reads return no more than n bytes.
type chopped struct {
	net.Conn
	n int
}

func (c chopped) Read(b []byte) (int, error) { return c.Conn.Read(b[:min(c.n, len(b))]) }

// life is everything that a client sends to a broker on which it is alone, as one
// stream. It has packets on both sides of a limit of the length field.
func life(t *testing.T, v packet.Version) (raw []byte) {
	t.Helper()
	add := func(b []byte, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, b...)
	}
	conn := clean(v, "split")
	conn.Will = &packet.Will{Topic: "will", Payload: []byte("w")}
	conn.HasUsername, conn.Username = true, "user"
	add(conn.Append(nil))
	sub := packet.Subscribe{PacketID: 1, Subscriptions: []packet.Subscription{{Filter: "a/+", QoS: 1}, {Filter: "b/#"}}}
	if v == packet.V5 {
		sub.Properties.SubscriptionIDs = []uint32{200}
	}
	add(sub.Append(nil, v))
	for i, size := range []int{0, 3, 118, 130} {
		p := packet.Publish{Topic: []byte("a/b"), Payload: make([]byte, size), QoS: byte(i % 3), PacketID: uint16(i)}
		if v == packet.V5 && i == 3 {
			p.RawProperties = []byte("\x26\x00\x01k\x00\x01v")
		}
		if p.QoS == 0 {
			p.PacketID = 0
		}
		add(p.Append(nil, v))
		if p.QoS == 2 {
			add(packet.AppendAck(nil, packet.PUBREL, p.PacketID), nil)
		}
	}
	add((&packet.Unsubscribe{PacketID: 9, Filters: []string{"b/#"}}).Append(nil, v))
	add(packet.AppendPingreq(nil), nil)
	return raw
}

// converse writes parts, one write each, over a pipe whose reads return at most n
// bytes. It returns the broker's packets sorted, because the order of answers and
// messages may vary.
func converse(t *testing.T, v packet.Version, n int, parts ...[]byte) (said []string) {
	t.Helper()
	b := New(Config{})
	defer b.Close()
	near, far := net.Pipe()
	go b.ServeConn(chopped{far, n})
	written := make(chan struct{})
	go func() {
		defer close(written)
		for _, part := range parts {
			if _, err := near.Write(part); err != nil {
				return // the broker has hung up: the packets tell
			}
		}
	}()
	c := peerOf(t, near)
	c.v = v
	for range packetsOfLife {
		f, err := c.next()
		if err != nil {
			t.Fatalf("after %q: %v", said, err)
		}
		said = append(said, packet.Format(f, v))
	}
	<-written
	c.sync() // nothing more comes
	c.leave()
	slices.Sort(said)
	return said
}

// packetsOfLife is what the broker says to it: CONNACK, SUBACK, PUBACK, PUBREC,
// PUBCOMP, UNSUBACK, PINGRESP, and a PUBLISH for each of four.
const packetsOfLife = 11

// TestSplits: the broker sends the same packets however the network splits the stream
// of a client: in two at any place, or into pieces of any size from one byte up.
func TestSplits(t *testing.T) {
	for _, v := range versions {
		t.Run(v.String(), func(t *testing.T) {
			raw := life(t, v)
			want := converse(t, v, len(raw), raw)
			check := func(how string, n int, got []string) {
				t.Helper()
				if !slices.Equal(got, want) {
					t.Fatalf("%s %d:\n%s\nin one piece:\n%s", how, n, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
			for cut := 1; cut < len(raw); cut++ {
				check("cut at", cut, converse(t, v, len(raw), raw[:cut], raw[cut:]))
			}
			for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 64, 127, 128, 129} {
				check("pieces of", n, converse(t, v, n, raw))
			}
		})
	}
}
