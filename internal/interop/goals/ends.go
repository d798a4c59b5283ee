package main

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

// chunk is the size of a write and of a read of the raw echo, in bytes.
const chunk = 64 << 10

// ends are the addresses of a raw echo and a broker for each transport, in this
// process or another one.
type ends struct {
	Echo   map[scenarios.Transport]string // host:port
	Broker map[scenarios.Transport]string
	CAPEM  []byte // verifies their certificates
}

// server serves ends.
type server struct {
	ends      ends
	broker    *broker.Broker
	listeners []net.Listener
}

func openEnds() (*server, error) {
	bundle, err := tlsconf.ThrowAway(nil, time.Now())
	if err != nil {
		return nil, err
	}
	s := &server{broker: broker.New(broker.Config{}), ends: ends{
		Echo: map[scenarios.Transport]string{}, Broker: map[scenarios.Transport]string{}, CAPEM: bundle.CAPEM(),
	}}
	for _, t := range scenarios.Transports() {
		if err := s.listen(t, bundle.ServerConfig()); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *server) listen(t scenarios.Transport, conf *tls.Config) error {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if t.Secure() {
		echo = tls.NewListener(echo, conf)
	}
	s.listeners = append(s.listeners, echo)
	go serveEcho(echo)
	l, err := broker.Listen(t.Scheme(), "127.0.0.1:0", conf)
	if err != nil {
		return err
	}
	go func() { _ = s.broker.Serve(l) }() // ends with the broker
	s.ends.Echo[t], s.ends.Broker[t] = echo.Addr().String(), l.Addr().String()
	return nil
}

func (s *server) close() {
	for _, l := range s.listeners {
		_ = l.Close()
	}
	_ = s.broker.Close()
}

func serveEcho(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		go echo(nc)
	}
}

// echo sends back what it reads, in pieces as large as its reads. A connection with
// little traffic has a small buffer: there may be many.
func echo(nc net.Conn) {
	defer nc.Close()
	b := make([]byte, 1<<10)
	for {
		n, err := nc.Read(b)
		if n == len(b) && n < chunk {
			b = append(b, make([]byte, chunk-n)...)
		}
		if err != nil {
			return
		}
		if _, err := nc.Write(b[:n]); err != nil {
			return
		}
	}
}

// endpoints are where the broker's listeners are, for cases without a target.
func (e *ends) endpoints() map[scenarios.Transport]scenarios.Endpoint {
	at := map[scenarios.Transport]scenarios.Endpoint{}
	for t, addr := range e.Broker {
		host, port, _ := net.SplitHostPort(addr)
		end := scenarios.Endpoint{URL: scenarios.URL{Scheme: t.Scheme(), Host: host, HasPort: true}}
		end.URL.Port, _ = strconv.Atoi(port)
		if t.Secure() {
			end.CAPEM = e.CAPEM
		}
		at[t] = end
	}
	return at
}

// dialEcho connects to the echo with the options that package net sets by default.
func (e *ends) dialEcho(ctx context.Context, t scenarios.Transport, conf *tls.Config) (net.Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", e.Echo[t])
	if err != nil || !t.Secure() {
		return nc, err
	}
	tc := tls.Client(nc, conf)
	if err := tc.HandshakeContext(ctx); err != nil {
		_ = nc.Close()
		return nil, err
	}
	return tc, nil
}
