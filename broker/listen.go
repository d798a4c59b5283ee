package broker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

// listeners has the constructor of every transport, by the scheme of its URLs.
var listeners = map[string]func(addr string, conf *tls.Config) (net.Listener, error){
	"mqtt":  listenTCP,
	"mqtts": listenTLS,
}

// Listen opens addr, "host:port", for [Broker.Serve] to clients whose URLs have
// the scheme, "mqtt" or "mqtts". conf is for those over TLS.
func Listen(scheme, addr string, conf *tls.Config) (net.Listener, error) {
	listen, known := listeners[scheme]
	if !known {
		return nil, fmt.Errorf("listen on %s: the broker does not serve scheme %q", addr, scheme)
	}
	l, err := listen(addr, conf)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another address or port 0", addr, err)
	}
	return l, nil
}

// Serve accepts connections from l until the broker is shut down, and then returns
// [ErrClosed]. It owns l and closes it.
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
			// Usually the file descriptors have run out until clients leave.
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
// owns nc, which may be anything: it makes the handshake of TLS first.
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
