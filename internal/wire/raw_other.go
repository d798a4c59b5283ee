//go:build !unix

package wire

import (
	"net"
	"sync/atomic"
	"syscall"
)

const rawSupported = false

// This system has no non-blocking reads and writes of a descriptor: every connection
// uses plainSource and plainSink.
func newRawSource(syscall.RawConn) source { panic("unreachable: rawSupported is false") }
func newRawSink(nc net.Conn, _ syscall.RawConn, progress *atomic.Int64) sink {
	return plainSink{nc, progress}
}
