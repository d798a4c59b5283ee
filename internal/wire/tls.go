package wire

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// tlsSource reads a TLS connection or a layer over one. It waits with a buffer of
// one byte, so that an idle connection needs no more. The second read does not
// delay a packet: every control packet has at least two bytes. [MQTT 2.1]
type tlsSource struct {
	t     net.Conn
	nb    *nonBlocking // the connection under t; nil if t does not survive nothingYet
	first [1]byte
}

func (r *tlsSource) fill(s *packet.Scanner) (n int, err error) {
	if s.Buffered() == 0 {
		detach(s)
		if n, err = r.t.Read(r.first[:]); n == 0 {
			return 0, err
		}
		attach(s)
		s.Space()[0] = r.first[0]
		s.Advance(1)
	}
	k, err := r.t.Read(s.Space())
	s.Advance(k)
	if n += k; n == 0 {
		return 0, err
	}
	// An error is not lost: the next read returns it again.
	if err == nil && r.nb != nil {
		n += r.more(s)
	}
	return n, nil
}

// maxRecord is the largest content of a TLS record in bytes. [RFC 8446 5.1]
const maxRecord = 16 << 10

// more decrypts further records that the last read of the socket has brought, and
// returns the number of bytes. A TLS read returns only one record, which is a small
// batch.
func (r *tlsSource) more(s *packet.Scanner) (n int) {
	r.nb.noWait = true
	for s.Buffered() <= bufSize-maxRecord {
		k, err := r.t.Read(s.Space())
		s.Advance(k)
		n += k
		if err != nil {
			break
		}
	}
	r.nb.noWait = false
	return n
}

// nothingYet is the error of a read that must not wait. It is temporary, because any
// other error would end the TLS connection.
type nothingYet struct{}

func (nothingYet) Error() string   { return "no whole TLS record has been read" }
func (nothingYet) Timeout() bool   { return true }
func (nothingYet) Temporary() bool { return true }

// tlsSink writes a TLS connection. It encrypts in the caller's goroutine; only the
// encrypted bytes may have to wait for the socket.
type tlsSink struct {
	t  net.Conn
	nb *nonBlocking
}

func (s tlsSink) try(b []byte) ([]byte, bool, error) {
	_, err := s.t.Write(b)
	return nil, s.nb.blocked(), err
}

func (s tlsSink) finish([]byte) error { return s.nb.flush() }

// nonBlocking is the net.Conn under TLS. After start, Write never blocks: it keeps
// what the socket does not take until flush. Read reads as much from the socket as
// there is, although TLS asks for a few bytes at a time.
type nonBlocking struct {
	net.Conn
	sink sink

	// Used by the reader only.
	source source
	in     *packet.Scanner // bytes read from the socket but not yet by TLS; nil before start
	noWait bool            // Read returns nothingYet instead of waiting

	mu       sync.Mutex
	started  bool
	progress *atomic.Int64
	rest     []byte // what the socket did not take
}

// NonBlocking wraps nc for use under [tls.Client] or [tls.Server], so that the
// [Conn] over it can write without blocking. It returns nc itself if nc or the
// system does not support that.
func NonBlocking(nc net.Conn) net.Conn {
	raw := rawConn(nc)
	if raw == nil {
		return nc
	}
	return &nonBlocking{Conn: nc, sink: newRawSink(nc, raw, nil), source: newRawSource(raw)}
}

// start switches from blocking writes, which the handshake needs, to
// non-blocking ones.
func (n *nonBlocking) start(progress *atomic.Int64) {
	n.mu.Lock()
	n.started, n.progress = true, progress
	n.mu.Unlock()
	n.in = packet.NewScanner(nil, 0)
}

// Read reads like net.Conn.Read, but needs a buffer only while that is not empty.
func (n *nonBlocking) Read(p []byte) (int, error) {
	switch {
	case n.in == nil:
		return n.Conn.Read(p)
	case n.in.Buffered() > 0:
	case n.noWait:
		return 0, nothingYet{}
	default:
		if _, err := n.source.fill(n.in); err != nil {
			return 0, err
		}
	}
	k := copy(p, n.in.Peek())
	n.in.Skip(k)
	detach(n.in)
	return k, nil
}

// Write writes p or, after start, keeps what would block.
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

// flush writes the rest, blocking. Only one goroutine may call it at a time. Records
// that crypto/tls writes during flush, such as a key update, are added to the rest.
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
