package wire

import (
	"context"
	"crypto/tls"
	"net"
)

// A layer is a connection over another one. *tls.Conn is one, and so is what
// frames bytes over TLS.
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

// TLSConn is what this program asks of a TLS connection. *tls.Conn has it.
type TLSConn interface {
	net.Conn
	HandshakeContext(ctx context.Context) error
	ConnectionState() tls.ConnectionState
}

// TLSOf returns nc, or the first layer below it, that is a TLS connection; nil
// where there is none. A layer says what is below it by a method NetConn.
func TLSOf(nc net.Conn) TLSConn {
	for ; nc != nil; nc = under(nc) {
		if t, ok := nc.(TLSConn); ok {
			return t
		}
	}
	return nil
}

// nonBlockingOf returns the connection of [NonBlocking] below the layers of nc,
// or nil.
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
