package load

import (
	"context"
	"net"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
)

// Probe is the first client of a case for one of its targets, for a check
// before the run: it connects as that client would, with a session that ends
// with the connection.
type Probe struct {
	*dial.Dialer
	Config    mqtt.Config // without Handler
	connector *connector
}

// NewProbe returns a probe of target i of case c. open replaces the network;
// nil is that of this process.
func NewProbe(c *scenarios.Case, open dial.Func, i int, runID string) *Probe {
	r := dial.NewRoutes(c, open)
	p := &Probe{Dialer: r.Dialer(i), connector: &connector{spec: c, runID: runID, keys: new(mqtt.SCRAMKeys)}}
	if path := c.Clients.Credentials; path != "" && p.Err() == nil {
		p.Fail(p.assume(path))
	}
	p.Config = p.connector.clientConfig(0, nil, p.Dialer)
	p.Config.Handler, p.Config.CleanStart, p.Config.Properties.SessionExpiry = nil, true, nil
	return p
}

// assume makes the probe the client of the first row of a credentials file.
func (p *Probe) assume(path string) (err error) {
	if p.connector.credentials, err = dial.ReadCredentials(path, 1); err != nil {
		return err
	}
	return p.Assume(&p.connector.credentials[0])
}

// Bound bounds ctx by the connect timeout of the case.
func (p *Probe) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return dial.Bound(ctx, p.connector.spec)
}

// Connect sends CONNECT on nc, which Dial has opened, and waits for CONNACK. As
// in a run, it asks a busy broker again.
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
		return p.Fault(err)
	}
	err = retry(ctx, func() error { return p.Follow(once) }, func(error) {})
	return client, err
}

// Topic returns the first topic of a case.
func (p *Probe) Topic(c *scenarios.Case) string {
	return scenarios.Expand(c.Clients.Topic, p.connector.vars(0))
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
		properties := c.Clients.OfPublish(p.connector.vars(0))
		if err := m.SetProperties(&properties); err != nil {
			return nil, err
		}
	}
	return m, nil
}
