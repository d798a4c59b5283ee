package load

import (
	"context"
	"errors"
	"net"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
)

// A Probe is the first client of a case towards one of its targets, for a check
// before the run: it connects as that client would, with a session that ends
// with the connection.
type Probe struct {
	*Dialer
	Config  mqtt.Config // but for Handler
	session *session
}

// Probe returns a probe of target i.
func (r *Routes) Probe(i int, runID string) *Probe {
	s := &session{caseRun: &caseRun{Case: r.c, routes: r, x: &Executor{cfg: Config{RunID: runID}}}}
	p := &Probe{Dialer: r.Dialer(i), session: s}
	if path := r.c.Clients.Credentials; path != "" && p.err == nil {
		p.err = p.assume(path)
	}
	p.Config = s.clientConfig(0, nil, p.Dialer)
	p.Config.Handler, p.Config.CleanStart, p.Config.Properties.SessionExpiry = nil, true, nil
	return p
}

// assume makes the probe the client of the first row of a credentials file.
func (p *Probe) assume(path string) (err error) {
	if p.session.credentials, err = readCredentials(path, 1); err != nil {
		return err
	}
	p.identity = &p.session.credentials[0]
	return p.identity.identify(p.Dialer)
}

// Bound bounds ctx by the connect timeout of the case.
func (p *Probe) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, connectTimeout(p.routes.c), errConnectTimeout)
}

// Connect sends CONNECT on nc, which Dial has opened, and waits for CONNACK. As
// in a run, a broker that is busy is asked again.
func (p *Probe) Connect(ctx context.Context, nc net.Conn, h mqtt.Handler) (client *mqtt.Client, err error) {
	cfg := p.Config
	cfg.Handler = h
	cfg.Dial = func(ctx context.Context) (net.Conn, error) {
		if first := nc; first != nil {
			nc = nil
			return first, nil
		}
		return p.Dial(ctx)
	}
	once := func() (err error) {
		client, err = mqtt.Connect(ctx, cfg)
		return p.fault(err)
	}
	err = insist(ctx, func() error { return p.follow(once) }, func(error) {})
	return client, err
}

// Way says where Server References have led the probe, "" for nowhere:
// "mqtt://a:1883 to mqtt://b:1883".
func (p *Probe) Way() string { return p.arrived() }

// Topic returns the first topic of a case.
func (p *Probe) Topic(c *scenarios.Case) string {
	return scenarios.Expand(c.Clients.Topic, p.session.vars(0))
}

// Message returns the largest message of a case, to its topic.
func (p *Probe) Message(c *scenarios.Case) (*packet.Publish, error) {
	payload := c.Payload.Data
	if n := c.Payload.Max(); len(payload) != n {
		payload = payloadBytes(scenarios.Payload{Size: n})
	}
	m := &packet.Publish{QoS: c.QoS, Retain: c.Clients.Retain, Topic: []byte(p.Topic(c)), Payload: payload}
	if m.QoS > 0 {
		m.PacketID = 1
	}
	if c.Protocol == packet.V5 {
		properties := c.Clients.OfPublish(p.session.vars(0))
		if err := m.SetProperties(&properties); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Kind is the class under which a run counts err in its report.
func Kind(err error) string { return kindOf(err) }

// Fault says at which leg of dialling err came, "dns", "tcp" or "tls", and
// explains it in one line.
func (p *Probe) Fault(err error) (leg string, explained error) {
	var dns *net.DNSError
	var gaveUp *resolveError
	var te *tlsError
	switch {
	case errors.As(err, &dns), errors.As(err, &gaveUp):
		leg = "dns"
	case errors.As(err, &te), isAlert(err):
		leg = "tls"
	default:
		leg = "tcp"
	}
	return leg, p.fault(err)
}
