package broker

import (
	"sync/atomic"
	"unsafe"
)

// target is one session to which the messages of a topic go.
type target struct {
	sess   *session
	qos    byte   // the greatest granted
	retain bool   // keep the RETAIN flag
	ids    []byte // Subscription Identifiers as properties
	share  *group // of a shared subscription, else nil
}

// shared is one shared subscription to which they go, one member at a time.
type shared struct {
	turn    *atomic.Uint32
	members []target
}

// pick returns the next member in turn, preferably one with a connection. It
// returns nil if there is no member.
func (s *shared) pick() *target {
	n := uint32(len(s.members))
	if n == 0 {
		return nil
	}
	turn := s.turn.Add(1)
	for i := range n {
		if t := &s.members[(turn+i)%n]; t.sess.online.Load() {
			return t
		}
	}
	return &s.members[turn%n]
}

// route has all targets for the messages of one topic from one publisher.
type route struct {
	topic   string
	head    string // topic as it starts the body of a PUBLISH
	control bool   // the topic has control characters
	targets []target
	shares  []shared
}

// size is roughly the memory of r in bytes. Fan-out makes it large.
func (r *route) size() int {
	n := cap(r.targets)
	for i := range r.shares {
		n += len(r.shares[i].members)
	}
	return len(r.head) + n*int(unsafe.Sizeof(target{}))
}

// resolve finds the route of topic for messages of the session self.
func (t *tree) resolve(topic string, self *session) *route {
	head := string([]byte{byte(len(topic) >> 8), byte(len(topic))}) + topic
	r := &route{topic: head[2:], head: head, control: hasControl(topic)}
	index := map[*session]int{}
	t.mu.RLock()
	defer t.mu.RUnlock()
	t.match(topic, func(n *node) {
		for _, sub := range n.subs {
			// [MQTT-3.8.3-3]
			if !sub.noLocal || sub.sess != self {
				r.add(index, sub)
			}
		}
		for _, g := range n.groups {
			r.shares = append(r.shares, g.shared())
		}
	})
	return r
}

// add merges sub into the targets: a session gets one copy of a message, with the
// greatest QoS and all Subscription Identifiers of its matching subscriptions. [MQTT-3.3.4-2]
// [MQTT-3.3.4-3] [MQTT-3.3.4-4], [MQTT-3.3.5-1] of 3.1.1
func (r *route) add(index map[*session]int, sub *subscription) {
	i, ok := index[sub.sess]
	if !ok {
		i = len(r.targets)
		index[sub.sess] = i
		r.targets = append(r.targets, target{sess: sub.sess})
	}
	t := &r.targets[i]
	t.qos = max(t.qos, sub.qos)
	t.retain = t.retain || sub.retainAsPublished
	t.ids = appendSubscriptionID(t.ids, sub.id)
}

// shared returns the members of g. The tree's lock is held.
func (g *group) shared() shared {
	s := shared{turn: &g.turn, members: make([]target, len(g.members))}
	for i, sub := range g.members {
		// [MQTT-4.8.2-3]
		s.members[i] = target{
			sess: sub.sess, qos: sub.qos, retain: sub.retainAsPublished,
			ids: appendSubscriptionID(nil, sub.id), share: g,
		}
	}
	return s
}

// Bounds of the cached routes of one connection.
const (
	maxRoutes     = 4096
	maxRouteBytes = 8 << 20
)

// routes caches the routes of the topics to which a connection has published,
// until any subscription changes.
type routes struct {
	version uint64
	last    *route
	all     map[string]*route
	bytes   int
}

// find returns the route of topic. The tree's lock must be free to take.
func (c *routes) find(t *tree, topic []byte, self *session) *route {
	version := t.version.Load()
	if version != c.version || len(c.all) >= maxRoutes || c.bytes > maxRouteBytes {
		clear(c.all)
		c.version, c.bytes = version, 0
	}
	r := c.all[string(topic)]
	if r == nil {
		r = t.resolve(string(topic), self)
		if c.all == nil {
			c.all = map[string]*route{}
		}
		c.all[r.topic] = r
		c.bytes += r.size()
	}
	if !r.control {
		c.last = r
	}
	return r
}

// current is the fast path of find, for the topic of the previous message.
func (c *routes) current(t *tree, topic []byte) *route {
	if c.last != nil && c.version == t.version.Load() && c.last.topic == string(topic) {
		return c.last
	}
	return nil
}
