package load

import (
	"context"
	"time"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
)

// offlineExpiry is how long the sessions of subscribers who go away are to be
// kept where the scenario does not say.
const offlineExpiry = time.Hour

// queues runs a launch in which messages are published to sessions whose
// clients are away.
func (c *caseRun) queues(ctx context.Context, number int) error {
	l, err := openLaunch(ctx, c)
	if err != nil {
		return err
	}
	defer func() {
		l.forget()
		l.end(number)
	}()
	for _, p := range l.publishers {
		p.apart = true
	}
	return c.repeat(ctx, func(it *iteration) error {
		it.launch, it.number = l, number
		return it.drainQueues(ctx)
	})
}

// persist makes cfg that of a subscriber whose session is kept. [MQTT5 3.1.2.4]
func (m *member) persist(cfg *mqtt.Config) {
	cfg.CleanStart = false
	if cfg.Version == packet.V5 && cfg.Properties.SessionExpiry == nil {
		secs := uint32(offlineExpiry / time.Second)
		cfg.Properties.SessionExpiry = &secs
	}
}

// drainQueues sends the subscribers away, publishes all messages, and measures
// from the subscribers' return to the last delivery.
func (it *iteration) drainQueues(ctx context.Context) error {
	publishers := it.launch.alive()
	if len(publishers) == 0 {
		return ErrAllLost
	}
	it.launch.each(func(_ int, m *member) { it.launch.conclude(m); it.launch.part(m) })
	new(legs).drain(it.launch.shards)
	it.begin(publishers)
	it.share(publishers)
	for _, p := range publishers {
		go p.pump()
	}
	it.fill(ctx, publishers)
	before := it.usage()
	it.start = it.launch.run.x.clock()
	for _, p := range publishers {
		p.since(it.start)
	}
	var err error
	back := make(chan struct{})
	go func() { defer close(back); err = it.launch.comeBack(ctx) }()
	stalled := it.wait(ctx, publishers)
	r := result.Iteration{
		Launch: it.number, Stage: it.stage, Index: it.index,
		StartNS: it.start - it.launch.run.start, ElapsedNS: it.launch.run.x.clock() - it.start, Stalled: stalled,
	}
	if last := it.lastProgress(publishers); stalled && last > it.start {
		r.ElapsedNS = last - it.start
	}
	<-back
	it.account(publishers, &r, before)
	if err != nil && !interrupted(ctx, err) {
		return err
	}
	return it.verdict(ctx, r)
}

// conclude waits until the broker has handled the member's acknowledgements, or
// they might be lost with the connection, and messages come again: it is asked
// for something that it answers in its turn, once for each step of the QoS.
func (l *launch) conclude(m *member) {
	c := m.client.Load()
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	for range l.spec.QoS {
		_, _ = c.Unsubscribe(ctx, []string{"mqttload/nothing"}) // if it fails, what comes again is in the account
	}
}

// fill waits until everything is published, or nothing moves any more.
func (it *iteration) fill(ctx context.Context, publishers []*publisher) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	still := it.launch.patience(it.launch.run.x.clock())
	for range tick.C {
		n := int64(0)
		for _, p := range publishers {
			if !p.dead.Load() {
				n += p.answered()
			}
		}
		if n >= it.launch.spec.Load.Messages || ctx.Err() != nil || len(it.launch.alive()) < len(publishers) || still.over(it.launch.run.x.clock(), n) {
			return
		}
	}
}

// since makes at the time from which the latencies of all that is published run:
// how long it lay in the queue is not the broker's doing.
func (p *publisher) since(at int64) {
	p.hold()
	for i := range p.sentAt {
		p.sentAt[i] = at
	}
	p.lastAt.Store(at)
	p.release()
	p.pump()
}

// each calls do for all subscribers, many at a time, and their numbers.
func (l *launch) each(do func(i int, m *member)) {
	var who []int
	for i, m := range l.members {
		if m.sub != nil && !m.deaf.Load() {
			who = append(who, i)
		}
	}
	ramp(context.Background(), len(who), dialParallel, l.spec.Target.ConnectRate, func(k int) { do(who[k], l.members[who[k]]) })
}

// comeBack connects the subscribers again. What has no session any more is
// subscribed anew, and has lost its queue.
func (l *launch) comeBack(ctx context.Context) error {
	errs := make([]error, len(l.members))
	l.each(func(i int, m *member) {
		if errs[i] = l.rejoin(ctx, i, m); errs[i] != nil {
			m.deafen()
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
		l.run.errs.add(ErrorOf(err))
	}
	if l.unheardOf() {
		return first
	}
	return nil
}

// unheardOf reports whether nobody is left who receives.
func (l *launch) unheardOf() bool {
	for _, m := range l.members {
		if m.sub != nil && !m.deaf.Load() {
			return false
		}
	}
	return true
}

// rejoin connects a subscriber whose session is kept.
func (l *launch) rejoin(ctx context.Context, i int, m *member) error {
	ctx, cancel := dial.Bound(ctx, l.spec)
	defer cancel()
	m.leaving.Store(false)
	client, err := l.connect(ctx, m, l.clientConfig(i, m, m.dialer))
	if err != nil {
		return err
	}
	l.learn(client, m.dialer)
	// The CONNACK of MQTT 3.1 does not tell.
	if l.spec.Protocol == packet.V31 || client.Connack().SessionPresent {
		return nil
	}
	l.run.warn(result.CodeSessionNotKept, "the broker has not kept a session: what it had queued is lost",
		"look at the broker's limits on sessions and on --session-expiry")
	return l.subscribe(ctx, m, client)
}

// forget ends the sessions, so that the broker need not keep them.
func (l *launch) forget() {
	l.each(func(i int, m *member) {
		l.part(m)
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		defer cancel()
		cfg := l.clientConfig(i, m, m.dialer)
		cfg.CleanStart, cfg.Session, cfg.Properties.SessionExpiry = true, nil, nil
		if c, err := mqtt.Connect(ctx, cfg); err == nil {
			_ = c.Disconnect(ctx, packet.ReasonSuccess)
		}
	})
}
