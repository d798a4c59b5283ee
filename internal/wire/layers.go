package wire

import (
	"context"
	"crypto/tls"
	"net"
)

// A layer is a connection over another one, such as *tls.Conn, or a framing protocol
// over TLS.
type layer interface {
	NetConn() net.Conn
}

// under returns the connection that nc is a layer over, or nil.
func under(nc net.Conn) net.Conn {
	if l, ok := nc.(layer); ok {
		return l.NetConn()
	}
	return nil
}

// TLSConn has the methods of *tls.Conn that this program uses.
type TLSConn interface {
	net.Conn
	HandshakeContext(ctx context.Context) error
	ConnectionState() tls.ConnectionState
}

// TLSOf returns the TLS connection among nc and the layers below it, or nil. A layer has
// a method NetConn, which returns the connection below it.
func TLSOf(nc net.Conn) TLSConn {
	for ; nc != nil; nc = under(nc) {
		if t, ok := nc.(TLSConn); ok {
			return t
		}
	}
	return nil
}

// nonBlockingOf returns the connection made by [NonBlocking] below the layers of nc, or
// nil.
func nonBlockingOf(nc net.Conn) *nonBlocking {
	for ; nc != nil; nc = under(nc) {
		if nb, ok := nc.(*nonBlocking); ok {
			return nb
		}
	}
	return nil
}

// CloseSocket closes the lowest layer of nc at once. The Close of a layer may
// wait to write a last message, such as the alert of TLS.
func CloseSocket(nc net.Conn) error {
	for below := under(nc); below != nil; below = under(nc) {
		nc = below
	}
	return nc.Close()
}
