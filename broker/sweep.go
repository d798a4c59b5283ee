package broker

import (
	"errors"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// sweepInterval is how late keep-alive, expiry and stalls may be noticed.
const sweepInterval = 200 * time.Millisecond

var errStalled = errors.New("the subscriber reads nothing; read faster, or raise the stall timeout")

// startSweeper starts the goroutine that watches all connections, unless it is
// running. The goroutine ends when there is nothing to watch. b.mu is held.
func (b *Broker) startSweeper() {
	if b.sweeping || b.closed {
		return
	}
	b.sweeping = true
	b.wg.Add(1)
	go b.sweep()
}

func (b *Broker) sweep() {
	defer b.wg.Done()
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-b.stop:
			return
		}
		clients, sessions, more := b.dueForSweep()
		now := b.now()
		for _, c := range clients {
			c.check(now)
		}
		for _, s := range sessions {
			b.publishWills(b.expire(s, now))
		}
		if !more {
			return
		}
	}
}

// dueForSweep returns the connections and sessions to check. If more is false the
// sweeper ends.
func (b *Broker) dueForSweep() (clients []*client, sessions []*session, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.clients) == 0 && len(b.timed) == 0 {
		b.sweeping = false
		return nil, nil, false
	}
	now := b.now()
	for s := range b.timed {
		if s.will != nil && now >= s.willAt || s.expiresAt != 0 && now >= s.expiresAt {
			sessions = append(sessions, s)
		}
	}
	return b.clientList(), sessions, true
}

// expire ends s, or returns its will, if that is still due.
func (b *Broker) expire(s *session, now int64) []*will {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.owner != nil || b.sessions[s.id] != s {
		return nil
	}
	var due []*will
	ends := s.expiresAt != 0 && now >= s.expiresAt
	if s.will != nil && (ends || now >= s.willAt) {
		due = append(due, s.will)
		s.will = nil
	}
	if ends {
		b.end(s)
	} else if s.expiresAt == 0 && s.will == nil {
		delete(b.timed, s)
	}
	return due
}

// check ends c if the client is silent or reads nothing. It does not block.
func (c *client) check(now int64) {
	cfg := &c.b.cfg
	if !c.connected.Load() {
		if now-c.started > int64(cfg.ConnectTimeout) {
			c.cut(errors.New("CONNECT or authentication not complete in time"))
		}
		return
	}
	wc, stall := c.wire(), int64(cfg.StallTimeout)
	// A large packet takes long to write: it moves as long as the client reads.
	st := wc.Stats()
	moves := st.Writes == c.lastWrites && st.Progress != c.lastProgress
	c.lastProgress = st.Progress
	if moves || st.Writes != c.lastWrites || wc.Idle() {
		c.lastWrites, c.lastWriteAt = st.Writes, now
	} else if now-c.lastWriteAt > stall {
		c.b.count.stalled.Add(1)
		c.cut(errStalled)
		return
	}
	acks, waits, blocked := c.sess.waitsForAcks(cfg.MaxQueuedBytes)
	if blocked {
		stall *= 2 // the client that it waits for may be at fault, and goes first
	}
	if moves || acks != c.lastAcks || !waits { // nothing has come that it could acknowledge
		c.lastAcks, c.lastAckAt = acks, now
	} else if now-c.lastAckAt > stall {
		c.b.count.stalled.Add(1)
		c.kick(packet.ReasonQuotaExceeded)
		return
	}
	// [MQTT-3.1.2-22] A client is not silent while the broker does not read from it.
	if limit := c.keepAlive.Load(); limit > 0 && !c.blocked.Load() && now-c.seen.Load() > limit {
		c.kick(packet.ReasonKeepAliveTimeout)
	}
}
