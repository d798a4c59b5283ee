//go:build unix

package wire

import (
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/mqttload/mqttload/mqtt/packet"
)

const rawSupported = true

// rawSource reads a socket directly. Unlike net.Conn.Read it needs no buffer while
// it waits.
type rawSource struct {
	raw  syscall.RawConn
	once func(fd uintptr) bool
	scan *packet.Scanner
	n    int
	err  error
}

func newRawSource(raw syscall.RawConn) *rawSource {
	r := &rawSource{raw: raw}
	r.once = r.readOnce
	return r
}

func (r *rawSource) fill(s *packet.Scanner) (int, error) {
	r.scan, r.n, r.err = s, 0, nil
	if err := r.raw.Read(r.once); err != nil {
		detach(s)
		return 0, err
	}
	return r.n, r.err
}

func (r *rawSource) readOnce(fd uintptr) bool {
	if r.scan.Buffered() == 0 {
		detach(r.scan)
		attach(r.scan)
	}
	n, err := ignoringEINTR(read, int(fd), r.scan.Space())
	switch {
	case err == syscall.EAGAIN:
		if r.scan.Buffered() == 0 {
			detach(r.scan)
		}
		return false
	case err != nil:
		r.err = os.NewSyscallError("read", err)
	case n == 0:
		r.err = io.EOF
	default:
		r.n = n
		r.scan.Advance(n)
	}
	if r.err != nil {
		detach(r.scan)
	}
	return true
}

// rawSink writes a socket directly, without blocking.
type rawSink struct {
	nc   net.Conn
	raw  syscall.RawConn
	once func(fd uintptr) bool
	buf  []byte
	n    int
	err  error

	progress *atomic.Int64
}

func newRawSink(nc net.Conn, raw syscall.RawConn, progress *atomic.Int64) *rawSink {
	w := &rawSink{nc: nc, raw: raw, progress: progress}
	w.once = w.writeOnce
	return w
}

func (w *rawSink) try(p []byte) ([]byte, bool, error) {
	w.buf, w.n, w.err = p, 0, nil
	if err := w.raw.Write(w.once); err != nil {
		return nil, false, err
	}
	w.buf = nil
	rest := p[w.n:]
	return rest, len(rest) > 0, w.err
}

func (w *rawSink) writeOnce(fd uintptr) bool {
	for w.n < len(w.buf) {
		n, err := ignoringEINTR(write, int(fd), w.buf[w.n:])
		if err == syscall.EAGAIN {
			return true
		}
		if err != nil {
			w.err = os.NewSyscallError("write", err)
			return true
		}
		w.n += n
	}
	return true
}

func (w *rawSink) finish(rest []byte) error { return writeAll(w.nc, rest, w.progress) }

// ignoringEINTR repeats a system call that a signal has interrupted.
func ignoringEINTR(call func(int, []byte) (int, error), fd int, p []byte) (int, error) {
	for {
		n, err := call(fd, p)
		if err != syscall.EINTR {
			return n, err
		}
	}
}
