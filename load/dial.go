package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/scenarios"
)

// dialer opens one client's connection and remembers how long that took.
type dialer struct {
	open       DialFunc
	url        scenarios.URL
	source     string
	conf       *tls.Config // nil for TCP
	err        error
	connected  time.Duration // TCP
	handshaken time.Duration // TLS on top of it; 0 for TCP
}

// dialer returns the way to the broker for the i-th client: targets and source
// addresses take turns.
func (s *session) dialer(i int) *dialer {
	d := &dialer{open: s.x.cfg.Dial, url: s.Target.URLs[i%len(s.Target.URLs)]}
	if ips := s.Target.SourceIPs; len(ips) > 0 {
		d.source = ips[i%len(ips)]
	}
	if s.Transport == scenarios.TLS || d.url.TLS() {
		d.conf, d.err = s.tlsConfig(d.url.Host)
	}
	return d
}

// tlsConfig reads the certificates once per session and host.
func (s *session) tlsConfig(host string) (*tls.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if conf := s.confs[host]; conf != nil {
		return conf, nil
	}
	conf, err := s.TLS.ClientConfig(host)
	if err == nil {
		if s.confs == nil {
			s.confs = make(map[string]*tls.Config)
		}
		s.confs[host] = conf
	}
	return conf, err
}

func (d *dialer) dial(ctx context.Context) (net.Conn, error) {
	if d.err != nil {
		return nil, d.err
	}
	start := time.Now()
	nc, err := d.open(ctx, "tcp", d.url.Addr(), d.source)
	if err != nil {
		return nil, err
	}
	d.connected = time.Since(start)
	if d.conf == nil {
		return nc, nil
	}
	start = time.Now()
	tc := tls.Client(mqtt.NonBlocking(nc), d.conf)
	if err := tc.HandshakeContext(ctx); err != nil {
		_ = nc.Close()
		return nil, &tlsError{err}
	}
	d.handshaken = time.Since(start)
	return tc, nil
}

// dialNet is the DialFunc of real runs.
func dialNet(ctx context.Context, network, address, source string) (net.Conn, error) {
	var d net.Dialer
	// Keep-alive probes of the kernel would be traffic that nobody asked for.
	d.KeepAliveConfig.Enable = false
	d.KeepAlive = -1
	if source != "" {
		ip := net.ParseIP(source)
		if ip == nil {
			return nil, fmt.Errorf("source address %q is not an IP address", source)
		}
		d.LocalAddr = &net.TCPAddr{IP: ip}
	}
	return d.DialContext(ctx, network, address)
}
