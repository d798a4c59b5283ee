package broker

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// FuzzServeConn sends arbitrary bytes, before or after CONNECT. The broker must not
// panic or hang, must release the connection when it ends, and must serve the next
// one.
func FuzzServeConn(f *testing.F) {
	for _, s := range []string{
		"82 06 00 01 00 00 01 61", "30 05 0001 61 00 78", "32 07 0001 61 0001 00 78",
		"34 06 0001 61 0001 00 62 02 0001", "c0 00 e0 00", "10 0d 0004 4d515454 05 02 0000 00 0000",
		"82 09 0001 00 0003 612f23 02 31 07 0003 612f62 00 78 40 02 0001", "30 06 0001 61 03 230001 78",
		"50 02 0001 70 02 0001", "82 0d 0001 00 0007 24736861 72652f 01", "f0 00",
	} {
		b := mustHex(f, s)
		f.Add(byte(0), b)
		f.Add(byte(4), b)
		f.Add(byte(5), b)
	}
	seeds, _ := filepath.Glob(filepath.Join("..", "..", "shared", "vectors", "seeds", "*.raw"))
	for _, path := range seeds {
		if b, err := os.ReadFile(path); err == nil {
			f.Add(byte(0), b)
		}
	}
	if _, err := os.Stat(filepath.Join("..", "..", "shared", "vectors", "broker.jsonl")); err == nil {
		for _, v := range loadVectors(f) {
			for _, m := range v.Msgs {
				if m.Type == "send" {
					f.Add(v.Ver, mustHex(f, strings.ReplaceAll(m.Payload, " ", "")))
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, version byte, data []byte) {
		b := New(Config{MaxQueuedBytes: 1 << 20, StallTimeout: time.Second})
		defer func() {
			if err := b.Close(); err != nil {
				t.Errorf("broker does not end: %v", err)
			}
		}()
		c := serveEnd(t, b)
		if v := packet.Version(version); v >= packet.V31 && v <= packet.V5 {
			p := kept(v, "fuzz")
			if version%2 == 0 {
				p = clean(v, "fuzz")
			}
			c.connect(p)
		}
		go func() {
			_, _ = c.nc.Write(data)
			_, _ = c.nc.Write(packet.AppendPingreq(nil))
			_ = c.nc.(*net.TCPConn).CloseWrite()
		}()
		c.drainAll()
		_ = c.nc.Close()
		other := serveEnd(t, b)
		if ack := other.connect(clean(packet.V5, "other")); ack.Code != 0 {
			t.Fatalf("CONNACK %v", ack.Code)
		}
		other.sync()
		_ = other.nc.Close()
	})
}

// serveEnd connects over a socket: its ends do not block each other.
func serveEnd(t *testing.T, b *Broker) *peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	go b.ServeConn(there)
	return peerOf(t, nc)
}

// drainAll reads until the connection ends, which must not take long.
func (c *peer) drainAll() {
	c.t.Helper()
	buf := make([]byte, 4096)
	_ = c.nc.SetReadDeadline(time.Now().Add(patience))
	for {
		if _, err := c.nc.Read(buf); err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				c.t.Fatal("connection does not end")
			}
			return
		}
	}
}
