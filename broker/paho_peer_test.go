package broker

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// pahoSuite is the environment of one test of the interoperability suites of Eclipse
// paho.mqtt.testing: a broker and a way to connect to it.
type pahoSuite struct {
	*testing.T
	b       *Broker
	v       packet.Version
	virtual bool // time is, and connections are pipes
	addr    string
}

// pahoConfig is the broker that those suites expect: with one filter to which no client
// may subscribe, a Keep Alive of at most a minute, and a Receive Maximum that their
// client can exceed.
var pahoConfig = Config{
	ReceiveMaximum: 20, MaxKeepAlive: time.Minute,
	RefusedFilters: []string{"test/nosubscribe", "nosubscribe"},
}

// pahoTest is one test of a suite, under its name there.
type pahoTest struct {
	name    string
	virtual bool // waits for time to pass
	run     func(s *pahoSuite)
}

// runPaho runs the tests of a suite, each against a broker of its own.
func runPaho(t *testing.T, v packet.Version, tests []pahoTest) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.virtual {
				virtual(t, pahoConfig, func(t *testing.T, b *Broker) {
					test.run(&pahoSuite{T: t, b: b, v: v, virtual: true})
				})
				return
			}
			b := startBroker(t, pahoConfig)
			test.run(&pahoSuite{T: t, b: b, v: v, addr: listen(t, b)})
		})
	}
}

// join opens a connection.
func (s *pahoSuite) join() *peer {
	s.Helper()
	if s.virtual {
		return joinPipe(s.T, s.b)
	}
	return join(s.T, s.addr)
}

// wait lets time pass, which is virtual.
func (s *pahoSuite) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// pahoMessage has the arguments of the suite's publishArrived, with the topic as sent
// by the broker.
type pahoMessage struct {
	topic, payload string
	qos            byte
	retain, dup    bool
	props          packet.Properties
}

// pahoClient is the client of that suite: it answers in the background, keeps the
// arguments of its callbacks, and does not resolve Topic Aliases.
type pahoClient struct {
	*peer
	s      *pahoSuite
	id     string
	ack    packet.Connack
	closed chan struct{} // by the reader, at the end of the connection

	mu          sync.Mutex
	changed     chan struct{} // closed and made anew by every packet
	messages    []pahoMessage
	suback      [][]packet.ReasonCode
	unsubacks   int
	pongs       int
	disconnects []packet.ReasonCode
	in          map[uint16]pahoMessage // QoS 2, before PUBREL
	out         map[uint16]byte        // QoS by packet identifier, without the last acknowledgement
	paused      bool                   // PUBLISH is not answered, nor told of
	last        uint16
}

// connect is accepted; set changes the CONNECT, which has a clean start.
func (s *pahoSuite) connect(id string, set ...func(p *packet.Connect)) *pahoClient {
	s.Helper()
	c := s.tryConnect(id, set...)
	if c.ack.Code != packet.ReasonSuccess {
		s.Fatalf("CONNACK: %v", c.ack.Code)
	}
	go c.read()
	return c
}

func (s *pahoSuite) tryConnect(id string, set ...func(p *packet.Connect)) *pahoClient {
	s.Helper()
	c := &pahoClient{
		peer: s.join(), s: s, id: id, closed: make(chan struct{}), changed: make(chan struct{}),
		in: map[uint16]pahoMessage{}, out: map[uint16]byte{},
	}
	p := clean(s.v, id)
	for _, f := range set {
		f(&p)
	}
	c.ack = c.peer.connect(p)
	_ = c.nc.SetReadDeadline(time.Time{})
	return c
}

// resume resumes the existing session.
func resume(p *packet.Connect) { p.CleanStart = false }

// expiry keeps the session: for so many seconds in MQTT 5, and in 3.1.1 for good.
func expiry(seconds uint32) func(p *packet.Connect) {
	return func(p *packet.Connect) {
		if p.Version == packet.V5 {
			p.Properties.SessionExpiry = &seconds
			return
		}
		p.CleanStart = false
	}
}

func keepAlive(seconds uint16) func(p *packet.Connect) {
	return func(p *packet.Connect) { p.KeepAlive = seconds }
}

func willOf(topic, payload string, props packet.Properties) func(p *packet.Connect) {
	return func(p *packet.Connect) {
		p.Will = &packet.Will{Topic: topic, Payload: []byte(payload), QoS: 2, Properties: props}
	}
}

// read handles packets until the connection ends.
func (c *pahoClient) read() {
	defer func() {
		close(c.closed)
		c.tell()
	}()
	for {
		f, ok, err := c.scan.Next()
		switch {
		case err != nil:
			return
		case ok:
			c.handle(f)
			continue
		}
		n, err := c.nc.Read(c.scan.Space())
		c.scan.Advance(n)
		if n == 0 && err != nil {
			return
		}
	}
}

// tell wakes up the goroutines that wait for a condition.
func (c *pahoClient) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *pahoClient) handle(f packet.Frame) {
	defer c.tell()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch f.Type() {
	case packet.PUBLISH:
		c.onPublish(f)
	case packet.PUBACK, packet.PUBREC, packet.PUBREL, packet.PUBCOMP:
		c.onAck(f)
	case packet.SUBACK:
		var p packet.Suback
		c.check(p.Decode(f, c.v))
		c.suback = append(c.suback, p.Codes)
	case packet.UNSUBACK:
		c.unsubacks++
	case packet.PINGRESP:
		c.pongs++
	case packet.DISCONNECT:
		var p packet.Disconnect
		c.check(p.Decode(f, c.v))
		c.disconnects = append(c.disconnects, p.Code)
	default:
		c.s.Errorf("unexpected %s", packet.Format(f, c.v))
	}
}

// check is must for the reader, which is not the test's goroutine.
func (c *pahoClient) check(err error) {
	if err != nil {
		c.s.Error(err)
	}
}

// onPublish reports a message, or keeps it until its PUBREL.
func (c *pahoClient) onPublish(f packet.Frame) {
	if c.paused {
		return
	}
	var p packet.Publish
	c.check(p.Decode(f, c.v))
	m := pahoMessage{topic: string(p.Topic), payload: string(p.Payload), qos: p.QoS, retain: p.Retain, dup: p.Dup}
	c.check(p.ParseProperties(&m.props))
	m.props.CorrelationData = bytes.Clone(m.props.CorrelationData)
	switch p.QoS {
	case 0:
		c.messages = append(c.messages, m)
	case 1:
		c.messages = append(c.messages, m)
		c.answer(packet.PUBACK, p.PacketID)
	case 2:
		c.in[p.PacketID] = m
		c.answer(packet.PUBREC, p.PacketID)
	}
}

func (c *pahoClient) onAck(f packet.Frame) {
	var a packet.Ack
	c.check(a.Decode(f, c.v))
	if f.Type() == packet.PUBREL {
		m, ok := c.in[a.PacketID]
		if !ok {
			return
		}
		c.messages = append(c.messages, m)
		delete(c.in, a.PacketID)
		c.answer(packet.PUBCOMP, a.PacketID)
		return
	}
	switch qos, ok := c.out[a.PacketID]; {
	case !ok, f.Type() == packet.PUBACK && qos != 1:
		c.s.Errorf("%s for the packet identifier %d, which is not in use", f.Type(), a.PacketID)
	case f.Type() == packet.PUBREC:
		c.answer(packet.PUBREL, a.PacketID)
	default:
		delete(c.out, a.PacketID)
	}
}

// answer writes an acknowledgement. It ignores errors: the next packet is then
// missing.
func (c *pahoClient) answer(t packet.Type, id uint16) {
	_, _ = c.nc.Write(packet.AppendAck(nil, t, id))
}

// until waits for cond, which sees the client locked.
func (c *pahoClient) until(what string, cond func() bool) {
	c.s.Helper()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for {
		c.mu.Lock()
		ok, changed := cond(), c.changed
		c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			c.s.Fatalf("%s: %s has not come", c.id, what)
		}
	}
}

// nextID returns a packet identifier.
func (c *pahoClient) nextID() uint16 {
	c.last++
	return c.last
}

// subscribe waits for SUBACK and returns its codes.
func (c *pahoClient) subscribe(subs ...packet.Subscription) []packet.ReasonCode {
	c.s.Helper()
	return c.subscribeAs(0, subs...)
}

// subscribeAs is subscribe with a Subscription Identifier; 0 means none.
func (c *pahoClient) subscribeAs(id uint32, subs ...packet.Subscription) []packet.ReasonCode {
	c.s.Helper()
	p := packet.Subscribe{PacketID: c.nextID(), Subscriptions: subs}
	if id != 0 {
		p.Properties.SubscriptionIDs = []uint32{id}
	}
	n := len(c.subacks())
	c.send(&p)
	c.until("SUBACK", func() bool { return len(c.suback) > n })
	return c.subacks()[n]
}

func (c *pahoClient) subacks() [][]packet.ReasonCode {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.suback)
}

func (c *pahoClient) unsubscribe(filter string) {
	c.s.Helper()
	c.send(&packet.Unsubscribe{PacketID: c.nextID(), Filters: []string{filter}})
	c.until("UNSUBACK", func() bool { return c.unsubacks > 0 })
}

// publish does not wait.
func (c *pahoClient) publish(topic, payload string, qos byte, set ...func(p *packet.Publish)) {
	c.s.Helper()
	p := packet.Publish{Topic: []byte(topic), Payload: []byte(payload), QoS: qos}
	if qos > 0 {
		p.PacketID = c.nextID()
		c.mu.Lock()
		c.out[p.PacketID] = qos
		c.mu.Unlock()
	}
	for _, f := range set {
		f(&p)
	}
	c.send(&p)
}

func asRetained(p *packet.Publish) { p.Retain = true }

func with(props packet.Properties) func(p *packet.Publish) {
	return func(p *packet.Publish) { _ = p.SetProperties(&props) } // constants of these tests
}

// settle waits until everything published is acknowledged and handled.
func (c *pahoClient) settle() {
	c.s.Helper()
	c.until("the acknowledgement", func() bool { return len(c.out) == 0 })
	c.mu.Lock()
	n := c.pongs
	c.mu.Unlock()
	c.write(packet.AppendPingreq(nil), nil)
	c.until("PINGRESP", func() bool { return c.pongs > n && len(c.in) == 0 })
}

// want waits for n messages and makes sure that no other comes.
func (c *pahoClient) want(n int) []pahoMessage {
	c.s.Helper()
	c.until("a message", func() bool { return len(c.messages) >= n })
	c.settle()
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.messages
	c.messages = nil
	if len(got) != n {
		c.s.Fatalf("%d messages, want %d: %+v", len(got), n, got)
	}
	return got
}

// wantQoS is want for one message of each QoS.
func (c *pahoClient) wantQoS() []pahoMessage {
	c.s.Helper()
	got := c.want(3)
	seen := map[byte]bool{}
	for _, m := range got {
		seen[m.qos] = true
	}
	if len(seen) != 3 {
		c.s.Errorf("not one of each QoS: %+v", got)
	}
	return got
}

// disconnect leaves once everything is done, unless paused.
func (c *pahoClient) disconnect(set ...func(p *packet.Disconnect)) {
	c.s.Helper()
	c.until("the end of an exchange", func() bool { return c.paused || len(c.in)+len(c.out) == 0 })
	var p packet.Disconnect
	for _, f := range set {
		f(&p)
	}
	c.send(&p)
	<-c.closed
	_ = c.nc.Close()
}

// terminate is lost.
func (c *pahoClient) terminate() {
	_ = c.nc.Close()
	<-c.closed
	c.s.b.waitOffline(c.s.T, c.id)
}
