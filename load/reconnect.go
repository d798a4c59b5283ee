package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/result"
)

// outageLimit is how long it is tried to make a lost connection again.
const outageLimit = time.Minute

// outages is what has become of lost connections that were to be made again.
// Session.mu guards it.
type outages struct {
	first, last int64 // when one was lost first, and when one came back last, on the clock
	resent      int64
	unkept      int64 // subscribers that came back to a broker without their session
	took        leg   // from the loss to the CONNACK
}

// warning tells of the connections that came back; its code is "" where none did.
func (o *outages) warning(clients *result.Clients, start int64) (w result.Warning) {
	if clients.Reconnects == 0 {
		return w
	}
	w.Code = "reconnected"
	w.Message = fmt.Sprintf("connections were lost %s times, first at %.1f s; %s came back, the last at %.1f s, after at most %s; %s messages went again",
		result.FormatInt(clients.Lost), time.Duration(o.first-start).Seconds(), result.FormatInt(clients.Reconnects),
		time.Duration(o.last-start).Seconds(), result.FormatNS(float64(o.took.hist.Max())), result.FormatInt(o.resent))
	w.Hint = "the errors say what they were lost by; the outages are in the latencies and on the timeline"
	return w
}

// forgotten tells of a broker that has lost the sessions it was asked to keep;
// the code is "" where it has not.
func (o *outages) forgotten() (w result.Warning) {
	if o.unkept == 0 {
		return w
	}
	times := "once"
	if o.unkept > 1 {
		times = result.FormatInt(o.unkept) + " times"
	}
	return result.Warning{
		Code:    result.SessionNotKept,
		Message: fmt.Sprintf("%s a subscriber came back and the broker had not kept its session: nobody was subscribed meanwhile, and what came then was acknowledged and went nowhere", times),
		Hint:    "a broker keeps sessions over a restart only where it writes them down (Mosquitto: persistence true), and up to its limits on sessions and on --session-expiry",
	}
}

// returns reports whether the member's connection is made again when it is lost:
// not of one that comes and goes.
func (m *member) returns() bool {
	l := &m.session.Load
	return m.session.Target.Reconnect && (m.sub == nil || !l.Shape.Cycles && l.Shape.Queues == 0)
}

// resume makes cfg go on with the member's session. In MQTT 5, where this is
// for, one that an earlier run has left is of messages and packet ids that this
// one knows nothing of [MQTT-3.2.2-4], and ended; before MQTT 5 it would not be
// kept. Who only listens has none of either, and takes what is queued for it.
func (m *member) resume(cfg *mqtt.Config) {
	switch {
	case m.kept != nil:
	case m.session.Load.Shape.Listens:
		m.kept = mqtt.AdoptSession()
	default:
		m.kept = mqtt.NewSession()
	}
	cfg.Session = m.kept
}

// link makes a connection that is made again whenever it is lost.
func (s *session) link(ctx context.Context, m *member, cfg mqtt.Config) (*mqtt.Client, error) {
	if cfg.Session == nil {
		cfg.Session = mqtt.NewSession()
	}
	l, err := mqtt.Open(ctx, mqtt.LinkConfig{
		Config: cfg, Reconnect: true, ConnectTimeout: dial.Timeout(s.Case), GiveUp: outageLimit,
		Refer: m.dialer.ByReference(),
	})
	if err != nil {
		return nil, err
	}
	m.link = l
	return l.Client(), nil
}

// Up takes a new connection into use.
func (m *member) Up(c *mqtt.Client) {
	first := m.session.replace(m, c)
	p := m.pub
	if p == nil {
		return
	}
	p.hold()
	p.drop(c.Resumed().Dropped)
	err := m.session.prepare(m, c)
	p.release()
	switch {
	case err != nil && first:
		m.unprepared = err
	case err != nil:
		// The broker allows less than it did before.
		m.session.errs.add(kindOf(err), reasonOf(err), err.Error())
		p.dead.Store(true)
		p.pump()
	}
}

// replace makes c the member's connection and reports whether it is the first.
func (s *session) replace(m *member, c *mqtt.Client) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := m.client.Swap(c)
	if old != nil {
		addIO(&m.io, old)
	}
	s.outages.resent += int64(c.Resumed().Resent)
	return old == nil
}

func addIO(sum *result.IO, c *mqtt.Client) {
	s := c.Stats()
	sum.Reads += s.Reads
	sum.Writes += s.Writes
	sum.BytesRead += s.BytesIn
	sum.BytesWritten += s.BytesOut
}

// ioOf is what all of the member's connections have read and written.
func (s *session) ioOf(m *member) result.IO {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := m.io
	if c := m.client.Load(); c != nil {
		addIO(&sum, c)
	}
	return sum
}

// drop counts messages that have ended without an acknowledgement, by when they
// were sent.
func (p *publisher) drop(stamps []int64) {
	began := p.began.Load()
	for _, at := range stamps {
		if at == warmStamp || at >= began {
			p.dropped.Add(1)
		}
	}
}

// Down notes that the connection was lost and will be made again. What is due
// stays due.
func (m *member) Down(err error) {
	if m.session.closing.Load() {
		return
	}
	if m.pub != nil {
		m.pub.away.Store(true)
	}
	m.session.lost(m, err)
	if !m.down {
		m.down = true
		m.session.away.Add(1)
	}
}

// lost counts a connection that ended by itself. One that was given up counts
// as lost already.
func (s *session) lost(m *member, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reason := mqtt.EndOf(err)
	s.errs.add("disconnect", reason, reason)
	if m.down {
		return
	}
	s.clients.Lost++
	if s.outages.first == 0 {
		s.outages.first = s.x.clock()
	}
}

// Reconnected lets the member go on where it was.
func (m *member) Reconnected(r mqtt.Reconnect) {
	s := m.session
	s.learn(r.Client, m.dialer)
	s.mu.Lock()
	s.clients.Reconnects++
	s.outages.last = s.x.clock()
	s.outages.took.record(int64(r.Down), 1)
	if m.sub != nil && !r.Resumed.Present && s.Clients.Persistent(s.Protocol) {
		s.outages.unkept++
	}
	s.mu.Unlock()
	m.down = false
	s.away.Add(-1)
	if m.sub != nil && (!r.Resumed.Present || m.unsubscribed.Load()) {
		m.unsubscribed.Store(true)
		s.again.Go(func() { m.subscribeAgain(r) })
		return
	}
	m.goOn(r)
}

// subscribeAgain is for a broker that has not kept the session. Who is refused
// gets nothing any more; whatever else goes wrong ends the connection, and the
// next one is for another attempt.
func (m *member) subscribeAgain(r mqtt.Reconnect) {
	s := m.session
	ctx, cancel := dial.Bound(context.Background(), s.Case)
	defer cancel()
	err := s.subscribe(ctx, m, r.Client)
	var refused *mqtt.SubscribeError
	var limit *mqtt.LimitError
	switch {
	case err == nil:
		m.unsubscribed.Store(false)
		m.goOn(r)
	case errors.As(err, &refused), errors.As(err, &limit):
		s.errs.add(kindOf(err), reasonOf(err), err.Error())
		m.deafen()
	default:
		r.Client.Abort()
	}
}

// goOn sends what has become due. What the broker does not promise to deliver
// after an outage must not hold a window: it may be lost.
func (m *member) goOn(r mqtt.Reconnect) {
	if m.session.open == nil && (m.session.QoS == 0 || !r.Resumed.Present) {
		m.forgive()
	}
	if m.pub != nil {
		m.pub.away.Store(false)
		m.pub.pump()
	}
}

// forgive takes what is outstanding to and from the member out of the windows.
func (m *member) forgive() {
	if m.pub != nil {
		for _, f := range m.pub.flows {
			for _, r := range f.receipts {
				r.forgive()
			}
		}
	}
	if m.sub == nil {
		return
	}
	for _, r := range m.sub.receipts {
		if r != nil {
			r.forgive()
			r.flow.pub.pump()
		}
	}
}

func (r *receipt) forgive() {
	r.in.shard.mu.Lock()
	defer r.in.shard.mu.Unlock()
	if r.dead() {
		return
	}
	sent := r.flow.sentOf(r.flow.pub.sent.Load())
	if l := &r.ledger; l.unordered {
		r.forgiven = sent - r.flow.first - uint64(l.delivered+l.warm.delivered)
	}
	r.high.Store(max(r.high.Load(), sent))
}

// awaited reports whether a closed loop stands still because connections are
// being made again.
func (it *iteration) awaited(ctx context.Context, now int64) bool {
	return it.open == nil && it.away.Load() > 0 && ctx.Err() == nil && !it.expired(now)
}

// stands reports whether the member has a connection, or may yet get one again.
func (m *member) stands() bool {
	if m.link != nil {
		return m.link.Err() == nil
	}
	c := m.client.Load()
	return c != nil && c.Err() == nil
}

// deafen ends a member as a receiver. It may be called again.
func (m *member) deafen() {
	if m.sub != nil && m.deaf.CompareAndSwap(false, true) && m.sub.lose() {
		m.session.bereave(m.sub)
	}
}
