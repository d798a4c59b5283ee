package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

// session is the connections of a launch, or of one iteration where each gets
// fresh ones: for every topic a publisher and a subscriber, or one connection
// that is both.
type session struct {
	*caseRun
	members []*member
	streams []*stream
	shards  []*shard
	closing atomic.Bool // connections end because this side wants them to

	mu        sync.Mutex // guards what connecting and losing connections count
	confs     map[string]*tls.Config
	connected atomic.Int64
	failed    atomic.Int64
}

// dialParallel is how many connections are made at a time: enough to hide the
// round trips, too few for a broker's backlog to overflow.
const dialParallel = 64

// openSession connects and subscribes everybody; nothing is published before
// every SUBACK has come. It fails when no stream can run.
func openSession(ctx context.Context, c *caseRun) (*session, error) {
	s := &session{caseRun: c}
	s.x.serial++
	s.plan()
	if err := s.connectAll(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// plan makes the members and streams.
func (s *session) plan() {
	pairs := s.Load.Pairs
	perPair := 2
	if s.Load.Shape == scenarios.Loopback {
		perPair = 1
	}
	s.shards = make([]*shard, min(perPair*pairs, 4*runtime.GOMAXPROCS(0)))
	for i := range s.shards {
		s.shards[i] = new(shard)
	}
	tag := newTag(s.x.cfg.RunID, s.x.serial)
	for i := range pairs {
		publisher := perPair*i + perPair - 1
		vars := s.vars(publisher)
		vars.I, vars.R = i+1, s.topicRun()
		topic := scenarios.Expand(s.Clients.Topic, vars)
		st := newStream(s.caseRun, tag, i, topic)
		s.streams = append(s.streams, st)
		if perPair == 1 {
			s.addMember(st, st)
		} else {
			s.addMember(nil, st)
			s.addMember(st, nil)
		}
	}
}

// topicRun is the run id in topics. Where every iteration gets fresh
// connections it gets a topic of its own as well, of the same length.
func (s *session) topicRun() string {
	id := s.x.cfg.RunID
	if !s.Load.FreshIterations {
		return id
	}
	serial := strconv.FormatInt(int64(s.x.serial), 36)
	if len(serial) >= len(id) {
		return serial
	}
	return id[:len(id)-len(serial)] + serial
}

// vars are the values of the variables of the i-th client.
func (s *session) vars(i int) scenarios.Vars {
	v := scenarios.Vars{I: i + 1, R: s.x.cfg.RunID}
	v.U = scenarios.Expand(s.Clients.Username, v)
	v.C = scenarios.Expand(s.Clients.ClientID, v)
	v.U = scenarios.Expand(s.Clients.Username, v) // it may hold the client id
	return v
}

func (s *session) addMember(pub, sub *stream) {
	m := &member{session: s, pub: pub, sub: sub, shard: s.shards[len(s.members)%len(s.shards)]}
	if sub != nil {
		sub.subShard = m.shard
	}
	s.members = append(s.members, m)
}

func (s *session) connectAll(ctx context.Context) error {
	var wg sync.WaitGroup
	turn := make(chan struct{}, dialParallel)
	errs := make([]error, len(s.members))
	start := time.Now()
	for i, m := range s.members {
		if r := s.Target.ConnectRate; r > 0 {
			sleep(ctx, time.Until(start.Add(time.Duration(float64(i)/r*float64(time.Second)))))
		}
		turn <- struct{}{}
		if s.hopeless() {
			errs[i] = errNotTried
			<-turn
			continue
		}
		wg.Go(func() {
			if errs[i] = s.join(ctx, i, m); errs[i] == nil {
				s.connected.Add(1)
			} else {
				s.failed.Add(1)
			}
			<-turn
		})
	}
	wg.Wait()
	return s.judge(ctx, errs)
}

// hopeless: as many connections as are made at a time have failed and none has
// come about. A thousand more would only wait for the same timeout.
func (s *session) hopeless() bool { return s.connected.Load() == 0 && s.failed.Load() >= dialParallel }

// judge counts the connections; a stream without both ends is dead.
func (s *session) judge(ctx context.Context, errs []error) error {
	var first error
	alive := len(s.streams)
	for i, err := range errs {
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
		for _, st := range []*stream{s.members[i].pub, s.members[i].sub} {
			if st != nil && !st.dead.Swap(true) {
				alive--
			}
		}
	}
	if first == nil || alive == 0 || interrupted(ctx, first) {
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
	timeout := s.Target.ConnectTimeout
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errConnectTimeout)
	defer cancel()
	d := s.dialer(i)
	client, err := mqtt.Connect(ctx, s.clientConfig(i, m, d))
	if err != nil {
		return &connectError{d.url.String(), d.conf != nil, err}
	}
	m.client = client
	s.learn(client, d)
	if m.sub != nil {
		if err := s.subscribe(ctx, m); err != nil {
			return err
		}
	}
	if m.pub != nil {
		return s.prepare(m)
	}
	return nil
}

func (s *session) clientConfig(i int, m *member, d *dialer) mqtt.Config {
	c := &s.Clients
	vars := s.vars(i)
	cfg := mqtt.Config{
		Dial: d.dial, Version: s.Protocol, ClientID: vars.C, CleanStart: c.CleanStart, KeepAlive: c.KeepAlive,
		HasUsername: c.HasUsername, HasPassword: c.HasPassword,
		Inflight: s.Load.Inflight, Handler: m, Sweeper: s.x.sweeper,
	}
	if c.HasUsername {
		cfg.Username = vars.U
	}
	if c.HasPassword {
		cfg.Password = []byte(scenarios.Expand(c.Password, vars))
	}
	if u := d.url; u.HasUsername && !c.HasUsername {
		cfg.HasUsername, cfg.Username = true, u.Username
		cfg.HasPassword, cfg.Password = u.HasPassword, []byte(scenarios.Expand(u.Password, vars))
	}
	if s.Protocol == packet.V5 && c.SessionExpiry > 0 {
		secs := uint32(c.SessionExpiry / time.Second)
		cfg.Properties.SessionExpiry = &secs
	}
	return cfg
}

func (s *session) subscribe(ctx context.Context, m *member) error {
	start := time.Now()
	filter := string(m.sub.topic)
	codes, err := m.client.Subscribe(ctx, []packet.Subscription{{Filter: filter, QoS: s.QoS}}, packet.Properties{})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.legs.suback.record(int64(time.Since(start)), 1)
	if granted := byte(codes[0]); granted < s.QoS {
		s.warn("granted-qos", fmt.Sprintf("the broker granted QoS %d of %d: messages arrive at QoS %d", granted, s.QoS, granted),
			"loss between the broker and the subscriber is legal at QoS 0")
	}
	return nil
}

// prepare encodes the publisher's message once.
func (s *session) prepare(m *member) error {
	p := packet.Publish{QoS: s.QoS, Retain: s.Clients.Retain, Topic: m.pub.topic, Payload: m.pub.payload, PacketID: 1}
	if s.QoS == 0 {
		p.PacketID = 0
	}
	if ups := s.Clients.UserProperties; len(ups) > 0 && s.Protocol == packet.V5 {
		if err := p.SetProperties(&packet.Properties{UserProperties: ups}); err != nil {
			return err
		}
	}
	t, err := m.client.Template(&p)
	if err != nil {
		return err
	}
	m.pub.client, m.pub.tmpl = m.client, t
	m.pub.window = uint64(s.granted(m.client))
	return nil
}

// learn takes what one connection has to tell into the case, and the first
// connection of the run into the report's target.
func (s *session) learn(c *mqtt.Client, d *dialer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, connack := c.Timing()
	s.legs.connect.record(int64(d.connected), 1)
	s.legs.connack.record(int64(connack), 1)
	if d.handshaken > 0 {
		s.legs.handshake.record(int64(d.handshaken), 1)
	}
	s.window = s.granted(c)
	overTLS := d.conf != nil
	first := !s.x.told || overTLS && !s.x.toldTLS
	s.x.told, s.x.toldTLS = true, s.x.toldTLS || overTLS
	if first && s.x.cfg.Observer != nil {
		s.x.cfg.Observer.Connected(s.describe(c, d))
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

func (s *session) describe(c *mqtt.Client, d *dialer) result.Target {
	p := &c.Connack().Properties
	t := result.Target{URL: d.url.String(), Embedded: s.x.cfg.Embedded, Connack: &result.Connack{
		SessionPresent: c.Connack().SessionPresent, ReceiveMaximum: p.ReceiveMaximum, MaximumQoS: p.MaximumQoS,
		MaximumPacketSize: p.MaximumPacketSize, ServerKeepAlive: p.ServerKeepAlive,
		TopicAliasMaximum: p.TopicAliasMaximum, AssignedClientID: p.AssignedClientID,
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

// lost counts a connection that ended by itself.
func (s *session) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients.Lost++
	reason := mqtt.EndOf(err)
	s.errs.add("disconnect", reason, reason)
}

// grace is how long the other ends of a lost pair are given to be lost as well
// before they count as closed by this side: a broker that dies takes all its
// connections, but not at the same instant.
const grace = 100 * time.Millisecond

func (s *session) awaitLost() {
	late := time.After(grace)
	for _, m := range s.members {
		if m.client == nil || !(m.pub != nil && m.pub.dead.Load() || m.sub != nil && m.sub.dead.Load()) {
			continue
		}
		select {
		case <-m.client.Done():
		case <-late:
			return
		}
	}
}

// close disconnects everybody.
func (s *session) close() {
	s.awaitLost()
	s.closing.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for _, m := range s.members {
		if m.client == nil {
			continue
		}
		wg.Go(func() {
			if m.client.Disconnect(ctx, packet.ReasonSuccess) != nil {
				m.client.Close()
			}
		})
	}
	wg.Wait()
}

var errNotTried = errors.New("not tried")

var errConnectTimeout = errors.New("no answer within the connect timeout")

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
