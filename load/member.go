package load

import (
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// member is one connection of a session: the publisher of a stream, its
// subscriber, or both.
type member struct {
	session *session
	shard   *shard
	client  *mqtt.Client
	pub     *stream // nil unless it publishes
	sub     *stream // nil unless it subscribes
	now     int64   // of this read batch
}

// BatchStart reads the clock, once for everything that this read has brought.
func (m *member) BatchStart() {
	m.now = m.session.x.clock()
	m.shard.mu.Lock()
}

// Message accounts for a delivery.
func (m *member) Message(p *packet.Publish) {
	if m.sub == nil {
		return
	}
	if sentAt, ok := m.sub.deliver(p); ok {
		m.shard.e2e.add(m.now - sentAt)
	}
}

// Acks accounts for the broker's acknowledgements.
func (m *member) Acks(acks []mqtt.Ack) {
	if m.pub == nil {
		return
	}
	var acked, nacked int64
	began := m.pub.began.Load()
	for i := range acks {
		a := &acks[i]
		switch {
		case a.Stamp < began: // of an iteration that was given up
		case !a.Done:
			m.shard.pubrec.add(m.now - a.Stamp)
		case a.Code.IsError():
			nacked++
			m.session.errs.add("publish", a.Code.String(), "")
		default:
			acked++
			m.shard.ack.add(m.now - a.Stamp)
		}
	}
	m.pub.acked.Add(acked)
	m.pub.nacked.Add(nacked)
}

// BatchEnd lets the streams go on with what the batch has set free.
func (m *member) BatchEnd() {
	m.shard.flush()
	if s := m.sub; s != nil {
		s.high.Store(s.ledger.next)
		s.delivered.Store(s.ledger.delivered)
		s.lastAt.Store(m.now)
	}
	m.shard.mu.Unlock()
	if m.pub != nil {
		m.pub.lastAt.Store(m.now)
		m.pub.pump()
	}
	if m.sub != nil && m.sub != m.pub {
		m.sub.pump()
	}
}

// Room lets the publisher go on.
func (m *member) Room() {
	if m.pub != nil {
		m.pub.pump()
	}
}

// Closed ends the streams of a connection that was lost.
func (m *member) Closed(err error) {
	if m.session.closing.Load() {
		return
	}
	m.session.lost(err)
	for _, s := range []*stream{m.pub, m.sub} {
		if s != nil {
			s.dead.Store(true)
			s.pump()
		}
	}
}
