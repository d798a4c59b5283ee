package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/result"
)

// outageLimit is how long it is tried to make a lost connection again.
const outageLimit = time.Minute

// outages is what has become of lost connections that were to be made again.
type outages struct {
	mu          sync.Mutex
	lost        int64 // connections
	reconnects  int64 // those that came back
	first, last int64 // when one was lost first, and when one came back last, on the clock
	resent      int64
	unkept      int64   // subscribers that came back to a broker without their session
	took        latency // from the loss to the CONNACK
}

// warning tells of the connections that came back; its code is "" where none did.
func (o *outages) warning(start int64) (w result.Warning) {
	if o.reconnects == 0 {
		return w
	}
	w.Code = result.CodeReconnected
	w.Message = fmt.Sprintf("connections were lost %s times, first at %.1f s; %s came back, the last at %.1f s, after at most %s; %s messages went again",
		result.FormatInt(o.lost), time.Duration(o.first-start).Seconds(), result.FormatInt(o.reconnects),
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

// lose counts a connection that was lost at now.
func (o *outages) lose(now int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost++
	if o.first == 0 {
		o.first = now
	}
}

// restore counts a connection that came back at now; unkept is one whose session
// the broker was asked to keep, and has not.
func (o *outages) restore(now int64, down time.Duration, unkept bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reconnects++
	o.last = now
	o.took.record(int64(down), 1)
	if unkept {
		o.unkept++
	}
}

// resend counts messages that were sent again.
func (o *outages) resend(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.resent += int64(n)
}

// links is what the members of a launch share about connections that are lost
// and made again.
type links struct {
	connector  *connector
	outages    *outages
	closedLoop bool           // what is outstanding holds windows
	closing    atomic.Bool    // connections end because this side wants them to
	away       atomic.Int64   // members whose connection is being made again
	again      sync.WaitGroup // members that subscribe or authenticate again
}

// Up takes a new connection into use.
func (m *member) Up(c *mqtt.Client) {
	first := m.replace(c)
	m.links.outages.resend(c.Resumed().Resent)
	p := m.pub
	if p == nil {
		return
	}
	p.hold()
	p.drop(c.Resumed().Dropped)
	err := m.links.connector.prepare(m, c)
	p.release()
	switch {
	case err != nil && first:
		m.unprepared = err
	case err != nil:
		// The broker allows less than it did before.
		m.errs.add(ErrorOf(err))
		p.dead.Store(true)
		p.pump()
	}
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
	if m.links.closing.Load() {
		return
	}
	if m.pub != nil {
		m.pub.away.Store(true)
	}
	m.lost(err)
	if !m.down {
		m.down = true
		m.links.away.Add(1)
	}
}

// Closed ends the work of a connection that was lost for good.
func (m *member) Closed(err error) {
	if m.links.closing.Load() || m.leaving.Load() {
		return
	}
	m.lost(err)
	if m.pub != nil {
		m.pub.dead.Store(true)
		m.pub.pump()
	}
	m.stopReceiving()
	if m.down {
		m.links.away.Add(-1)
	}
}

// lost counts a connection that ended by itself. One that is not made again any
// more counts as lost already.
func (m *member) lost(err error) {
	m.errs.add(lossOf(err, m.links.connector.spec.Protocol))
	if !m.down {
		m.links.outages.lose(m.clock())
	}
}

// Reconnected lets the member go on where it was.
func (m *member) Reconnected(r mqtt.Reconnect) {
	cn := m.links.connector
	cn.record(r.Client, m.dialer)
	persistent := cn.spec.Clients.Persistent(cn.spec.Protocol)
	m.links.outages.restore(m.clock(), r.Down, m.sub != nil && !r.Resumed.Present && persistent)
	m.down = false
	m.links.away.Add(-1)
	if m.sub != nil && (!r.Resumed.Present || m.unsubscribed.Load()) {
		m.unsubscribed.Store(true)
		m.links.again.Go(func() { m.subscribeAgain(r) })
		return
	}
	m.resumeSending(r)
}

// subscribeAgain is for a broker that has not kept the session. Who is refused
// gets nothing any more; whatever else goes wrong ends the connection, and the
// next one is for another attempt.
func (m *member) subscribeAgain(r mqtt.Reconnect) {
	cn := m.links.connector
	ctx, cancel := dial.Bound(context.Background(), cn.spec)
	defer cancel()
	err := cn.subscribe(ctx, m, r.Client)
	var refused *mqtt.SubscribeError
	var limit *mqtt.LimitError
	switch {
	case err == nil:
		m.unsubscribed.Store(false)
		m.resumeSending(r)
	case errors.As(err, &refused), errors.As(err, &limit):
		m.errs.add(ErrorOf(err))
		m.stopReceiving()
	default:
		r.Client.Abort()
	}
}

// goOn sends what has become due. What the broker does not promise to deliver
// after an outage must not hold a window: it may be lost.
func (m *member) resumeSending(r mqtt.Reconnect) {
	if m.links.closedLoop && (m.links.connector.spec.QoS == 0 || !r.Resumed.Present) {
		m.releaseWindow()
	}
	if m.pub != nil {
		m.pub.away.Store(false)
		m.pub.pump()
	}
}

// releaseWindow takes what is outstanding to and from the member out of the windows.
func (m *member) releaseWindow() {
	if m.pub != nil {
		for _, f := range m.pub.flows {
			for _, r := range f.receipts {
				r.releaseWindow()
			}
		}
	}
	if m.sub == nil {
		return
	}
	for _, r := range m.sub.receipts {
		if r != nil {
			r.releaseWindow()
			r.flow.pub.pump()
		}
	}
}

func (r *receipt) releaseWindow() {
	r.in.shard.mu.Lock()
	defer r.in.shard.mu.Unlock()
	if r.dead() {
		return
	}
	sent := r.flow.sentOf(r.flow.pub.sent.Load())
	if l := &r.ledger; l.unordered {
		r.released = sent - r.flow.first - uint64(l.delivered+l.warm.delivered)
	}
	r.high.Store(max(r.high.Load(), sent))
}

// stands reports whether the member has a connection, or may yet get one again.
func (m *member) alive() bool {
	if m.link != nil {
		return m.link.Err() == nil
	}
	c := m.client.Load()
	return c != nil && c.Err() == nil
}
