package wire

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// bufSize is the size of a read buffer in bytes. Larger reads gain nothing on
// loopback, smaller ones cost more system calls.
const bufSize = 64 << 10

var bufPool = sync.Pool{New: func() any { return new([bufSize]byte) }}

func attach(s *packet.Scanner) { s.Attach(bufPool.Get().(*[bufSize]byte)[:]) }

// detach returns the scanner's buffer to the pool if it is empty.
func detach(s *packet.Scanner) {
	if b := s.Detach(); cap(b) == bufSize {
		bufPool.Put((*[bufSize]byte)(b[:bufSize]))
	}
}

// rawConn returns the descriptor of a TCP or Unix connection, or nil if nc has none
// or this system cannot use it without blocking.
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

// plainSource reads any net.Conn. It needs a buffer while it waits.
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

// plainSink writes any net.Conn. As a write may block, all are left to finish.
type plainSink struct {
	nc       net.Conn
	progress *atomic.Int64
}

func (p plainSink) try(b []byte) ([]byte, bool, error) { return b, true, nil }

func (p plainSink) finish(rest []byte) error { return writeAll(p.nc, rest, p.progress) }

// writeAll writes b, blocking, in pieces of HighWater bytes. All pieces but the last
// count as progress: for the next one to be written, the peer must have read. The
// last one may only have reached a buffer.
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
