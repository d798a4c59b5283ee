package wire

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mqttload/mqttload/tlsconf"
)

// transports are the ways of writing: a descriptor, TLS over one, a layer over
// that, and anything else.
var transports = map[string]func(t *testing.T) (near, far net.Conn){
	"tcp":     tcpPair,
	"tls":     tlsPair,
	"layered": layeredPair,
	"pipe":    func(*testing.T) (net.Conn, net.Conn) { return net.Pipe() },
}

func tcpPair(t *testing.T) (net.Conn, net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

func tlsPair(t *testing.T) (net.Conn, net.Conn) {
	near, far := tcpPair(t)
	bundle, err := tlsconf.ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	conf, err := bundle.ClientOptions().ClientConfig("localhost")
	if err != nil {
		t.Fatal(err)
	}
	server := tls.Server(NonBlocking(far), bundle.ServerConfig())
	client := tls.Client(NonBlocking(near), conf)
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return client, server
}

// publish returns a PUBLISH at QoS 0 with n bytes after the header; n is below 128.
func publish(n int) []byte {
	return append([]byte{0x30, byte(n)}, bytes.Repeat([]byte{'x'}, n)...)
}

func forEach(t *testing.T, test func(t *testing.T, near, far net.Conn)) {
	for name, pair := range transports {
		t.Run(name, func(t *testing.T) {
			near, far := pair(t)
			test(t, near, far)
		})
	}
}

// TestBlockedPeer: Flush never blocks. Once the peer reads, everything appended arrives
// in order, and OnRoom is called.
func TestBlockedPeer(t *testing.T) {
	forEach(t, func(t *testing.T, near, far net.Conn) {
		rooms := make(chan struct{}, 1)
		c := New(near, Options{OnRoom: func() {
			select {
			case rooms <- struct{}{}:
			default:
			}
		}})
		defer c.Close()
		var want bytes.Buffer
		total := 0
		for i := 0; total < 32<<20; i++ {
			out := c.Begin()
			if c.Room(out) <= 0 {
				c.End(out)
				break
			}
			msg := bytes.Repeat([]byte{byte(i)}, 10_000)
			want.Write(msg)
			total += len(msg)
			c.End(append(out, msg...))
			if err := c.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if total >= 32<<20 {
			t.Fatal("a peer that does not read took everything")
		}
		got := make(chan []byte)
		go func() {
			b := make([]byte, total)
			n, _ := io.ReadFull(far, b)
			got <- b[:n]
		}()
		<-rooms
		if err := c.WaitRoom(); err != nil {
			t.Fatal(err)
		}
		if b := <-got; !bytes.Equal(b, want.Bytes()) {
			t.Errorf("%d bytes arrived of %d, or changed", len(b), total)
		}
	})
}

func TestFillAndNext(t *testing.T) {
	forEach(t, func(t *testing.T, near, far net.Conn) {
		c, p := New(near, Options{}), New(far, Options{})
		defer c.Close()
		defer p.Close()
		const n = 1000
		go func() {
			for i := range n {
				p.End(append(p.Begin(), publish(i%100+3)...))
				_ = p.Flush()
			}
		}()
		for got := 0; got < n; {
			f, ok, err := c.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				if _, err := c.Fill(); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if len(f.Body) != got%100+3 {
				t.Fatalf("packet %d has %d bytes", got, len(f.Body))
			}
			got++
		}
	})
}

// TestShutdownWritesAll: Shutdown writes everything that was appended.
func TestShutdownWritesAll(t *testing.T) {
	forEach(t, func(t *testing.T, near, far net.Conn) {
		c := New(near, Options{})
		const n = 5 << 20
		c.End(append(c.Begin(), make([]byte, n)...))
		got := make(chan int64)
		go func() {
			k, _ := io.Copy(io.Discard, far)
			got <- k
		}()
		_ = c.Shutdown(ErrClosed, 10*time.Second)
		if k := <-got; k != n {
			t.Errorf("%d bytes arrived of %d", k, n)
		}
	})
}

func TestShutdownGivesUp(t *testing.T) {
	forEach(t, func(t *testing.T, near, far net.Conn) {
		c := New(near, Options{})
		c.End(append(c.Begin(), make([]byte, 32<<20)...))
		began := time.Now()
		_ = c.Shutdown(ErrClosed, 20*time.Millisecond)
		if d := time.Since(began); d > 8*time.Second {
			t.Errorf("took %s", d)
		}
		if !errors.Is(c.Err(), ErrClosed) {
			t.Error(c.Err())
		}
	})
}

// TestCloseWakes: CloseWith ends the waits of a publisher and of a reader.
func TestCloseWakes(t *testing.T) {
	forEach(t, func(t *testing.T, near, far net.Conn) {
		c := New(near, Options{})
		c.End(append(c.Begin(), make([]byte, 2*HighWater)...))
		var ended atomic.Int32
		done := make(chan struct{}, 2)
		go func() {
			if c.WaitRoom() != nil {
				ended.Add(1)
			}
			done <- struct{}{}
		}()
		go func() {
			if _, err := c.Fill(); err != nil {
				ended.Add(1)
			}
			done <- struct{}{}
		}()
		cause := errors.New("enough")
		_ = c.CloseWith(cause)
		<-done
		<-done
		if ended.Load() != 2 || !errors.Is(c.Err(), cause) {
			t.Errorf("%d of 2 woke, error %v", ended.Load(), c.Err())
		}
		if err := c.Flush(); !errors.Is(err, cause) {
			t.Errorf("flush: %v", err)
		}
	})
}

// TestPeerGone: writing to a closed peer ends the connection with an error.
func TestPeerGone(t *testing.T) {
	forEach(t, func(t *testing.T, near, far net.Conn) {
		c := New(near, Options{})
		far.Close()
		for c.Err() == nil {
			c.End(append(c.Begin(), publish(100)...))
			_ = c.Flush()
		}
	})
}

// TestTLSRecords: one Fill returns all records that have arrived, not only the first,
// and does not wait for the rest of an incomplete one.
func TestTLSRecords(t *testing.T) {
	near, far := tlsPair(t)
	c := New(near, Options{})
	defer c.Close()
	const records = 40
	want := bytes.Repeat(publish(100), 10)
	for range records {
		if _, err := far.Write(want); err != nil {
			t.Fatal(err)
		}
	}
	fills, got := 0, 0
	for got < records*len(want) {
		n, err := c.Fill()
		if err != nil {
			t.Fatal(err)
		}
		fills++
		got += n
		for {
			if _, ok, err := c.Next(); err != nil {
				t.Fatal(err)
			} else if !ok {
				break
			}
		}
	}
	if got != records*len(want) || fills > records/2 {
		t.Errorf("%d bytes in %d reads, want %d in far fewer than the %d records", got, fills, records*len(want), records)
	}
}
