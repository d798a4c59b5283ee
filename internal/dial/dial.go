// Package dial opens the connections of a case's clients to their broker.
//
// [Routes] holds what the clients of one case share: targets, source addresses,
// TLS configurations and resolved names. Each client has a [Dialer] from
// [Routes.Dialer]. A credentials file gives it a user and a certificate of its own
// ([Dialer.Assume]). [Dialer.Dial] then takes these steps:
//
//  1. resolve the host; the clients of a case share one look-up
//  2. open a socket, from the client's source address if it has one
//  3. make the TLS handshake, if the transport is over TLS
//
// [Steps] says how long each step took. If a broker refers the client to another
// server, [Dialer.Follow] and [Dialer.ByReference] change the Dialer's URL and dial
// again. [Dialer.Fault] makes an [Error] of a failed attempt, which names the server
// and the cause; [KindOf], [CauseOf] and [StepOf] classify it.
//
// A new transport needs a row in package scenarios, a file here with a function
// that opens a connection, and its row in openers. If it adds a layer over TLS, its
// connection has a method NetConn that returns the connection below: the program
// then finds the TLS state and can close the socket.
//
// The package does not speak MQTT: package mqtt sends CONNECT. It does not retry
// and does not pace: package load does.
package dial

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/scenarios"
)

// Func opens a byte stream, as (*net.Dialer).DialContext does. source is the
// local address to connect from, or "".
type Func func(ctx context.Context, network, address, source string) (net.Conn, error)

// Routes holds what the connections of one case share: targets and source
// addresses, which are used in turn, certificates, which are read once, and names,
// which are resolved once. It is safe for concurrent use.
type Routes struct {
	c    *scenarios.Case
	open Func // nil: this process's network

	mu    sync.Mutex
	confs map[string]*tls.Config
	names map[string]*name
}

// NewRoutes returns the routes of a case. open replaces the network; if it is nil,
// connections are TCP sockets with TCP_NODELAY and without the kernel's keep-alive.
func NewRoutes(c *scenarios.Case, open Func) *Routes { return &Routes{c: c, open: open} }

// Steps are the durations of the steps of opening one connection. A step that was
// not taken is 0: a name is resolved for the first connection only, an address never.
type Steps struct {
	DNS, TCP, TLS time.Duration
	Resumed       bool // the handshake resumed the TLS session of an earlier connection
}

// Dialer opens one client's connection and remembers how long that took.
type Dialer struct {
	URL    scenarios.URL
	Source string // local address, "" for any
	Steps  Steps

	routes    *Routes
	number    int       // of the client, from 0
	identity  *Identity // of a credentials file; nil without
	transport scenarios.Transport
	conf      *tls.Config // nil without TLS
	err       error

	// mu guards URL and way. The goroutine that dials reads them without it.
	mu  sync.Mutex
	way []string // the servers that have referred the client since it was connected last
}

// Dialer returns the dialer of the i-th client, from 0. The target changes with each
// client. The source address changes after each round of the targets, so that all
// pairs of source and target are used equally: each pair has its own local ports.
func (r *Routes) Dialer(i int) *Dialer {
	urls, sources := r.c.Target.URLs, r.c.Target.SourceIPs
	d := &Dialer{routes: r, number: i, URL: urls[i%len(urls)]}
	if len(sources) > 0 {
		d.Source = sources[i/len(urls)%len(sources)]
	}
	d.err = d.aim()
	return d
}

// aim sets the transport and the TLS configuration for d's URL. The connections of
// a case over TLS always use TLS, whatever the scheme of the URL is.
func (d *Dialer) aim() (err error) {
	d.transport = d.URL.Transport()
	if d.routes.c.Transport.Secure() {
		d.transport = d.transport.Secured()
	}
	if !d.transport.Secure() {
		return nil
	}
	if d.conf, err = d.routes.tlsConfig(d.URL.Host); err != nil || d.identity == nil {
		return err
	}
	return d.identity.identify(d)
}

// tlsConfig returns the configuration for a host. It reads the certificates once per
// case and host.
func (r *Routes) tlsConfig(host string) (*tls.Config, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if conf := r.confs[host]; conf != nil {
		return conf, nil
	}
	conf, err := r.c.TLS.ClientConfig(host)
	if err == nil {
		if r.confs == nil {
			r.confs = make(map[string]*tls.Config)
		}
		r.confs[host] = conf
	}
	return conf, err
}

// Dial opens the connection. It is a [mqtt.Dialer]. A TLS handshake makes the stack
// of its goroutine grow: to open many connections, call Dial from goroutines that
// end soon.
func (d *Dialer) Dial(ctx context.Context) (net.Conn, error) {
	if d.err != nil {
		return nil, d.err
	}
	d.Steps = Steps{}
	return openers[d.transport](ctx, d)
}

// Fault returns err, the failure of an attempt to connect, as an [Error]; nil for nil.
func (d *Dialer) Fault(err error) error {
	if err == nil {
		return nil
	}
	url, way := d.Where()
	return &Error{url, way, d.Secure(), err}
}

// Err returns the error that every call of Dial returns, or nil.
func (d *Dialer) Err() error { return d.err }

// Fail makes every call of Dial fail with err.
func (d *Dialer) Fail(err error) { d.err = err }

// Secure reports whether the connection is over TLS.
func (d *Dialer) Secure() bool { return d.transport.Secure() }

// Bound returns ctx with the connect timeout of a case. When that passes, the cause
// of the context is [mqtt.ErrConnectTimeout].
func Bound(ctx context.Context, c *scenarios.Case) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, Timeout(c), mqtt.ErrConnectTimeout)
}

// Timeout is the most time that opening one connection may take, from the name to
// the CONNACK.
func Timeout(c *scenarios.Case) time.Duration {
	if d := c.Target.ConnectTimeout; d > 0 {
		return d
	}
	return 10 * time.Second
}
