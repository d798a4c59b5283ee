package wire

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// tlsSource reads a TLS connection. It waits with room for one byte only, so
// that an idle connection holds no buffer. No control packet is that short, so
// the read that follows can hold up none. [MQTT 2.1]
type tlsSource struct {
	t     *tls.Conn
	nb    *nonBlocking // below t; nil where there is none
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
	// An error stays, and the next read returns it.
	if err == nil && r.nb != nil {
		n += r.more(s)
	}
	return n, nil
}

// maxRecord is the most a TLS record can bring. [RFC 8446 5.1]
const maxRecord = 16 << 10

// more decrypts what has been read from the socket together with the record
// before: a TLS read returns one record, and a batch should be larger.
func (r *tlsSource) more(s *packet.Scanner) (n int) {
	r.nb.dry = true
	for s.Buffered() <= bufSize-maxRecord {
		k, err := r.t.Read(s.Space())
		s.Advance(k)
		n += k
		if err != nil {
			break
		}
	}
	r.nb.dry = false
	return n
}

// nothingYet ends a read that must not wait. Being temporary, it does not end
// the TLS connection.
type nothingYet struct{}

func (nothingYet) Error() string   { return "no whole TLS record has been read" }
func (nothingYet) Timeout() bool   { return true }
func (nothingYet) Temporary() bool { return true }

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

// nonBlocking is a net.Conn under a *tls.Conn. Once started, Write never blocks:
// what the socket does not take is kept until flush; and Read takes from the
// socket what there is, however little of it TLS asks for at a time.
type nonBlocking struct {
	net.Conn
	sink sink

	// The reader's own.
	source source
	in     *packet.Scanner // read from the socket and not yet by TLS; nil until started
	dry    bool            // Read returns nothingYet rather than wait

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

// Read holds a buffer only while there is something in it.
func (n *nonBlocking) Read(p []byte) (int, error) {
	switch {
	case n.in == nil:
		return n.Conn.Read(p)
	case n.in.Buffered() > 0:
	case n.dry:
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
