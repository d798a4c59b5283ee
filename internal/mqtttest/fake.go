package mqtttest

import (
	"bytes"
	"net"
	"sync"
	"time"

	"github.com/mqttload/mqttload/internal/pace"
	"github.com/mqttload/mqttload/internal/wire"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// Fake is a scripted broker for tests. Its functions decide about each message:
// they can change what it delivers, refuse or withhold acknowledgements, and end
// connections. It supports wildcards and, round-robin, shared subscriptions. Set
// its fields before ServeConn.
//
// Where a fault of package broker does, use that: then the test runs against the
// real broker.
type Fake struct {
	// Connack answers CONNECT; the zero value accepts the client. NoConnack
	// withholds it. ConnackDelay and SubackDelay delay the answers.
	Connack                   packet.Connack
	NoConnack                 bool
	ConnackDelay, SubackDelay time.Duration
	// Present returns the Session Present flag of CONNACK; nil leaves that of
	// Connack. Subscriptions of such a session remain.
	Present func(*packet.Connect) bool
	// Seen, unless it is nil, is called with every CONNECT.
	Seen func(*packet.Connect)
	// When returns the time at which the n-th message of the topic (from 0), which
	// has arrived at the given time, is delivered and acknowledged; nil means at
	// once.
	When func(n int, p *packet.Publish, arrived time.Time) time.Time
	// Deliver returns the messages that reach the subscribers in place of the n-th
	// message (from 0) of the topic; nil delivers it unchanged. Deliver may keep
	// the slices of p.
	Deliver func(n int, p packet.Publish) []packet.Publish
	// Wild delivers to invalid topics: a wildcard replaces the last character.
	Wild bool
	// Ack returns the reason code for the n-th message of a connection (from 0),
	// and whether to answer at all; nil answers with success.
	Ack func(n int, p *packet.Publish) (code packet.ReasonCode, answer bool)
	// Suback returns the code for a subscription; nil grants the requested QoS.
	Suback func(s packet.Subscription) packet.ReasonCode
	// Hangup reports whether to close the publisher's connection instead of
	// handling its n-th message (from 0); nil never does.
	Hangup func(n int) bool

	mu      sync.Mutex
	subs    []*fakeSub
	counts  map[string]int
	arrived map[string]int
	queue   pace.Queue
}

// fakeSub is a subscription of one client, or of the members of a group.
type fakeSub struct {
	group, filter string
	members       []*fakeConn
	turn          int
}

type fakeConn struct {
	*wire.Conn
	f      *Fake
	v      packet.Version
	qos    byte
	id     uint16
	nth    int
	hungup bool
}

// ServeConn serves one client until its connection ends.
func (f *Fake) ServeConn(nc net.Conn) {
	c := &fakeConn{Conn: wire.New(nc, wire.Options{}), f: f, v: packet.V311}
	defer c.end()
	for !c.hungup {
		if _, err := c.Fill(); err != nil {
			return
		}
		for !c.hungup {
			frame, ok, err := c.Next()
			if err != nil {
				return
			}
			if !ok {
				break
			}
			if !c.handle(frame) {
				return
			}
		}
	}
}

// end closes the connection: at once after Hangup, else when all is written.
func (c *fakeConn) end() {
	if c.hungup {
		_ = c.Close()
		return
	}
	_ = c.Shutdown(wire.ErrClosed, patience)
}

// appender is any packet that can be sent.
type appender interface {
	Append(dst []byte, v packet.Version) ([]byte, error)
}

func (c *fakeConn) send(p appender) {
	out := c.Begin()
	b, err := p.Append(out, c.v)
	if err != nil {
		b = out
	}
	c.End(b)
	_ = c.Flush()
}

func (c *fakeConn) handle(frame packet.Frame) bool {
	switch frame.Type() {
	case packet.CONNECT:
		var p packet.Connect
		if p.Decode(frame) != nil {
			return false
		}
		c.v = p.Version
		if c.f.Seen != nil {
			c.f.Seen(&p)
		}
		if c.f.NoConnack {
			return true
		}
		time.Sleep(c.f.ConnackDelay)
		connack := c.f.Connack
		if c.f.Present != nil {
			connack.SessionPresent = c.f.Present(&p)
		}
		c.send(&connack)
		return !c.f.Connack.Code.IsError()
	case packet.SUBSCRIBE:
		return c.subscribe(frame)
	case packet.PUBLISH:
		return c.publish(frame)
	case packet.PUBREC, packet.PUBREL:
		var a packet.Ack
		if a.Decode(frame, c.v) != nil {
			return false
		}
		answer := packet.PUBREL
		if frame.Type() == packet.PUBREL {
			answer = packet.PUBCOMP
		}
		c.send(&packet.Ack{Type: answer, PacketID: a.PacketID})
	case packet.PINGREQ:
		c.End(packet.AppendPingresp(c.Begin()))
		_ = c.Flush()
	case packet.DISCONNECT:
		return false
	}
	return true
}

func (c *fakeConn) subscribe(frame packet.Frame) bool {
	var p packet.Subscribe
	if p.Decode(frame, c.v) != nil {
		return false
	}
	ack := packet.Suback{PacketID: p.PacketID}
	c.f.mu.Lock()
	for _, s := range p.Subscriptions {
		code := packet.ReasonCode(s.QoS)
		if c.f.Suback != nil {
			code = c.f.Suback(s)
		}
		ack.Codes = append(ack.Codes, code)
		if code.IsError() {
			continue
		}
		c.qos = byte(code)
		c.f.join(s.Filter, c)
	}
	c.f.mu.Unlock()
	time.Sleep(c.f.SubackDelay)
	c.send(&ack)
	return true
}

// join adds a subscriber. The lock is held.
func (f *Fake) join(filter string, c *fakeConn) {
	group, rest, shared := packet.SplitShared(filter)
	if shared {
		filter = rest
		for _, s := range f.subs {
			if s.group == group && s.filter == filter {
				s.members = append(s.members, c)
				return
			}
		}
	}
	f.subs = append(f.subs, &fakeSub{group: group, filter: filter, members: []*fakeConn{c}})
}

func (c *fakeConn) publish(frame packet.Frame) bool {
	var p packet.Publish
	if p.Decode(frame, c.v) != nil {
		return false
	}
	nth := c.nth
	c.nth++
	if c.f.Hangup != nil && c.f.Hangup(nth) {
		c.hungup = true
		return false
	}
	topic := string(p.Topic)
	p.Payload, p.Topic, p.RawProperties = bytes.Clone(p.Payload), []byte(topic), bytes.Clone(p.RawProperties)
	if c.f.When == nil {
		c.process(nth, p)
		return true
	}
	now := time.Now()
	c.f.mu.Lock()
	n := count(&c.f.arrived, topic)
	c.f.mu.Unlock()
	c.f.queue.Add(c.f.When(n, &p, now), func() { c.process(nth, p) })
	return true
}

// process delivers and acknowledges the connection's nth message.
func (c *fakeConn) process(nth int, p packet.Publish) {
	c.f.route(p)
	if p.QoS == 0 {
		return
	}
	code, answer := packet.ReasonSuccess, true
	if c.f.Ack != nil {
		code, answer = c.f.Ack(nth, &p)
	}
	if answer {
		typ := packet.PUBACK
		if p.QoS == 2 {
			typ = packet.PUBREC
		}
		c.send(&packet.Ack{Type: typ, PacketID: p.PacketID, Code: code})
	}
}

// count returns how often it has been called before for the topic.
func count(counts *map[string]int, topic string) int {
	if *counts == nil {
		*counts = make(map[string]int)
	}
	n := (*counts)[topic]
	(*counts)[topic]++
	return n
}

func (f *Fake) route(p packet.Publish) {
	f.mu.Lock()
	defer f.mu.Unlock()
	topic := string(p.Topic)
	out := []packet.Publish{p}
	if n := count(&f.counts, topic); f.Deliver != nil {
		out = f.Deliver(n, p)
	}
	for _, sub := range f.subs {
		if !packet.MatchTopic(sub.filter, topic) {
			continue
		}
		for _, m := range out {
			sub.members[sub.turn%len(sub.members)].deliver(m)
			sub.turn++
		}
	}
}

// deliver sends m to a subscriber. The lock is held.
func (c *fakeConn) deliver(m packet.Publish) {
	m.QoS = min(m.QoS, c.qos)
	m.PacketID = 0
	if m.QoS > 0 {
		if c.id++; c.id == 0 {
			c.id = 1
		}
		m.PacketID = c.id
	}
	if c.f.Wild {
		c.sendWild(&m)
		return
	}
	c.send(&m)
}

// sendWild sends m with an invalid topic, which an encoder would refuse.
func (c *fakeConn) sendWild(m *packet.Publish) {
	out, err := m.Append(nil, c.v)
	if err != nil {
		return
	}
	at := bytes.Index(out, m.Topic)
	out[at+len(m.Topic)-1] = '+'
	c.End(append(c.Begin(), out...))
	_ = c.Flush()
}
