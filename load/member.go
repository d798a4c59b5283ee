package load

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
)

// member is one client of a launch: a publisher, a subscriber, both, or idle.
// It is the handler of its connections.
type member struct {
	links  *links
	errs   *errorSet
	clock  func() int64
	shard  *shard
	dialer *dial.Dialer
	client atomic.Pointer[mqtt.Client] // the present connection, or the last one; nil before the first
	scram  *mqtt.SCRAM                 // proves the password; nil where it is sent
	link   *mqtt.Link                  // makes lost connections again; nil without --reconnect
	pub    *publisher                  // nil unless it publishes
	sub    *inbox                      // nil unless it subscribes
	now    int64                       // of this read batch
	pumps  []*publisher

	// Of connections that are made again.
	down         bool        // the connection is lost; the link calls one event after the other
	unprepared   error       // why the first connection cannot publish
	unsubscribed atomic.Bool // the present connection has no subscriptions yet
	mu           sync.Mutex  // guards earlier, and the change of client
	earlier      result.IO   // of connections before the present one

	kept *mqtt.Session // continues with every connection; nil unless MQTT 5 keeps one

	receiveEnded atomic.Bool // it no longer receives
	leaving      atomic.Bool // it disconnects on purpose, and will reconnect

	progress int64 // of the present connection, at the last call of move
}

// BatchStart reads the clock once for all packets of this read.
func (m *member) BatchStart() {
	m.now = m.clock()
	m.shard.mu.Lock()
	if m.sub != nil {
		m.sub.serial++
		m.sub.last = nil
		m.sub.touched = m.sub.touched[:0]
	}
}

// Message accounts for a delivery.
func (m *member) Message(p *packet.Publish) {
	if m.sub != nil {
		m.sub.deliver(p, m.now)
	}
}

// Acks accounts for the broker's acknowledgements.
func (m *member) Acks(acks []mqtt.Ack) {
	if m.pub == nil {
		return
	}
	var acked, nacked, warm int64
	began := m.pub.began.Load()
	for i := range acks {
		a := &acks[i]
		switch {
		case a.Stamp == warmStamp:
			if a.Done {
				warm++
			}
		case a.Stamp < began: // of an iteration that was given up
		case !a.Done:
			m.shard.pubrec.add(m.now - a.Stamp)
		case a.Code.IsError():
			nacked++
			m.errs.add(rejectionOf(a.Code))
		default:
			acked++
			m.shard.ack.add(m.now - a.Stamp)
		}
	}
	m.pub.acked.Add(acked)
	m.pub.nacked.Add(nacked)
	if warm > 0 {
		m.pub.warmAcked.Add(warm)
	}
	m.pub.lastAt.Store(m.now)
}

// BatchEnd lets the publishers continue whose windows the batch has moved.
func (m *member) BatchEnd() {
	m.shard.flush()
	m.pumps = m.pumps[:0]
	if m.sub != nil {
		m.sub.publishProgress(m.now)
		m.collectPumps()
	}
	m.shard.mu.Unlock()
	if m.pub != nil {
		m.pub.pump()
	}
	for _, p := range m.pumps {
		p.pump()
	}
}

// collectPumps collects the publishers whose window may have moved: those of
// receipts that were the slowest, and all that have sent everything. The lock
// is held.
func (m *member) collectPumps() {
	for _, r := range m.sub.touched {
		f := r.flow
		p := f.pub
		waits := p.pacing == nil && (len(f.receipts) == 1 || f.slowest.Load() == r.index)
		if !waits && !p.ending.Load() {
			continue
		}
		if n := len(m.pumps); p != m.pub && (n == 0 || m.pumps[n-1] != p) {
			m.pumps = append(m.pumps, p)
		}
	}
}

// Room lets the publisher continue.
func (m *member) Room() {
	if m.pub != nil {
		m.pub.pump()
	}
}

// replace makes c the member's connection and reports whether it is the first.
func (m *member) replace(c *mqtt.Client) (first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.client.Swap(c)
	if old != nil {
		addIO(&m.earlier, old)
	}
	return old == nil
}

// io is what all of the member's connections have read and written.
func (m *member) io() result.IO {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := m.earlier
	if c := m.client.Load(); c != nil {
		addIO(&sum, c)
	}
	return sum
}

// disconnectTimeout bounds a disconnect.
const disconnectTimeout = 2 * time.Second

// disconnect disconnects a member that will reconnect, if it is connected.
func (m *member) disconnect() {
	ctx, cancel := context.WithTimeout(context.Background(), disconnectTimeout)
	defer cancel()
	m.leaving.Store(true)
	m.leave(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.client.Swap(nil); c != nil {
		addIO(&m.earlier, c)
	}
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

// neverConnected takes out a member that did not connect.
func (m *member) neverConnected() {
	if m.pub != nil {
		m.pub.dead.Store(true)
	}
	if m.sub != nil && m.receiveEnded.CompareAndSwap(false, true) {
		m.sub.lose()
	}
}

// lostPeer reports whether the other end of the member's messages is lost.
func (m *member) lostPeer() bool {
	if m.pub != nil && m.pub.dead.Load() {
		return true
	}
	return m.sub != nil && slices.ContainsFunc(m.sub.receipts, func(r *receipt) bool { return r != nil && r.flow.pub.dead.Load() })
}

// stopReceiving ends a member as a receiver. It may be called again.
func (m *member) stopReceiving() {
	if m.sub != nil && m.receiveEnded.CompareAndSwap(false, true) && m.sub.lose() {
		m.sub.stopUnheard()
	}
}
