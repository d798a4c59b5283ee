package load

import (
	"context"
	"time"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
)

// offline publishes to persistent sessions whose clients are away, and measures
// the time from their return to the last delivery.
type offline struct{}

func (offline) byClock() bool { return false }

func (offline) totals(it *iteration) totals { return it.messages() }

// iterate disconnects the subscribers, publishes all messages, and connects the
// subscribers again.
func (o offline) iterate(ctx context.Context, it *iteration) error {
	if it.publishers = it.launch.alive(); len(it.publishers) == 0 {
		return ErrAllLost
	}
	it.launch.atEnd = it.launch.endSessions
	for _, p := range it.publishers {
		p.receiversAway = true
	}
	it.launch.eachSubscriber(func(_ int, m *member) { m.flushAcks(int(it.spec.QoS)); m.disconnect() })
	var err error
	back := make(chan struct{})
	r := it.measure(func(r *result.Iteration) result.Delivery {
		<-back
		return it.account(r)
	}, func() (stalled bool) {
		it.share()
		for _, p := range it.publishers {
			go p.pump()
		}
		o.fill(ctx, it)
		it.startClock()
		for _, p := range it.publishers {
			p.since(it.start)
		}
		go func() { defer close(back); err = it.launch.comeBack(ctx) }()
		return it.wait(ctx)
	})
	if err != nil && !interrupted(ctx, err) {
		return err
	}
	return it.verdict(ctx, r)
}

// fill waits until everything is published, or nothing makes progress.
func (offline) fill(ctx context.Context, it *iteration) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	drain := it.launch.drain(it.clock())
	for range tick.C {
		n := int64(0)
		for _, p := range it.publishers {
			if !p.dead.Load() {
				n += p.answered()
			}
		}
		if n >= it.spec.Load.Messages || ctx.Err() != nil || len(it.launch.alive()) < len(it.publishers) || drain.over(it.clock(), n) {
			return
		}
	}
}

// flushAcks waits until the broker has handled the member's acknowledgements.
// Otherwise they might be lost with the connection, and the broker would send
// the messages again. It answers an UNSUBSCRIBE after them, once for each step
// of the QoS.
func (m *member) flushAcks(steps int) {
	c := m.client.Load()
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), disconnectTimeout)
	defer cancel()
	for range steps {
		_, _ = c.Unsubscribe(ctx, []string{"mqttload/nothing"}) // if it fails, the account shows the duplicates
	}
}

// since makes the latencies of all published messages run from at: the broker
// is not responsible for how long they were queued.
func (p *publisher) since(at int64) {
	p.hold()
	for i := range p.sentAt {
		p.sentAt[i] = at
	}
	p.lastAt.Store(at)
	p.release()
	p.pump()
}

// eachSubscriber calls do for all subscribers that still receive, with their
// numbers, many at a time.
func (l *launch) eachSubscriber(do func(i int, m *member)) {
	var subscribers []int
	for i, m := range l.members {
		if m.sub != nil && !m.receiveEnded.Load() {
			subscribers = append(subscribers, i)
		}
	}
	ramp(context.Background(), len(subscribers), dialParallel, l.spec.Target.ConnectRate, func(k int) {
		do(subscribers[k], l.members[subscribers[k]])
	})
}

// comeBack connects the subscribers again. Those whose session is gone
// subscribe anew, and have lost their queue.
func (l *launch) comeBack(ctx context.Context) error {
	errs := make([]error, len(l.members))
	l.eachSubscriber(func(i int, m *member) {
		if errs[i] = l.rejoin(ctx, i, m); errs[i] != nil {
			m.stopReceiving()
		}
	})
	var first error
	for _, err := range errs {
		if err == nil || interrupted(ctx, err) {
			continue
		}
		if first == nil {
			first = err
		}
		l.rec.errs.add(ErrorOf(err))
	}
	if !l.receives() {
		return first
	}
	return nil
}

// receives reports whether any subscriber is left.
func (l *launch) receives() bool {
	for _, m := range l.members {
		if m.sub != nil && !m.receiveEnded.Load() {
			return true
		}
	}
	return false
}

// rejoin connects a subscriber whose session is kept.
func (l *launch) rejoin(ctx context.Context, i int, m *member) error {
	ctx, cancel := dial.Bound(ctx, l.spec)
	defer cancel()
	m.leaving.Store(false)
	client, err := l.connector.connect(ctx, m, l.connector.clientConfig(i, m, m.dialer))
	if err != nil {
		return err
	}
	l.connector.record(client, m.dialer)
	// The CONNACK of MQTT 3.1 does not say whether there is a session.
	if l.spec.Protocol == packet.V31 || client.Connack().SessionPresent {
		return nil
	}
	l.rec.warnings.add(result.CodeSessionNotKept, "the broker has not kept a session: the messages queued for it are lost",
		"look at the broker's limits on sessions and on --session-expiry")
	return l.connector.subscribe(ctx, m, client)
}

// endSessions ends the subscribers' sessions, so that the broker need not keep
// them.
func (l *launch) endSessions() {
	l.eachSubscriber(func(i int, m *member) {
		m.disconnect()
		ctx, cancel := context.WithTimeout(context.Background(), disconnectTimeout)
		defer cancel()
		cfg := l.connector.clientConfig(i, m, m.dialer)
		cfg.CleanStart, cfg.Session, cfg.Properties.SessionExpiry = true, nil, nil
		if c, err := mqtt.Connect(ctx, cfg); err == nil {
			_ = c.Disconnect(ctx, packet.ReasonSuccess)
		}
	})
}
