package mqtt

import (
	"context"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// chopped is a connection whose reads return no more than n bytes.
type chopped struct {
	net.Conn
	n int
}

func (c chopped) Read(b []byte) (int, error) { return c.Conn.Read(b[:min(c.n, len(b))]) }

// script returns the packets of a server in one stream: messages at each QoS, with sizes
// on both sides of a limit of the length field, a PUBREL, and a PINGRESP.
func script(t *testing.T) (raw []byte, messages []string) {
	t.Helper()
	raw = mqtttest.Hex(t, connack5)
	for i, size := range []int{0, 3, 118, 130} {
		p := packet.Publish{Topic: []byte("a/b"), Payload: make([]byte, size), QoS: byte(i % 3), PacketID: uint16(i)}
		if p.QoS == 0 {
			p.PacketID = 0
		}
		if i == 1 {
			p.RawProperties = []byte("\x26\x00\x01k\x00\x01v")
		}
		var err error
		if raw, err = p.Append(raw, packet.V5); err != nil {
			t.Fatal(err)
		}
		if p.QoS == 2 {
			raw = packet.AppendAck(raw, packet.PUBREL, p.PacketID)
		}
		messages = append(messages, "a/b="+string(p.Payload))
	}
	return packet.AppendPingresp(raw), messages
}

// hear sends parts to a client, one write each, which it reads at most n bytes at a time.
// It returns what the handler got and the first size bytes of the client's answers.
func hear(t *testing.T, size, n int, parts ...[]byte) (r *recorder, answers []byte) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	written, read := make(chan struct{}), make(chan []byte)
	go func() {
		defer close(written)
		for _, part := range parts {
			if _, err := near.Write(part); err != nil {
				return // the client has closed; its error is checked elsewhere
			}
		}
	}()
	go func() {
		// Read answers while writing parts: a pipe has no buffer.
		all := make([]byte, size)
		n, _ := io.ReadFull(near, all)
		<-written
		_ = near.Close()
		read <- all[:n]
	}()
	r = &recorder{end: make(chan struct{}, 10_000)}
	c, err := Connect(t.Context(), Config{
		Dial:    func(context.Context) (net.Conn, error) { return chopped{far, n}, nil },
		Version: packet.V5, ClientID: "c", CleanStart: true, Handler: r,
	})
	if err != nil {
		t.Fatal(err)
	}
	answers = <-read
	<-c.Done()
	c.Close()
	return r, answers
}

// TestSplits: the client's events and answers do not depend on how the network splits the
// stream: into two parts at any place, or into pieces of any size.
func TestSplits(t *testing.T) {
	raw, messages := script(t)
	want := mqtttest.Hex(t, "10 0e 0004 4d515454 05 02 0000 00 0001 63 40 02 0001 50 02 0002 70 02 0002")
	check := func(how string, n int, r *recorder, answers []byte) {
		t.Helper()
		if !slices.Equal(r.messages, messages) || !slices.Equal(answers, want) || EndOf(r.closed) != "closed by the broker" {
			t.Fatalf("%s %d: messages %q\nanswers % x, want\n        % x\nend %v", how, n, r.messages, answers, want, r.closed)
		}
	}
	for cut := 1; cut < len(raw); cut++ {
		r, answers := hear(t, len(want), len(raw), raw[:cut], raw[cut:])
		check("cut at", cut, r, answers)
	}
	for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 64, 127, 128, 129, len(raw)} {
		r, answers := hear(t, len(want), n, raw)
		check("pieces of", n, r, answers)
	}
}
