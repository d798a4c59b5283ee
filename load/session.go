package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

// session is the connections of a launch, or of one iteration where each gets
// fresh ones, and what they carry.
type session struct {
	*caseRun
	members    []*member
	publishers []*publisher
	inboxes    []*inbox
	flows      []*flow // by stream number
	shards     []*shard
	// credentials are who the clients are, one for each; nil where they differ
	// in nothing but numbers.
	credentials dial.Credentials
	open        *openLoop   // nil in a closed loop
	churn       *churn      // nil where clients stay
	enough      *enough     // nil unless the listeners end by themselves
	reauth      *reauth     // nil where nobody authenticates again
	stood       int64       // when all had connected, on the clock
	closing     atomic.Bool // connections end because this side wants them to

	mu        sync.Mutex     // guards what connecting and losing connections count
	again     sync.WaitGroup // those who subscribe again
	away      atomic.Int64   // members whose connection is being made again
	connected atomic.Int64
	failed    atomic.Int64
}

// dialParallel is how many connections are made at a time: enough to hide the
// round trips, too few for a broker's backlog to overflow.
const dialParallel = 64

// openSession connects and subscribes everybody; nothing is published before
// every SUBACK has come. It fails when nothing can run.
func openSession(ctx context.Context, c *caseRun) (*session, error) {
	s := &session{caseRun: c}
	s.x.serial++
	if err := s.plan(); err != nil {
		return nil, err
	}
	if err := s.connectAll(ctx); err != nil {
		s.close()
		return nil, err
	}
	s.startReauth()
	s.stood = s.x.clock()
	if err := s.enter(ctx, Publishing, int(s.connected.Load())); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) connectAll(ctx context.Context) error {
	who := s.atStart()
	errs := make([]error, len(who))
	ramp(ctx, len(who), dialParallel, s.Target.ConnectRate, func(k int) {
		if s.hopeless() {
			errs[k] = errNotTried
			return
		}
		if errs[k] = s.join(ctx, who[k], s.members[who[k]]); errs[k] == nil {
			s.connected.Add(1)
		} else {
			s.failed.Add(1)
		}
	})
	return s.judge(ctx, who, errs)
}

// hopeless: as many connections as are made at a time have failed and none has
// come about. A thousand more would only wait for the same timeout.
func (s *session) hopeless() bool { return s.connected.Load() == 0 && s.failed.Load() >= dialParallel }

// judge counts the connections, and fails where nothing can run with those
// that there are.
func (s *session) judge(ctx context.Context, who []int, errs []error) error {
	var first error
	for k, err := range errs {
		s.clients.Planned++
		if err == nil {
			s.clients.Connected++
			continue
		}
		if first == nil {
			first = err
		} else if err != errNotTried && !interrupted(ctx, err) {
			s.errs.add(kindOf(err), reasonOf(err), err.Error())
		}
		s.members[who[k]].absent()
	}
	if first == nil {
		return nil
	}
	s.prune()
	if !s.usable() || interrupted(ctx, first) {
		return first
	}
	s.errs.add(kindOf(first), reasonOf(first), first.Error())
	return nil
}

// interrupted reports whether err is only that the run was told to end.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
}

// join connects one member and subscribes it.
func (s *session) join(ctx context.Context, i int, m *member) error {
	ctx, cancel := dial.Bound(ctx, s.Case)
	defer cancel()
	d := s.routes.Dialer(i)
	if s.credentials != nil {
		if err := d.Assume(&s.credentials[i]); err != nil {
			return err
		}
	}
	m.dialer = d
	client, err := s.connect(ctx, m, s.clientConfig(i, m, d))
	if err != nil {
		return err
	}
	s.learn(client, d)
	if err = m.unprepared; err == nil && m.sub != nil {
		err = s.subscribe(ctx, m, client)
	}
	if err == nil && m.pub != nil && m.link == nil {
		err = s.prepare(m, client)
	}
	if err != nil && m.link != nil {
		m.link.Close() // or it would go on connecting
	}
	return err
}

func (s *session) clientConfig(i int, m *member, d *dial.Dialer) mqtt.Config {
	c := &s.Clients
	vars := s.vars(i)
	cfg := mqtt.Config{
		Dial: d.Dial, Version: s.Protocol, ClientID: vars.C, CleanStart: c.CleanStart, KeepAlive: c.KeepAlive,
		HasUsername: c.HasUsername, HasPassword: c.HasPassword,
		Inflight: s.Load.Inflight, Handler: m, Sweeper: s.x.sweeper,
	}
	if c.HasUsername {
		cfg.Username = vars.U
	}
	if c.HasPassword {
		cfg.Password = []byte(scenarios.Expand(c.Password, vars))
	}
	if s.Protocol == packet.V5 && c.SessionExpiry > 0 {
		secs := uint32(c.SessionExpiry / time.Second)
		cfg.Properties.SessionExpiry = &secs
	}
	if s.Protocol == packet.V5 {
		c.Properties.OfConnect(&cfg.Properties, m != nil && m.pub != nil && m.sub == nil)
		cfg.TopicAliases = uint16(c.Properties.TopicAlias)
	}
	if w := c.Will; w != nil {
		cfg.Will = willOf(w, vars, s.Protocol)
	}
	if u := d.URL; u.HasUsername && !c.HasUsername {
		cfg.HasUsername, cfg.Username = true, u.Username
		cfg.HasPassword, cfg.Password = u.HasPassword, []byte(scenarios.Expand(u.Password, vars))
	}
	if s.credentials != nil {
		s.credentials[i].Fill(&cfg)
	}
	s.authenticate(&cfg, m, d)
	if s.Load.Shape.Queues > 0 && m != nil && m.sub != nil {
		m.persist(&cfg)
	}
	if s.Protocol == packet.V5 && m != nil && !cfg.CleanStart {
		m.resume(&cfg)
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

// filtersPerPacket bounds a SUBSCRIBE packet: brokers have limits.
const filtersPerPacket = 100

func (s *session) subscribe(ctx context.Context, m *member, c *mqtt.Client) error {
	for filters := range slices.Chunk(m.sub.filters, filtersPerPacket) {
		var subs []packet.Subscription
		for _, f := range filters {
			subs = append(subs, s.options(f))
		}
		start := time.Now()
		codes, err := c.Subscribe(ctx, subs, s.ofSubscribe())
		if err != nil {
			return err
		}
		s.subscribed(time.Since(start), codes)
	}
	return nil
}

func (s *session) subscribed(took time.Duration, codes []packet.ReasonCode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.legs.suback.record(int64(took), 1)
	if granted := byte(slices.Min(codes)); granted < s.QoS {
		s.warn("granted-qos", fmt.Sprintf("the broker granted QoS %d of %d: messages arrive at QoS %d", granted, s.QoS, granted),
			"loss between the broker and the subscriber is legal at QoS 0")
	}
}

// prepare encodes the publisher's message to each of its topics once.
func (s *session) prepare(m *member, c *mqtt.Client) error {
	p := packet.Publish{QoS: s.QoS, Retain: s.Clients.Retain, Payload: s.payload, PacketID: 1}
	if s.QoS == 0 {
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
	m.pub.window = uint64(s.granted(c))
	return nil
}

// learn takes what one connection has to tell into the case, and the first
// connection of the run into the report's target.
func (s *session) learn(c *mqtt.Client, d *dial.Dialer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, connack := c.Timing()
	if d.Legs.DNS > 0 {
		s.legs.dns.record(int64(d.Legs.DNS), 1)
	}
	s.legs.connect.record(int64(d.Legs.TCP), 1)
	s.legs.connack.record(int64(connack), 1)
	switch {
	case d.Legs.Resumed:
		s.legs.resumed.record(int64(d.Legs.TLS), 1)
	case d.Legs.TLS > 0:
		s.legs.handshake.record(int64(d.Legs.TLS), 1)
	}
	s.window = s.granted(c)
	s.takeAliases(c.Connack())
	overTLS := d.Secure()
	first := !s.x.told || overTLS && !s.x.toldTLS
	s.x.told, s.x.toldTLS = true, s.x.toldTLS || overTLS
	if first && s.x.cfg.Observer.Connected != nil {
		s.x.cfg.Observer.Connected(s.describe(c, d))
	}
	if way := d.Arrived(); way != "" {
		if s.referred == nil {
			s.referred = make(map[string]int64)
		}
		s.referred[way]++
	}
}

// granted is the window in force: the Receive Maximum bounds what is in flight
// at QoS 1 and 2, and so what is outstanding end to end; QoS 0 knows none.
func (s *session) granted(c *mqtt.Client) int {
	if s.QoS == 0 {
		return s.Load.Inflight
	}
	return c.Window()
}

func (s *session) describe(c *mqtt.Client, d *dial.Dialer) result.Target {
	p := &c.Connack().Properties
	url, way := d.Where()
	t := result.Target{URL: url, ReferredBy: way, Embedded: s.x.cfg.Embedded, Connack: &result.Connack{
		SessionPresent: c.Connack().SessionPresent, ReceiveMaximum: p.ReceiveMaximum, MaximumQoS: p.MaximumQoS,
		MaximumPacketSize: p.MaximumPacketSize, ServerKeepAlive: p.ServerKeepAlive,
		TopicAliasMaximum: p.TopicAliasMaximum, AssignedClientID: p.AssignedClientID,
		ResponseInformation: p.ResponseInfo,
	}}
	if r := p.RetainAvailable; r != nil {
		yes := *r == 1
		t.Connack.RetainAvailable = &yes
	}
	if tc, ok := c.NetConn().(*tls.Conn); ok {
		version, cipher, curve, resumed := tlsconf.State(tc.ConnectionState())
		t.TLS = &result.TLS{Version: version, Cipher: cipher, Curve: curve, Resumed: resumed, Insecure: s.TLS.Insecure}
	}
	return t
}

// grace is how long the other ends of a lost pair are given to be lost as well
// before they count as closed by this side: a broker that dies takes all its
// connections, but not at the same instant.
const grace = 100 * time.Millisecond

func (s *session) awaitLost() {
	late := time.After(grace)
	for _, m := range s.members {
		c := m.client.Load()
		if c == nil || !m.bereft() {
			continue
		}
		select {
		case <-c.Done():
		case <-late:
			return
		}
	}
}

// leaveTimeout bounds a disconnect.
const leaveTimeout = 2 * time.Second

// clearRetained removes the retained messages of topics that are this run's
// own; a topic without the run's id is whose name was asked for, and so is what
// it keeps. [MQTT-3.3.1-6]
func (s *session) clearRetained() {
	if !s.Clients.Retain {
		return
	}
	for _, p := range s.publishers {
		for _, f := range p.flows {
			if p.client == nil || !bytes.Contains(f.topic, []byte(s.topicRun())) {
				continue
			}
			if t, err := p.client.Template(&packet.Publish{Topic: f.topic, Retain: true}); err == nil {
				_, _ = p.client.PublishN(t, 1, 0, nil)
			}
		}
	}
}

// close disconnects everybody.
func (s *session) close() {
	s.reauth.end()
	s.awaitLost()
	s.closing.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	s.clearRetained()
	var wg sync.WaitGroup
	for _, m := range s.members {
		wg.Go(func() { m.leave(ctx) })
	}
	wg.Wait()
	s.again.Wait()
	s.tellBreaches()
}

// leave disconnects the member, if it is connected.
func (m *member) leave(ctx context.Context) {
	switch c := m.client.Load(); {
	case m.link != nil:
		_ = m.link.Disconnect(ctx, packet.ReasonSuccess)
	case c != nil && c.Disconnect(ctx, packet.ReasonSuccess) != nil:
		c.Close()
	}
}

var errNotTried = errors.New("not tried")

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
