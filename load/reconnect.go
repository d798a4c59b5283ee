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

// outageLimit is how long to keep trying to reconnect.
const outageLimit = time.Minute

// outages counts lost connections and reconnects.
type outages struct {
	mu          sync.Mutex
	lost        int64 // connections
	reconnects  int64 // of the lost connections
	first, last int64 // the first loss and the last reconnect, on the clock
	resent      int64
	unkept      int64   // subscribers that reconnected and found no session
	took        latency // from the loss to the CONNACK
}

// warning reports the reconnects. Its code is "" if there were none.
func (o *outages) warning(start int64) (w result.Warning) {
	if o.reconnects == 0 {
		return w
	}
	w.Code = result.CodeReconnected
	w.Message = fmt.Sprintf("connections were lost %s times, first at %.1f s; %s came back, the last at %.1f s, after at most %s; %s messages were resent",
		result.FormatInt(o.lost), time.Duration(o.first-start).Seconds(), result.FormatInt(o.reconnects),
		time.Duration(o.last-start).Seconds(), result.FormatNS(float64(o.took.hist.Max())), result.FormatInt(o.resent))
	w.Hint = "the errors say why they were lost; the latencies and the timeline include the outages"
	return w
}

// forgotten warns that the broker lost sessions that it was asked to keep. Its code
// is "" if it lost none.
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
		Message: fmt.Sprintf("%s a subscriber reconnected and the broker had not kept its session: until it had subscribed again, the broker acknowledged its messages and dropped them", times),
		Hint:    "a broker keeps sessions over a restart only if it stores them on disk (Mosquitto: persistence true), and within its limits on sessions and on --session-expiry",
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

// restore counts a reconnect at now, after an outage of down. unkept says that the
// broker did not keep its session although it was asked to.
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

// resend counts messages that were resent.
func (o *outages) resend(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.resent += int64(n)
}

// links is the state of lost connections and reconnects that the members of a launch
// share.
type links struct {
	connector  *connector
	outages    *outages
	closedLoop bool           // outstanding messages fill windows
	closing    atomic.Bool    // this side ends the connections
	away       atomic.Int64   // members that are reconnecting
	again      sync.WaitGroup // members that subscribe or authenticate again
}

// Up makes the member use a new connection.
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
		// The broker allows less than before.
		m.errs.add(ErrorOf(err))
		p.dead.Store(true)
		p.pump()
	}
}

// drop counts messages that ended without an acknowledgement, given the times
// at which they were sent.
func (p *publisher) drop(stamps []int64) {
	began := p.began.Load()
	for _, at := range stamps {
		if at == warmStamp || at >= began {
			p.dropped.Add(1)
		}
	}
}

// Down notes that the connection was lost and will be made again. Due messages
// stay due.
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

// Closed ends the member's work when its connection was lost for good.
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

// lost counts a connection that ended by itself. A connection that is given up
// after an outage counts as lost already.
func (m *member) lost(err error) {
	m.errs.add(lossOf(err, m.links.connector.spec.Protocol))
	if !m.down {
		m.links.outages.lose(m.clock())
	}
}

// Reconnected makes the member continue where it was.
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

// subscribeAgain is for a broker that has not kept the session. A member whose
// subscription is refused receives nothing more; any other failure ends the
// connection, and the next one is another attempt.
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

// resumeSending sends what has become due. Messages that the broker need not
// deliver after an outage may be lost, and must not fill a window.
func (m *member) resumeSending(r mqtt.Reconnect) {
	if m.links.closedLoop && (m.links.connector.spec.QoS == 0 || !r.Resumed.Present) {
		m.releaseWindow()
	}
	if m.pub != nil {
		m.pub.away.Store(false)
		m.pub.pump()
	}
}

// releaseWindow takes the outstanding messages to and from the member out of
// the windows.
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

// alive reports whether the member has a connection, or may still get one
// again.
func (m *member) alive() bool {
	if m.link != nil {
		return m.link.Err() == nil
	}
	c := m.client.Load()
	return c != nil && c.Err() == nil
}
