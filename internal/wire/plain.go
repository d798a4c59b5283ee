package wire

import (
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
