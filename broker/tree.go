package broker

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// maxLevels is how many levels a topic filter may have: each costs a node.
const maxLevels = 200

// subscription is one topic filter of one session.
type subscription struct {
	sess              *session
	filter            string // as the client wrote it
	qos               byte
	noLocal           bool
	retainAsPublished bool
	id                uint32 // Subscription Identifier; 0 means none
}

// group is a shared subscription: the sessions with one filter and share name.
type group struct {
	members []*subscription
	turn    atomic.Uint32
}

// node is one level of the topic filters. The keys "+" and "#" of children are
// the wildcards.
type node struct {
	children map[string]*node
	subs     map[*session]*subscription
	groups   map[string]*group
}

func (n *node) empty() bool {
	return len(n.children) == 0 && len(n.subs) == 0 && len(n.groups) == 0
}

// tree holds the subscriptions of all sessions. Its version changes with
// every change, so that publishers may keep what they have found.
type tree struct {
	version atomic.Uint64
	mu      sync.RWMutex
	root    node
	count   int
}

func (t *tree) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.count
}

// subscribe adds or replaces a subscription of s, reporting whether there was
// none with that filter. [MQTT-3.8.4-3] s.subs is guarded by the tree's lock.
func (t *tree) subscribe(sub *subscription) (isNew bool) {
	share, filter, shared := packet.SplitShared(sub.filter)
	if !shared {
		filter = sub.filter
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.version.Add(1)
	old := sub.sess.subs[sub.filter]
	sub.sess.subs[sub.filter] = sub
	n := t.root.descend(filter)
	switch {
	case shared:
		n.join(share, old, sub)
	case n.subs == nil:
		n.subs = map[*session]*subscription{sub.sess: sub}
	default:
		n.subs[sub.sess] = sub
	}
	if old == nil {
		t.count++
	}
	return old == nil
}

// descend returns the node of filter, made where it was missing.
func (n *node) descend(filter string) *node {
	for {
		level, rest, more := strings.Cut(filter, "/")
		child := n.children[level]
		if child == nil {
			child = &node{}
			if n.children == nil {
				n.children = map[string]*node{}
			}
			n.children[level] = child
		}
		if !more {
			return child
		}
		n, filter = child, rest
	}
}

// join puts sub into the group share, in the place of old. Members are copied:
// publishers may hold the slice.
func (n *node) join(share string, old, sub *subscription) {
	g := n.groups[share]
	if g == nil {
		if n.groups == nil {
			n.groups = map[string]*group{}
		}
		g = &group{}
		n.groups[share] = g
	}
	g.members = append(without(g.members, old), sub)
}

func without(list []*subscription, sub *subscription) []*subscription {
	kept := make([]*subscription, 0, len(list)+1)
	for _, m := range list {
		if m != sub {
			kept = append(kept, m)
		}
	}
	return kept
}

// unsubscribe removes a filter of s, reporting whether there was one. What has
// been sent or waits is left alone. [MQTT-3.10.4-2] [MQTT-3.10.4-3]
func (t *tree) unsubscribe(s *session, filter string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	sub := s.subs[filter]
	if sub == nil {
		return false
	}
	delete(s.subs, filter)
	t.drop(sub)
	t.version.Add(1)
	return true
}

// unsubscribeAll removes all filters of s.
func (t *tree) unsubscribeAll(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(s.subs) == 0 {
		return
	}
	for _, sub := range s.subs {
		t.drop(sub)
	}
	clear(s.subs)
	t.version.Add(1)
}

func (t *tree) drop(sub *subscription) {
	share, filter, shared := packet.SplitShared(sub.filter)
	if !shared {
		filter = sub.filter
	}
	t.root.drop(filter, share, sub)
	t.count--
}

// drop removes sub at filter below n, and the nodes left empty.
func (n *node) drop(filter, share string, sub *subscription) {
	level, rest, more := strings.Cut(filter, "/")
	child := n.children[level]
	if child == nil {
		return
	}
	switch g := child.groups[share]; {
	case more:
		child.drop(rest, share, sub)
	case share == "":
		delete(child.subs, sub.sess)
	case g != nil:
		if g.members = without(g.members, sub); len(g.members) == 0 {
			delete(child.groups, share)
		}
	}
	if child.empty() {
		delete(n.children, level)
	}
}

// match calls found for every node whose filter matches topic, byte by byte.
// [MQTT-3.3.2-3] [MQTT-4.7.3-4]
func (t *tree) match(topic string, found func(*node)) {
	t.root.match(topic, true, found)
}

func (n *node) match(topic string, first bool, found func(*node)) {
	level, rest, more := strings.Cut(topic, "/")
	// [MQTT-4.7.2-1] A wildcard at the start does not match topics with $.
	wild := !first || !strings.HasPrefix(topic, "$")
	if wild {
		if child := n.children["#"]; child != nil {
			found(child)
		}
		if child := n.children["+"]; child != nil {
			child.matchRest(rest, more, found)
		}
	}
	if level == "+" || level == "#" {
		return // no topic name has these; they would be matched twice
	}
	if child := n.children[level]; child != nil {
		child.matchRest(rest, more, found)
	}
}

func (n *node) matchRest(rest string, more bool, found func(*node)) {
	if more {
		n.match(rest, false, found)
		return
	}
	found(n)
	// "sport/#" also matches "sport". [MQTT5 4.7.1.2]
	if child := n.children["#"]; child != nil {
		found(child)
	}
}
