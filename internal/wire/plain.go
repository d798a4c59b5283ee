package wire

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// bufSize is one read. Larger reads gain nothing on loopback, smaller ones
// cost system calls.
const bufSize = 64 << 10

var bufPool = sync.Pool{New: func() any { return new([bufSize]byte) }}

func attach(s *packet.Scanner) { s.Attach(bufPool.Get().(*[bufSize]byte)[:]) }

// detach gives the scanner's buffer back when it holds nothing.
func detach(s *packet.Scanner) {
	if b := s.Detach(); cap(b) == bufSize {
		bufPool.Put((*[bufSize]byte)(b[:bufSize]))
	}
}

// rawConn returns the descriptor of a TCP or Unix connection where this system
// can read and write it without blocking, else nil.
func rawConn(nc net.Conn) syscall.RawConn {
	sc, ok := nc.(interface {
		SyscallConn() (syscall.RawConn, error)
	})
	if !ok || !rawSupported {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// plainSource reads any net.Conn. It holds a buffer while it waits.
type plainSource struct{ nc net.Conn }

func (p plainSource) fill(s *packet.Scanner) (int, error) {
	if s.Buffered() == 0 {
		detach(s)
		attach(s)
	}
	n, err := p.nc.Read(s.Space())
	s.Advance(n)
	if err != nil {
		detach(s)
	}
	return n, err
}

// tlsSource reads a TLS connection. It waits with room for one byte only, so
// that an idle connection holds no buffer. No control packet is that short, so
// the read that follows can hold up none. [MQTT 2.1]
type tlsSource struct {
	t     *tls.Conn
	first [1]byte
}

func (r *tlsSource) fill(s *packet.Scanner) (int, error) {
	if s.Buffered() > 0 {
		return plainSource{r.t}.fill(s)
	}
	detach(s)
	if n, err := r.t.Read(r.first[:]); n == 0 {
		return 0, err
	}
	attach(s)
	s.Space()[0] = r.first[0]
	s.Advance(1)
	// An error stays, and the next read returns it.
	n, _ := r.t.Read(s.Space())
	s.Advance(n)
	return 1 + n, nil
}

// plainSink leaves every write to the draining goroutine.
type plainSink struct {
	nc       net.Conn
	progress *atomic.Int64
}

func (p plainSink) try(b []byte) ([]byte, bool, error) { return b, true, nil }

func (p plainSink) finish(rest []byte) error { return writeAll(p.nc, rest, p.progress) }

// writeAll writes b, blocking, in pieces: one that is followed by another has
// been taken by the peer rather than by a buffer, and counts as progress.
func writeAll(nc net.Conn, b []byte, progress *atomic.Int64) error {
	for len(b) > 0 {
		n, err := nc.Write(b[:min(len(b), HighWater)])
		if err != nil {
			return err
		}
		if b = b[n:]; len(b) > 0 && progress != nil {
			progress.Add(int64(n))
		}
	}
	return nil
}

// tlsSink encrypts in the caller's goroutine; only the socket may lag behind.
type tlsSink struct {
	t  *tls.Conn
	nb *nonBlocking
}

func (s tlsSink) try(b []byte) ([]byte, bool, error) {
	_, err := s.t.Write(b)
	return nil, s.nb.blocked(), err
}

func (s tlsSink) finish([]byte) error { return s.nb.flush() }

// nonBlocking is a net.Conn under a *tls.Conn whose Write never blocks once
// started: what the socket does not take is kept until flush.
type nonBlocking struct {
	net.Conn
	sink sink

	mu       sync.Mutex
	started  bool
	progress *atomic.Int64
	rest     []byte
}

// NonBlocking wraps nc for use under [tls.Client] or [tls.Server], so that
// [New] can write the TLS connection without blocking. Where the system has no
// non-blocking writes it returns nc itself.
func NonBlocking(nc net.Conn) net.Conn {
	raw := rawConn(nc)
	if raw == nil {
		return nc
	}
	return &nonBlocking{Conn: nc, sink: newRawSink(nc, raw, nil)}
}

// start switches from blocking writes, which the handshake needs, to
// non-blocking ones.
func (n *nonBlocking) start(progress *atomic.Int64) {
	n.mu.Lock()
	n.started, n.progress = true, progress
	n.mu.Unlock()
}

func (n *nonBlocking) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.started {
		return n.Conn.Write(p)
	}
	if len(n.rest) > 0 {
		n.rest = append(n.rest, p...)
		return len(p), nil
	}
	rest, _, err := n.sink.try(p)
	if err != nil {
		return 0, err
	}
	n.rest = append(n.rest[:0], rest...)
	return len(p), nil
}

func (n *nonBlocking) blocked() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.rest) > 0
}

// flush writes the rest, blocking. Only one goroutine may call it at a time;
// records that crypto/tls writes meanwhile (a key update) queue behind.
func (n *nonBlocking) flush() error {
	var spare []byte
	for {
		n.mu.Lock()
		rest := n.rest
		if len(rest) == 0 {
			n.rest = nil
			n.mu.Unlock()
			return nil
		}
		n.mu.Unlock()
		if err := writeAll(n.Conn, rest, n.progress); err != nil {
			return err
		}
		n.mu.Lock()
		tail := append(spare[:0], n.rest[len(rest):]...)
		spare, n.rest = n.rest, tail
		n.mu.Unlock()
	}
}
