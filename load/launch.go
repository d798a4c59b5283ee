package load

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
)

// launch is the clients of a launch, or of one iteration where each gets fresh
// ones, with their connections and the messages between them.
type launch struct {
	run        *caseRun
	spec       *scenarios.Case // run.spec
	clock      func() int64
	number     int // from 1
	work       workload
	connector  *connector
	links      *links
	members    []*member
	publishers []*publisher
	inboxes    []*inbox
	flows      []*flow // by stream number
	shards     []*shard
	pacing     *pacing // nil in a closed loop
	enough     *enough // nil unless the listeners end by themselves
	reauth     *reauth // nil where no client authenticates again
	began      int64   // when it was opened, on the clock
	stood      int64   // when all had connected
	atEnd      func()  // what the workload does before the clients disconnect; nil is nothing

	connected, failed atomic.Int64 // clients
}

// dialParallel is how many connections are made at a time: enough to hide the
// round trips, too few for a broker's backlog to overflow.
const dialParallel = 64

func newLaunch(c *caseRun) *launch {
	x := c.x
	cn := &connector{
		spec: c.spec, runID: x.cfg.RunID, embedded: x.cfg.Embedded, routes: c.routes, sweeper: x.sweeper, keys: &x.keys, payload: c.payload,
		connections: &c.connections, errs: &c.errs, warnings: &c.warnings, greet: x.greet,
	}
	return &launch{
		run: c, spec: c.spec, clock: x.clock, number: c.number, work: newWorkload(&c.spec.Load), began: x.clock(),
		connector: cn, links: &links{connector: cn, outages: &c.outages},
	}
}

// openLaunch connects and subscribes everybody; nothing is published before
// every SUBACK has come. It fails when nothing can run.
func openLaunch(ctx context.Context, c *caseRun) (*launch, error) {
	c.x.serial++
	l := newLaunch(c)
	if err := l.plan(); err != nil {
		return nil, err
	}
	if err := l.connectAll(ctx); err != nil {
		l.close()
		return nil, err
	}
	l.reauth = newReauth(l.members, l.connector, l.links)
	l.stood = l.clock()
	err := c.enter(ctx, Publishing, int(l.connected.Load()))
	if err == nil {
		err = l.work.open(ctx, l)
	}
	if err != nil {
		l.end()
		return nil, err
	}
	return l, nil
}

var errNotTried = errors.New("not tried")

func (l *launch) connectAll(ctx context.Context) error {
	first := l.connectFirst()
	errs := make([]error, len(first))
	ramp(ctx, len(first), dialParallel, l.spec.Target.ConnectRate, func(k int) {
		if l.hopeless() {
			errs[k] = errNotTried
			return
		}
		if errs[k] = l.connector.join(ctx, first[k], l.members[first[k]]); errs[k] == nil {
			l.connected.Add(1)
		} else {
			l.failed.Add(1)
		}
	})
	return l.judge(ctx, first, errs)
}

// connectFirst are the numbers of the members that connect when a launch opens:
// all but those that come and go.
func (l *launch) connectFirst() []int {
	var numbers []int
	for i, m := range l.members {
		if !l.spec.Load.Shape.Cycles || m.sub == nil {
			numbers = append(numbers, i)
		}
	}
	return slices.Clip(numbers)
}

// hopeless: as many connections as are made at a time have failed and none has
// come about. A thousand more would only wait for the same timeout.
func (l *launch) hopeless() bool { return l.connected.Load() == 0 && l.failed.Load() >= dialParallel }

// judge counts the connections, and fails where nothing can run with those
// that there are.
func (l *launch) judge(ctx context.Context, numbers []int, errs []error) error {
	var first error
	for k, err := range errs {
		l.run.connections.count(err)
		if err == nil {
			continue
		}
		if first == nil {
			first = err
		} else if err != errNotTried && !interrupted(ctx, err) {
			l.run.errs.add(ErrorOf(err))
		}
		l.members[numbers[k]].absent()
	}
	if first == nil {
		return nil
	}
	l.prune()
	if !l.usable() || interrupted(ctx, first) {
		return first
	}
	l.run.errs.add(ErrorOf(first))
	return nil
}

// grace is how long the other ends of a lost pair are given to be lost as well
// before they count as closed by this side: a broker that dies takes all its
// connections, but not at the same instant.
const grace = 100 * time.Millisecond

func (l *launch) awaitLost() {
	late := time.After(grace)
	for _, m := range l.members {
		c := m.client.Load()
		if c == nil || !m.lostPeer() {
			continue
		}
		select {
		case <-c.Done():
		case <-late:
			return
		}
	}
}

// clearRetained removes the retained messages of topics that are this run's
// own; a topic without the run's id is whose name was asked for, and so is what
// it keeps. [MQTT-3.3.1-6]
func (l *launch) clearRetained() {
	if !l.spec.Clients.Retain {
		return
	}
	for _, p := range l.publishers {
		for _, f := range p.flows {
			if p.client == nil || !bytes.Contains(f.topic, []byte(l.topicRun())) {
				continue
			}
			if t, err := p.client.Template(&packet.Publish{Topic: f.topic, Retain: true}); err == nil {
				_, _ = p.client.PublishN(t, 1, 0, nil)
			}
		}
	}
}

// close disconnects everybody.
func (l *launch) close() {
	l.reauth.end()
	l.awaitLost()
	l.links.closing.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), disconnectTimeout)
	defer cancel()
	l.clearRetained()
	var wg sync.WaitGroup
	for _, m := range l.members {
		wg.Go(func() { m.leave(ctx) })
	}
	wg.Wait()
	l.links.again.Wait()
	for _, in := range l.inboxes {
		in.report(&l.run.errs)
	}
}

// end closes the launch and its accounts.
func (l *launch) end() {
	if l.atEnd != nil {
		l.atEnd()
	}
	l.close()
	l.closeAccounts()
}

// deserted reports whether every connection that the workload needs is lost.
func (l *launch) deserted() bool {
	if l.spec.Load.Shape.Cycles {
		return false
	}
	if len(l.publishers) > 0 {
		return len(l.alive()) == 0
	}
	return !slices.ContainsFunc(l.members, (*member).stands)
}
