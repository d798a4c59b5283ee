// Package mqtttest helps to test MQTT clients and brokers. A [Peer] sends and
// expects exact packets, a [Fake] is a scripted broker, a [Target] the cheapest
// other end of a measurement, and probes are packets, valid and invalid, made from
// the standard's tables.
//
// Only tests and the nested module internal/interop import it: the program must
// not.
package mqtttest

import (
	"encoding/hex"
	"io"
	"net"
	"strings"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// patience bounds every wait of a Peer, so that a test fails instead of hanging.
const patience = 10 * time.Second

// T is the part of *testing.T that a [Peer] needs. Programs outside of tests that
// use a [Target] then do not link package testing.
type T interface {
	Helper()
	Cleanup(f func())
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Peer is an end of a connection that a test controls. Packets are written in
// hex, and blanks are ignored: "30 05 0001 61 6869".
type Peer struct {
	t       T
	nc      net.Conn
	scan    *packet.Scanner
	version packet.Version
	// Patience is the timeout of every wait; [NewPeer] sets ten seconds.
	Patience time.Duration
}

// NewPeer makes a Peer of nc, which is closed when the test ends.
func NewPeer(t T, nc net.Conn, v packet.Version) *Peer {
	t.Cleanup(func() { _ = nc.Close() })
	return &Peer{t: t, nc: nc, scan: packet.NewScanner(make([]byte, 64<<10), 0), version: v, Patience: patience}
}

// Pipe returns a Peer and the other end of its connection.
func Pipe(t T, v packet.Version) (*Peer, net.Conn) {
	a, b := net.Pipe()
	return NewPeer(t, a, v), b
}

// Hex decodes hex with blanks.
func Hex(t T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatalf("bad hex %q: %v", s, err)
	}
	return b
}

// Send writes bytes given in hex.
func (p *Peer) Send(hexBytes string) {
	p.t.Helper()
	p.SendBytes(Hex(p.t, hexBytes))
}

// SendBytes writes b.
func (p *Peer) SendBytes(b []byte) {
	p.t.Helper()
	_ = p.nc.SetWriteDeadline(time.Now().Add(p.Patience))
	if _, err := p.nc.Write(b); err != nil {
		p.t.Fatalf("send % x: %v", b, err)
	}
}

// TrySend writes b, and ignores errors: the connection may have ended.
func (p *Peer) TrySend(b []byte) {
	_ = p.nc.SetWriteDeadline(time.Now().Add(p.Patience))
	_, _ = p.nc.Write(b)
}

// Next returns the next packet, valid until the following call.
func (p *Peer) Next() packet.Frame {
	p.t.Helper()
	f, err := p.next()
	if err != nil {
		p.t.Fatalf("wait for a packet: %v", err)
	}
	return f
}

// TryNext is [Peer.Next] for a connection that may have ended.
func (p *Peer) TryNext() (packet.Frame, error) { return p.next() }

func (p *Peer) next() (packet.Frame, error) {
	_ = p.nc.SetReadDeadline(time.Now().Add(p.Patience))
	for {
		f, ok, err := p.scan.Next()
		if ok || err != nil {
			return f, err
		}
		n, err := p.nc.Read(p.scan.Space())
		if n == 0 && err != nil {
			return f, err
		}
		p.scan.Advance(n)
	}
}

// Bytes returns the bytes of a frame on the wire.
func Bytes(f packet.Frame) []byte {
	b := []byte{f.First}
	for n := len(f.Body); ; {
		d := byte(n & 0x7f)
		if n >>= 7; n > 0 {
			b = append(b, d|0x80)
			continue
		}
		b = append(b, d)
		break
	}
	return append(b, f.Body...)
}

// Expect fails the test unless the next packet is exactly the one in hex.
func (p *Peer) Expect(hexBytes string) {
	p.t.Helper()
	f := p.Next()
	want := Hex(p.t, hexBytes)
	if got := Bytes(f); string(got) != string(want) {
		p.t.Fatalf("got  %s\n     % x\nwant % x", packet.Format(f, p.version), got, want)
	}
}

// ExpectType returns the next packet, which must be of type typ.
func (p *Peer) ExpectType(typ packet.Type) packet.Frame {
	p.t.Helper()
	f := p.Next()
	if f.Type() != typ {
		p.t.Fatalf("got %s, want %s", packet.Format(f, p.version), typ)
	}
	return f
}

// ExpectEnd fails the test unless the other side closes without another packet.
func (p *Peer) ExpectEnd() {
	p.t.Helper()
	f, err := p.next()
	if err == nil {
		p.t.Fatalf("got %s, want the end of the connection", packet.Format(f, p.version))
	}
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		p.t.Fatal("the connection was not closed")
	}
}

// Close closes the peer's end.
func (p *Peer) Close() { _ = p.nc.Close() }

// Drain reads and discards everything until the connection ends.
func (p *Peer) Drain() {
	_ = p.nc.SetReadDeadline(time.Time{})
	_, _ = io.Copy(io.Discard, p.nc)
}
