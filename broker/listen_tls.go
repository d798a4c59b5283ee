package broker

import (
	"crypto/tls"
	"net"

	"github.com/mqttload/mqttload/internal/wire"
)

func listenTLS(addr string, conf *tls.Config) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return tlsListener{l, conf}, nil
}

// tlsListener accepts TLS connections. It leaves the handshake to the goroutine
// that serves the connection: a slow peer must not keep others waiting.
type tlsListener struct {
	net.Listener
	config *tls.Config
}

func (l tlsListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	// The writer of a TLS connection must not block a reader: see package wire.
	return tls.Server(wire.NonBlocking(nc), l.config), nil
}
