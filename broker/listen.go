package broker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/mqttload/mqttload/internal/wire"
)

// Listen opens addr, "host:port" or "unix:PATH", for [Broker.Serve]. With a
// tlsConfig its connections are TLS ones; the handshake is left to the
// goroutine that serves the connection, so that a slow peer holds up nobody.
func Listen(addr string, tlsConfig *tls.Config) (net.Listener, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another address or port 0", addr, err)
	}
	if tlsConfig != nil {
		return tlsListener{l, tlsConfig}, nil
	}
	return l, nil
}

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

// Serve accepts connections from l until the broker is shut down, then returns
// [ErrClosed]. It owns l.
func (b *Broker) Serve(l net.Listener) error {
	if !b.addListener(l) {
		_ = l.Close()
		return ErrClosed
	}
	defer b.removeListener(l)
	var pause time.Duration
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			go b.ServeConn(nc)
		case b.isClosed():
			return ErrClosed
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept on %s: %w", l.Addr(), err)
		default:
			// Mostly no file descriptors left, which passes as clients leave.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			b.logf("accept on %s: %v; trying again in %v", l.Addr(), err, pause)
			time.Sleep(pause)
		}
	}
}

func (b *Broker) addListener(l net.Listener) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.listeners[l] = struct{}{}
	return true
}

func (b *Broker) removeListener(l net.Listener) {
	b.mu.Lock()
	delete(b.listeners, l)
	b.mu.Unlock()
	_ = l.Close()
}

func (b *Broker) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// ServeConn serves one connection until it ends, in the calling goroutine. It
// owns nc, which may be anything: a *tls.Conn is handshaken first.
func (b *Broker) ServeConn(nc net.Conn) {
	c := newClient(b, nc)
	if !b.register(c) {
		_ = nc.Close()
		return
	}
	defer b.unregister(c)
	if err := c.handshake(); err != nil {
		b.logf("client %s: tls handshake: %v", addrOf(nc), err)
		_ = nc.Close()
		return
	}
	c.serve()
}

func addrOf(nc net.Conn) string {
	if a := nc.RemoteAddr(); a != nil {
		return a.String()
	}
	return "?"
}

func (b *Broker) register(c *client) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.wg.Add(1)
	b.count.connections.Add(1)
	b.clients[c] = struct{}{}
	b.startSweeper()
	return true
}

func (b *Broker) unregister(c *client) {
	b.mu.Lock()
	delete(b.clients, c)
	b.gone.add(c)
	b.mu.Unlock()
	b.wg.Done()
}
