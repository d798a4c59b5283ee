//go:build !unix

package wire

import (
	"net"
	"sync/atomic"
	"syscall"
)

const rawSupported = false

// Without non-blocking reads and writes of a descriptor every connection is a
// plain one.
func newRawSource(syscall.RawConn) source { panic("unreachable: rawSupported is false") }
func newRawSink(nc net.Conn, _ syscall.RawConn, progress *atomic.Int64) sink {
	return plainSink{nc, progress}
}
