package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

// connector makes the connections of a launch's clients, subscribes them and
// encodes their messages.
type connector struct {
	spec     *scenarios.Case
	runID    string
	embedded bool
	routes   *dial.Routes
	sweeper  *mqtt.Sweeper
	keys     *mqtt.SCRAMKeys
	payload  []byte
	// credentials are the identities of the clients, one for each; nil where the
	// clients differ in nothing but numbers.
	credentials dial.Credentials

	// Results.
	connections *connections
	errs        *errorSet
	warnings    *warnings
	announce    func(overTLS bool, target func() result.Target) // called for every connection, unless it is nil
}

// join connects one member and subscribes it.
func (cn *connector) join(ctx context.Context, i int, m *member) error {
	ctx, cancel := dial.Bound(ctx, cn.spec)
	defer cancel()
	d := cn.routes.Dialer(i)
	if cn.credentials != nil {
		if err := d.Assume(&cn.credentials[i]); err != nil {
			return err
		}
	}
	m.dialer = d
	client, err := cn.connect(ctx, m, cn.clientConfig(i, m, d))
	if err != nil {
		return err
	}
	cn.record(client, d)
	if err = m.unprepared; err == nil && m.sub != nil {
		err = cn.subscribe(ctx, m, client)
	}
	if err == nil && m.pub != nil && m.link == nil {
		err = cn.prepare(m, client)
	}
	if err != nil && m.link != nil {
		m.link.Close() // or it would continue to connect
	}
	return err
}

func (cn *connector) clientConfig(i int, m *member, d *dial.Dialer) mqtt.Config {
	c := &cn.spec.Clients
	vars := cn.vars(i)
	cfg := mqtt.Config{
		Dial: d.Dial, Version: cn.spec.Protocol, ClientID: vars.C, CleanStart: c.CleanStart, KeepAlive: c.KeepAlive,
		HasUsername: c.HasUsername, HasPassword: c.HasPassword,
		Inflight: cn.spec.Load.Inflight, Handler: m, Sweeper: cn.sweeper,
	}
	if c.HasUsername {
		cfg.Username = vars.U
	}
	if c.HasPassword {
		cfg.Password = []byte(scenarios.Expand(c.Password, vars))
	}
	if cn.spec.Protocol == packet.V5 && c.SessionExpiry > 0 {
		secs := uint32(c.SessionExpiry / time.Second)
		cfg.Properties.SessionExpiry = &secs
	}
	if cn.spec.Protocol == packet.V5 {
		c.Properties.OfConnect(&cfg.Properties, m != nil && m.pub != nil && m.sub == nil)
		cfg.TopicAliases = uint16(c.Properties.TopicAlias)
	}
	if w := c.Will; w != nil {
		cfg.Will = willOf(w, vars, cn.spec.Protocol)
	}
	if u := d.URL; u.HasUsername && !c.HasUsername {
		cfg.HasUsername, cfg.Username = true, u.Username
		cfg.HasPassword, cfg.Password = u.HasPassword, []byte(scenarios.Expand(u.Password, vars))
	}
	if cn.credentials != nil {
		cn.credentials[i].Fill(&cfg)
	}
	cn.authenticate(&cfg, m, d)
	if cn.spec.Load.Shape.Queues > 0 && m != nil && m.sub != nil {
		persist(&cfg)
	}
	if cn.spec.Protocol == packet.V5 && m != nil && !cfg.CleanStart {
		cn.resume(m, &cfg)
	}
	return cfg
}

func willOf(w *scenarios.Will, vars scenarios.Vars, v packet.Version) *packet.Will {
	out := &packet.Will{
		Topic: scenarios.Expand(w.Topic, vars), Payload: []byte(scenarios.Expand(w.Payload, vars)), QoS: w.QoS, Retain: w.Retain,
	}
	if v == packet.V5 && w.Delay > 0 {
		secs := uint32(w.Delay / time.Second)
		out.Properties.WillDelay = &secs
	}
	return out
}

// filtersPerPacket is the most filters of a SUBSCRIBE packet: brokers have
// limits.
const filtersPerPacket = 100

func (cn *connector) subscribe(ctx context.Context, m *member, c *mqtt.Client) error {
	for filters := range slices.Chunk(m.sub.filters, filtersPerPacket) {
		var subs []packet.Subscription
		for _, f := range filters {
			subs = append(subs, subscription(cn.spec, f))
		}
		start := time.Now()
		codes, err := c.Subscribe(ctx, subs, subscribeProperties(cn.spec))
		if err != nil {
			return err
		}
		cn.subscribed(time.Since(start), codes)
	}
	return nil
}

func (cn *connector) subscribed(took time.Duration, codes []packet.ReasonCode) {
	cn.connections.subscribed(took)
	if granted := byte(slices.Min(codes)); granted < cn.spec.QoS {
		cn.warnings.add(result.CodeGrantedQoS, fmt.Sprintf("the broker granted QoS %d of %d: messages arrive at QoS %d", granted, cn.spec.QoS, granted),
			"loss between the broker and the subscriber is legal at QoS 0")
	}
}

// prepare encodes the publisher's message to each of its topics once.
func (cn *connector) prepare(m *member, c *mqtt.Client) error {
	p := packet.Publish{QoS: cn.spec.QoS, Retain: cn.spec.Clients.Retain, Payload: cn.payload, PacketID: 1}
	if cn.spec.QoS == 0 {
		p.PacketID = 0
	}
	if err := p.SetProperties(&m.pub.properties); err != nil {
		return err
	}
	for _, f := range m.pub.flows {
		p.Topic = f.topic
		encode := c.Aliased
		if f.sized() {
			encode = c.AliasedResizer
		}
		var err error
		if f.message, err = encode(&p); err != nil {
			return err
		}
	}
	m.pub.client = c
	m.pub.window = uint64(cn.granted(c))
	return nil
}

// record records one connection.
func (cn *connector) record(c *mqtt.Client, d *dial.Dialer) {
	if cn.announce != nil {
		cn.announce(d.Secure(), func() result.Target { return cn.describe(c, d) })
	}
	cn.connections.made(c, d, cn.granted(c)) // after describe: it ends the route that describe reads
	cn.recordAliases(c.Connack())
}

// granted is the window in force. The Receive Maximum bounds the messages in
// flight at QoS 1 and 2, and so those outstanding end to end; at QoS 0 there is
// none.
func (cn *connector) granted(c *mqtt.Client) int {
	if cn.spec.QoS == 0 {
		return cn.spec.Load.Inflight
	}
	return c.Window()
}

func (cn *connector) describe(c *mqtt.Client, d *dial.Dialer) result.Target {
	p := &c.Connack().Properties
	url, way := d.Where()
	t := result.Target{URL: url, ReferredBy: way, Embedded: cn.embedded, Connack: &result.Connack{
		SessionPresent: c.Connack().SessionPresent, ReceiveMaximum: p.ReceiveMaximum, MaximumQoS: p.MaximumQoS,
		MaximumPacketSize: p.MaximumPacketSize, ServerKeepAlive: p.ServerKeepAlive,
		TopicAliasMaximum: p.TopicAliasMaximum, AssignedClientID: p.AssignedClientID,
		ResponseInformation: p.ResponseInfo,
	}}
	if r := p.RetainAvailable; r != nil {
		yes := *r == 1
		t.Connack.RetainAvailable = &yes
	}
	if state := mqtt.TLSState(c.NetConn()); state != nil {
		version, cipher, curve, resumed := tlsconf.State(*state)
		t.TLS = &result.TLS{Version: version, Cipher: cipher, Curve: curve, Resumed: resumed, Insecure: cn.spec.TLS.Insecure}
	}
	return t
}

// connect makes one client's connection. It asks a broker that is busy, or
// limits the rate, again for as long as ctx allows. It ends a session of an
// earlier run, but not by a clean start at once: Mosquitto 2.0.11 does not
// write down sessions that began with one.
func (cn *connector) connect(ctx context.Context, m *member, cfg mqtt.Config) (client *mqtt.Client, err error) {
	attempt := func() (err error) {
		if cn.returns(m) {
			client, err = cn.link(ctx, m, cfg)
		} else if client, err = mqtt.Connect(ctx, cfg); err == nil {
			m.client.Store(client)
		}
		return err
	}
	once := func() error {
		err := attempt()
		if errors.Is(err, mqtt.ErrSessionPresent) {
			cfg.CleanStart = true
			err = attempt()
		}
		return m.dialer.Fault(err)
	}
	err = retry(ctx, func() error { return m.dialer.Follow(once) }, func(err error) {
		e := ErrorOf(err)
		e.Reason += ": tried again"
		cn.errs.add(e)
	})
	return client, err
}

// retry calls connect until it succeeds, fails for good, or ctx ends. It passes
// a temporary refusal to refused and waits with a back-off. When time runs out,
// its error is the last refusal.
func retry(ctx context.Context, connect func() error, refused func(error)) error {
	var wait mqtt.Backoff
	for {
		err := connect()
		if !mqtt.IsTemporary(err) {
			return err
		}
		refused(err)
		if sleep(ctx, wait.Next()); ctx.Err() != nil {
			return err
		}
	}
}

// returns reports whether the member's connection is made again when it is
// lost. That of a member that comes and goes is not.
func (cn *connector) returns(m *member) bool {
	shape := cn.spec.Load.Shape
	return cn.spec.Target.Reconnect && (m.sub == nil || !shape.Cycles && shape.Queues == 0)
}

// persist makes cfg that of a subscriber whose session is kept. [MQTT5 3.1.2.4]
func persist(cfg *mqtt.Config) {
	cfg.CleanStart = false
	if cfg.Version == packet.V5 && cfg.Properties.SessionExpiry == nil {
		secs := uint32(offlineExpiry / time.Second)
		cfg.Properties.SessionExpiry = &secs
	}
}

// offlineExpiry is how long a broker keeps the sessions of subscribers that go
// away, unless the scenario says how long.
const offlineExpiry = time.Hour

// resume makes cfg continue the member's session. In MQTT 5 a session of an
// earlier run holds messages and packet ids that are unknown to this run
// [MQTT-3.2.2-4], and is ended; earlier versions would not keep it. A client
// that only listens has neither, and accepts what is queued for it.
func (cn *connector) resume(m *member, cfg *mqtt.Config) {
	switch {
	case m.kept != nil:
	case cn.spec.Load.Shape.Listens:
		m.kept = mqtt.AdoptSession()
	default:
		m.kept = mqtt.NewSession()
	}
	cfg.Session = m.kept
}

// link makes a connection that is made again whenever it is lost.
func (cn *connector) link(ctx context.Context, m *member, cfg mqtt.Config) (*mqtt.Client, error) {
	if cfg.Session == nil {
		cfg.Session = mqtt.NewSession()
	}
	link, err := mqtt.Open(ctx, mqtt.LinkConfig{
		Config: cfg, Reconnect: true, ConnectTimeout: dial.Timeout(cn.spec), GiveUp: outageLimit,
		Refer: m.dialer.ByReference(),
	})
	if err != nil {
		return nil, err
	}
	m.link = link
	return link.Client(), nil
}

// authenticate makes cfg prove the password instead of sending it. The user
// name stays in CONNECT: brokers know a client by it before the exchange is
// over. Keys derived from a password are kept over the run.
func (cn *connector) authenticate(cfg *mqtt.Config, m *member, d *dial.Dialer) {
	if cn.spec.Clients.AuthMethod == "" {
		return
	}
	var scram *mqtt.SCRAM
	if m != nil {
		scram = m.scram
	}
	if scram == nil {
		var err error
		if scram, err = mqtt.NewSCRAM(cfg.Username, string(cfg.Password)); err != nil {
			d.Fail(err)
			return
		}
		scram.Keys = cn.keys
	}
	if m != nil {
		m.scram = scram
	}
	cfg.Auth, cfg.HasPassword, cfg.Password = scram, false, nil
}

// vars are the variables of the i-th client, from 0.
func (cn *connector) vars(i int) scenarios.Vars {
	v := scenarios.Vars{I: i + cn.spec.Clients.StartNumber, R: cn.runID}
	v.U = scenarios.Expand(cn.spec.Clients.Username, v)
	v.C = scenarios.Expand(cn.spec.Clients.ClientID, v)
	v.U = scenarios.Expand(cn.spec.Clients.Username, v) // it may hold the client id
	if cn.credentials != nil {
		c := &cn.credentials[i]
		if c.HasUser {
			v.U = c.User
		}
		if c.ID != "" {
			v.C = c.ID
		}
	}
	return v
}

// learnAliases records how many aliases the broker allows a publisher.
func (cn *connector) recordAliases(k *packet.Connack) {
	asked := cn.spec.Clients.Properties.TopicAlias
	if asked == 0 || cn.spec.Protocol != packet.V5 || cn.spec.Load.PublisherClients() == 0 {
		return
	}
	// [MQTT-3.2.2-18] absent is 0.
	granted := 0
	if m := k.Properties.TopicAliasMaximum; m != nil {
		granted = min(asked, int(*m))
	}
	cn.connections.grant(&result.Aliases{Asked: asked, Granted: granted})
	if want := min(asked, cn.spec.Load.TopicsPerPublisher); granted < want {
		cn.warnings.add(result.CodeTopicAlias, fmt.Sprintf("the broker allows a publisher %d topic aliases, and %d of its topics were to have one: the others are sent with their full name", granted, want),
			"the broker's Topic Alias Maximum sets the limit")
	}
}

// ofPublish are the properties of the i-th client's messages.
func (cn *connector) ofPublish(i int) packet.Properties {
	if cn.spec.Protocol != packet.V5 {
		return packet.Properties{}
	}
	return cn.spec.Clients.OfPublish(cn.vars(i))
}
