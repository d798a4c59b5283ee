package broker

import (
	"strings"
	"sync"
)

// retained holds the retained message of each topic, by topic level.
type retained struct {
	mu    sync.RWMutex
	root  leaf
	count int
	bytes int
	max   int
}

type leaf struct {
	children map[string]*leaf
	msg      *message
}

// Memory of a leaf and of the map of its children, in bytes: a topic of many
// levels costs more in these than in its message.
const (
	leafBytes  = 64
	tableBytes = 256
)

func (r *retained) len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.count
}

// set replaces the retained message of m's topic. It returns false if there is no
// room for it.
// [MQTT-3.3.1-5], [MQTT-3.3.1-7] of 3.1.1
func (r *retained) set(m *message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if strings.Count(m.topic, "/") >= maxLevels {
		return false
	}
	more := r.growth(m)
	if r.bytes+more > r.max {
		return false
	}
	r.bytes += more
	l := &r.root
	for level := range strings.SplitSeq(m.topic, "/") {
		next := l.children[level]
		if next == nil {
			next = &leaf{}
			if l.children == nil {
				l.children = map[string]*leaf{}
			}
			l.children[level] = next
		}
		l = next
	}
	if l.msg == nil {
		r.count++
	}
	l.msg = m
	return true
}

// growth returns the number of bytes that m adds to the store. r.mu is held.
func (r *retained) growth(m *message) int {
	l, n := &r.root, m.size()
	for level := range strings.SplitSeq(m.topic, "/") {
		if l == nil || l.children == nil && l != &r.root {
			n += tableBytes
		}
		if l != nil {
			l = l.children[level]
		}
		if l == nil {
			n += leafBytes
		}
	}
	if l != nil && l.msg != nil {
		n -= l.msg.size()
	}
	return n
}

// remove removes the retained message of topic. [MQTT-3.3.1-6], [MQTT-3.3.1-10] of
// 3.1.1
func (r *retained) remove(topic string) { r.forget(topic, nil) }

// forget removes the message of topic if it is still m, or any if m is nil.
func (r *retained) forget(topic string, m *message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(&r.root, topic, m)
}

func (r *retained) drop(l *leaf, topic string, m *message) {
	level, rest, more := strings.Cut(topic, "/")
	child := l.children[level]
	if child == nil {
		return
	}
	if more {
		r.drop(child, rest, m)
	} else if child.msg != nil && (m == nil || m == child.msg) {
		r.bytes -= child.msg.size()
		r.count--
		child.msg = nil
	}
	if child.msg == nil && len(child.children) == 0 {
		delete(l.children, level)
		r.bytes -= leafBytes
		if child.children != nil {
			r.bytes -= tableBytes
		}
	}
}

// match returns the messages whose topics match filter. It removes those that
// have expired.
func (r *retained) match(filter string, now int64) []*message {
	var found []*message
	var old []*message
	r.mu.RLock()
	r.root.match(filter, true, func(m *message) {
		if m.expired(now) {
			old = append(old, m)
			return
		}
		found = append(found, m)
	})
	r.mu.RUnlock()
	for _, m := range old {
		r.forget(m.topic, m)
	}
	return found
}

func (l *leaf) match(filter string, first bool, found func(*message)) {
	level, rest, more := strings.Cut(filter, "/")
	switch level {
	case "#":
		l.all(first, found)
		return
	case "+":
		for name, child := range l.children {
			// [MQTT-4.7.2-1]
			if !first || !strings.HasPrefix(name, "$") {
				child.matchRest(rest, more, found)
			}
		}
		return
	}
	if child := l.children[level]; child != nil {
		child.matchRest(rest, more, found)
	}
}

func (l *leaf) matchRest(rest string, more bool, found func(*message)) {
	if more {
		l.match(rest, false, found)
	} else if l.msg != nil {
		found(l.msg)
	}
}

// all finds l's own message and all below it.
func (l *leaf) all(first bool, found func(*message)) {
	if l.msg != nil {
		found(l.msg)
	}
	for name, child := range l.children {
		if !first || !strings.HasPrefix(name, "$") {
			child.all(false, found)
		}
	}
}
