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
type launch struct {
	run        *caseRun
	spec       *scenarios.Case // run.spec
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

func newLaunch(c *caseRun) *launch { return &launch{run: c, spec: c.spec} }

// openLaunch connects and subscribes everybody; nothing is published before
// every SUBACK has come. It fails when nothing can run.
func openLaunch(ctx context.Context, c *caseRun) (*launch, error) {
	l := newLaunch(c)
	l.run.x.serial++
	if err := l.plan(); err != nil {
		return nil, err
	}
	if err := l.connectAll(ctx); err != nil {
		l.close()
		return nil, err
	}
	l.startReauth()
	l.stood = l.run.x.clock()
	if err := l.run.enter(ctx, Publishing, int(l.connected.Load())); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *launch) connectAll(ctx context.Context) error {
	who := l.atStart()
	errs := make([]error, len(who))
	ramp(ctx, len(who), dialParallel, l.spec.Target.ConnectRate, func(k int) {
		if l.hopeless() {
			errs[k] = errNotTried
			return
		}
		if errs[k] = l.join(ctx, who[k], l.members[who[k]]); errs[k] == nil {
			l.connected.Add(1)
		} else {
			l.failed.Add(1)
		}
	})
	return l.judge(ctx, who, errs)
}

// hopeless: as many connections as are made at a time have failed and none has
// come about. A thousand more would only wait for the same timeout.
func (l *launch) hopeless() bool { return l.connected.Load() == 0 && l.failed.Load() >= dialParallel }

// judge counts the connections, and fails where nothing can run with those
// that there are.
func (l *launch) judge(ctx context.Context, who []int, errs []error) error {
	var first error
	for k, err := range errs {
		l.run.clients.Planned++
		if err == nil {
			l.run.clients.Connected++
			continue
		}
		if first == nil {
			first = err
		} else if err != errNotTried && !interrupted(ctx, err) {
			l.run.errs.add(ErrorOf(err))
		}
		l.members[who[k]].absent()
	}
	if first == nil {
		return nil
	}
	l.prune()
	if !l.usable() || interrupted(ctx, first) {
		return first
	}
	l.run.errs.add(ErrorOf(first))
	return nil
}

// interrupted reports whether err is only that the run was told to end.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
}

// join connects one member and subscribes it.
func (l *launch) join(ctx context.Context, i int, m *member) error {
	ctx, cancel := dial.Bound(ctx, l.spec)
	defer cancel()
	d := l.run.routes.Dialer(i)
	if l.credentials != nil {
		if err := d.Assume(&l.credentials[i]); err != nil {
			return err
		}
	}
	m.dialer = d
	client, err := l.connect(ctx, m, l.clientConfig(i, m, d))
	if err != nil {
		return err
	}
	l.learn(client, d)
	if err = m.unprepared; err == nil && m.sub != nil {
		err = l.subscribe(ctx, m, client)
	}
	if err == nil && m.pub != nil && m.link == nil {
		err = l.prepare(m, client)
	}
	if err != nil && m.link != nil {
		m.link.Close() // or it would go on connecting
	}
	return err
}

func (l *launch) clientConfig(i int, m *member, d *dial.Dialer) mqtt.Config {
	c := &l.spec.Clients
	vars := l.vars(i)
	cfg := mqtt.Config{
		Dial: d.Dial, Version: l.spec.Protocol, ClientID: vars.C, CleanStart: c.CleanStart, KeepAlive: c.KeepAlive,
		HasUsername: c.HasUsername, HasPassword: c.HasPassword,
		Inflight: l.spec.Load.Inflight, Handler: m, Sweeper: l.run.x.sweeper,
	}
	if c.HasUsername {
		cfg.Username = vars.U
	}
	if c.HasPassword {
		cfg.Password = []byte(scenarios.Expand(c.Password, vars))
	}
	if l.spec.Protocol == packet.V5 && c.SessionExpiry > 0 {
		secs := uint32(c.SessionExpiry / time.Second)
		cfg.Properties.SessionExpiry = &secs
	}
	if l.spec.Protocol == packet.V5 {
		c.Properties.OfConnect(&cfg.Properties, m != nil && m.pub != nil && m.sub == nil)
		cfg.TopicAliases = uint16(c.Properties.TopicAlias)
	}
	if w := c.Will; w != nil {
		cfg.Will = willOf(w, vars, l.spec.Protocol)
	}
	if u := d.URL; u.HasUsername && !c.HasUsername {
		cfg.HasUsername, cfg.Username = true, u.Username
		cfg.HasPassword, cfg.Password = u.HasPassword, []byte(scenarios.Expand(u.Password, vars))
	}
	if l.credentials != nil {
		l.credentials[i].Fill(&cfg)
	}
	l.authenticate(&cfg, m, d)
	if l.spec.Load.Shape.Queues > 0 && m != nil && m.sub != nil {
		m.persist(&cfg)
	}
	if l.spec.Protocol == packet.V5 && m != nil && !cfg.CleanStart {
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

func (l *launch) subscribe(ctx context.Context, m *member, c *mqtt.Client) error {
	for filters := range slices.Chunk(m.sub.filters, filtersPerPacket) {
		var subs []packet.Subscription
		for _, f := range filters {
			subs = append(subs, l.options(f))
		}
		start := time.Now()
		codes, err := c.Subscribe(ctx, subs, l.ofSubscribe())
		if err != nil {
			return err
		}
		l.subscribed(time.Since(start), codes)
	}
	return nil
}

func (l *launch) subscribed(took time.Duration, codes []packet.ReasonCode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run.legs.suback.record(int64(took), 1)
	if granted := byte(slices.Min(codes)); granted < l.spec.QoS {
		l.run.warn(result.CodeGrantedQoS, fmt.Sprintf("the broker granted QoS %d of %d: messages arrive at QoS %d", granted, l.spec.QoS, granted),
			"loss between the broker and the subscriber is legal at QoS 0")
	}
}

// prepare encodes the publisher's message to each of its topics once.
func (l *launch) prepare(m *member, c *mqtt.Client) error {
	p := packet.Publish{QoS: l.spec.QoS, Retain: l.spec.Clients.Retain, Payload: l.run.payload, PacketID: 1}
	if l.spec.QoS == 0 {
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
	m.pub.window = uint64(l.granted(c))
	return nil
}

// learn takes what one connection has to tell into the case, and the first
// connection of the run into the report's target.
func (l *launch) learn(c *mqtt.Client, d *dial.Dialer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, connack := c.Timing()
	if d.Legs.DNS > 0 {
		l.run.legs.dns.record(int64(d.Legs.DNS), 1)
	}
	l.run.legs.connect.record(int64(d.Legs.TCP), 1)
	l.run.legs.connack.record(int64(connack), 1)
	switch {
	case d.Legs.Resumed:
		l.run.legs.resumed.record(int64(d.Legs.TLS), 1)
	case d.Legs.TLS > 0:
		l.run.legs.handshake.record(int64(d.Legs.TLS), 1)
	}
	l.run.window = l.granted(c)
	l.takeAliases(c.Connack())
	overTLS := d.Secure()
	first := !l.run.x.told || overTLS && !l.run.x.toldTLS
	l.run.x.told, l.run.x.toldTLS = true, l.run.x.toldTLS || overTLS
	if first && l.run.x.cfg.Observer.Connected != nil {
		l.run.x.cfg.Observer.Connected(l.describe(c, d))
	}
	if way := d.Arrived(); way != "" {
		if l.run.referred == nil {
			l.run.referred = make(map[string]int64)
		}
		l.run.referred[way]++
	}
}

// granted is the window in force: the Receive Maximum bounds what is in flight
// at QoS 1 and 2, and so what is outstanding end to end; QoS 0 knows none.
func (l *launch) granted(c *mqtt.Client) int {
	if l.spec.QoS == 0 {
		return l.spec.Load.Inflight
	}
	return c.Window()
}

func (l *launch) describe(c *mqtt.Client, d *dial.Dialer) result.Target {
	p := &c.Connack().Properties
	url, way := d.Where()
	t := result.Target{URL: url, ReferredBy: way, Embedded: l.run.x.cfg.Embedded, Connack: &result.Connack{
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
		t.TLS = &result.TLS{Version: version, Cipher: cipher, Curve: curve, Resumed: resumed, Insecure: l.spec.TLS.Insecure}
	}
	return t
}

// grace is how long the other ends of a lost pair are given to be lost as well
// before they count as closed by this side: a broker that dies takes all its
// connections, but not at the same instant.
const grace = 100 * time.Millisecond

func (l *launch) awaitLost() {
	late := time.After(grace)
	for _, m := range l.members {
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
func (l *launch) clearRetained() {
	if !l.spec.Clients.Retain {
		return
	}
	for _, p := range l.publishers {
		for _, f := range p.flows {
			if p.client == nil || !bytes.Contains(f.topic, []byte(l.topicRun())) {
				continue
			}
			if t, err := p.client.Template(&packet.Publish{Topic: f.topic, Retain: true}); err == nil {
				_, _ = p.client.PublishN(t, 1, 0, nil)
			}
		}
	}
}

// close disconnects everybody.
func (l *launch) close() {
	l.reauth.end()
	l.awaitLost()
	l.closing.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	l.clearRetained()
	var wg sync.WaitGroup
	for _, m := range l.members {
		wg.Go(func() { m.leave(ctx) })
	}
	wg.Wait()
	l.again.Wait()
	l.tellBreaches()
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
