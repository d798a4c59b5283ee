// Package dial makes the connections of clients to their broker: name, address,
// TLS, and what goes wrong with each of them.
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

// Routes is what the connections of one case have in common: its targets and
// source addresses, which take turns, its certificates, which are read once,
// and its names, which are resolved once.
type Routes struct {
	c    *scenarios.Case
	open Func // nil: this process's network

	mu    sync.Mutex
	confs map[string]*tls.Config
	names map[string]*name
}

// NewRoutes returns the routes of a case. open replaces the network; nil is
// that of this process, with TCP_NODELAY and without the kernel's keep-alive.
func NewRoutes(c *scenarios.Case, open Func) *Routes { return &Routes{c: c, open: open} }

// Legs are the parts of making one connection. One that there was not is 0: a
// name is resolved for the first connection only, an address never.
type Legs struct {
	DNS, TCP, TLS time.Duration
	Resumed       bool // the TLS session of an earlier connection was taken up
}

// Dialer opens one client's connection and remembers how long that took.
type Dialer struct {
	URL    scenarios.URL
	Source string // local address, "" for any
	Legs   Legs

	routes    *Routes
	number    int       // of the client, from 0
	identity  *Identity // of a credentials file; nil without
	transport scenarios.Transport
	conf      *tls.Config // nil without TLS
	err       error

	// mu guards URL and way where others than the one who dials look at them.
	mu  sync.Mutex
	way []string // the servers that have referred the client since it was connected last
}

// Dialer returns the way to the broker for the i-th client, from 0. Targets
// take turns from client to client, source addresses from round to round of
// the targets, so that every pair of them is used alike: each pair has local
// ports of its own.
func (r *Routes) Dialer(i int) *Dialer {
	urls, sources := r.c.Target.URLs, r.c.Target.SourceIPs
	d := &Dialer{routes: r, number: i, URL: urls[i%len(urls)]}
	if len(sources) > 0 {
		d.Source = sources[i/len(urls)%len(sources)]
	}
	d.err = d.aim()
	return d
}

// aim settles the transport to d's URL, with the TLS configuration of its host
// where it is over TLS. A case over TLS is never dialled in the clear, whatever
// its URL says.
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

// tlsConfig reads the certificates once per case and host.
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

// Dial opens the connection over the transport. It is a [mqtt.Dialer]. TLS
// handshakes grow their goroutine's stack: who opens many calls it from
// goroutines that end soon.
func (d *Dialer) Dial(ctx context.Context) (net.Conn, error) {
	if d.err != nil {
		return nil, d.err
	}
	d.Legs = Legs{}
	return openers[d.transport](ctx, d)
}

// Fault says of what connection err is the end; nil stays nil.
func (d *Dialer) Fault(err error) error {
	if err == nil {
		return nil
	}
	url, way := d.Where()
	return &Error{url, way, d.Secure(), err}
}

// Err returns why d cannot dial at all, nil where it can.
func (d *Dialer) Err() error { return d.err }

// Fail makes every call of Dial fail with err.
func (d *Dialer) Fail(err error) { d.err = err }

// Secure reports whether the connection is one over TLS.
func (d *Dialer) Secure() bool { return d.transport.Secure() }

// Bound bounds ctx by the connect timeout of a case, whose cause is
// [mqtt.ErrConnectTimeout].
func Bound(ctx context.Context, c *scenarios.Case) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, Timeout(c), mqtt.ErrConnectTimeout)
}

// Timeout bounds the making of one connection, all legs together.
func Timeout(c *scenarios.Case) time.Duration {
	if d := c.Target.ConnectTimeout; d > 0 {
		return d
	}
	return 10 * time.Second
}
