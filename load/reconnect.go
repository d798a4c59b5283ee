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
	w.Code = result.CodeReconnected
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
		Code:    result.CodeSessionNotKept,
		Message: fmt.Sprintf("%s a subscriber came back and the broker had not kept its session: nobody was subscribed meanwhile, and what came then was acknowledged and went nowhere", times),
		Hint:    "a broker keeps sessions over a restart only where it writes them down (Mosquitto: persistence true), and up to its limits on sessions and on --session-expiry",
	}
}

// returns reports whether the member's connection is made again when it is lost:
// not of one that comes and goes.
func (m *member) returns() bool {
	load := &m.launch.spec.Load
	return m.launch.spec.Target.Reconnect && (m.sub == nil || !load.Shape.Cycles && load.Shape.Queues == 0)
}

// resume makes cfg go on with the member's session. In MQTT 5, where this is
// for, one that an earlier run has left is of messages and packet ids that this
// one knows nothing of [MQTT-3.2.2-4], and ended; before MQTT 5 it would not be
// kept. Who only listens has none of either, and takes what is queued for it.
func (m *member) resume(cfg *mqtt.Config) {
	switch {
	case m.kept != nil:
	case m.launch.spec.Load.Shape.Listens:
		m.kept = mqtt.AdoptSession()
	default:
		m.kept = mqtt.NewSession()
	}
	cfg.Session = m.kept
}

// link makes a connection that is made again whenever it is lost.
func (l *launch) link(ctx context.Context, m *member, cfg mqtt.Config) (*mqtt.Client, error) {
	if cfg.Session == nil {
		cfg.Session = mqtt.NewSession()
	}
	link, err := mqtt.Open(ctx, mqtt.LinkConfig{
		Config: cfg, Reconnect: true, ConnectTimeout: dial.Timeout(l.spec), GiveUp: outageLimit,
		Refer: m.dialer.ByReference(),
	})
	if err != nil {
		return nil, err
	}
	m.link = link
	return link.Client(), nil
}

// Up takes a new connection into use.
func (m *member) Up(c *mqtt.Client) {
	first := m.launch.replace(m, c)
	p := m.pub
	if p == nil {
		return
	}
	p.hold()
	p.drop(c.Resumed().Dropped)
	err := m.launch.prepare(m, c)
	p.release()
	switch {
	case err != nil && first:
		m.unprepared = err
	case err != nil:
		// The broker allows less than it did before.
		m.launch.run.errs.add(ErrorOf(err))
		p.dead.Store(true)
		p.pump()
	}
}

// replace makes c the member's connection and reports whether it is the first.
func (l *launch) replace(m *member, c *mqtt.Client) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := m.client.Swap(c)
	if old != nil {
		addIO(&m.io, old)
	}
	l.run.outages.resent += int64(c.Resumed().Resent)
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
func (l *launch) ioOf(m *member) result.IO {
	l.mu.Lock()
	defer l.mu.Unlock()
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
	if m.launch.closing.Load() {
		return
	}
	if m.pub != nil {
		m.pub.away.Store(true)
	}
	m.launch.lost(m, err)
	if !m.down {
		m.down = true
		m.launch.away.Add(1)
	}
}

// lost counts a connection that ended by itself. One that was given up counts
// as lost already.
func (l *launch) lost(m *member, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run.errs.add(lossOf(err, l.spec.Protocol))
	if m.down {
		return
	}
	l.run.clients.Lost++
	if l.run.outages.first == 0 {
		l.run.outages.first = l.run.x.clock()
	}
}

// Reconnected lets the member go on where it was.
func (m *member) Reconnected(r mqtt.Reconnect) {
	l := m.launch
	l.learn(r.Client, m.dialer)
	l.mu.Lock()
	l.run.clients.Reconnects++
	l.run.outages.last = l.run.x.clock()
	l.run.outages.took.record(int64(r.Down), 1)
	if m.sub != nil && !r.Resumed.Present && l.spec.Clients.Persistent(l.spec.Protocol) {
		l.run.outages.unkept++
	}
	l.mu.Unlock()
	m.down = false
	l.away.Add(-1)
	if m.sub != nil && (!r.Resumed.Present || m.unsubscribed.Load()) {
		m.unsubscribed.Store(true)
		l.again.Go(func() { m.subscribeAgain(r) })
		return
	}
	m.goOn(r)
}

// subscribeAgain is for a broker that has not kept the session. Who is refused
// gets nothing any more; whatever else goes wrong ends the connection, and the
// next one is for another attempt.
func (m *member) subscribeAgain(r mqtt.Reconnect) {
	l := m.launch
	ctx, cancel := dial.Bound(context.Background(), l.spec)
	defer cancel()
	err := l.subscribe(ctx, m, r.Client)
	var refused *mqtt.SubscribeError
	var limit *mqtt.LimitError
	switch {
	case err == nil:
		m.unsubscribed.Store(false)
		m.goOn(r)
	case errors.As(err, &refused), errors.As(err, &limit):
		l.run.errs.add(ErrorOf(err))
		m.deafen()
	default:
		r.Client.Abort()
	}
}

// goOn sends what has become due. What the broker does not promise to deliver
// after an outage must not hold a window: it may be lost.
func (m *member) goOn(r mqtt.Reconnect) {
	if m.launch.open == nil && (m.launch.spec.QoS == 0 || !r.Resumed.Present) {
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
	return it.launch.open == nil && it.launch.away.Load() > 0 && ctx.Err() == nil && !it.launch.run.expired(now)
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
		m.launch.bereave(m.sub)
	}
}
