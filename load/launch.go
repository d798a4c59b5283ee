package load

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
)

// launch is the clients of a launch, or of one iteration where each has new
// ones, with their connections and the messages between them.
type launch struct {
	rec         *record
	spec        *scenarios.Case // the record's
	clock       func() int64
	number      int // from 1
	serial      int // over the run
	connector   *connector
	links       *links
	members     []*member
	publishers  []*publisher
	inboxes     []*inbox
	flows       []*flow // by stream number
	shards      []*shard
	pacing      *pacing // nil in a closed loop
	enough      *enough // nil unless a number of messages ends the listening
	reauth      *reauth // nil where no client authenticates again
	began       int64   // when it was opened, on the clock
	connectedAt int64   // when all had connected
	atEnd       func()  // called before the clients disconnect; nil is nothing

	connected, failed atomic.Int64 // clients
}

// dialParallel is how many connections are made at a time: enough to hide the
// round trips, too few for a broker's backlog to overflow.
const dialParallel = 64

var errNotTried = errors.New("not tried")

// connectAll connects and subscribes all clients; nothing is published before
// the last SUBACK. It fails when too few clients connected to run the case.
func (l *launch) connectAll(ctx context.Context) error {
	first := l.connectFirst()
	errs := make([]error, len(first))
	ramp(ctx, len(first), dialParallel, l.spec.Target.ConnectRate, func(k int) {
		if l.noneConnects() {
			errs[k] = errNotTried
			return
		}
		if errs[k] = l.connector.join(ctx, first[k], l.members[first[k]]); errs[k] == nil {
			l.connected.Add(1)
		} else {
			l.failed.Add(1)
		}
	})
	if err := l.countConnected(ctx, first, errs); err != nil {
		return err
	}
	l.reauth = newReauth(l.members, l.connector, l.links)
	l.connectedAt = l.clock()
	return nil
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

// noneConnects reports whether as many connections as are made at a time have
// failed and none has succeeded. The others would only wait for the same
// timeout.
func (l *launch) noneConnects() bool {
	return l.connected.Load() == 0 && l.failed.Load() >= dialParallel
}

// countConnected counts the connections and takes out the members that did not
// connect. It fails when the remaining ones cannot run the case.
func (l *launch) countConnected(ctx context.Context, numbers []int, errs []error) error {
	var first error
	for k, err := range errs {
		l.rec.connections.count(err)
		if err == nil {
			continue
		}
		if first == nil {
			first = err
		} else if err != errNotTried && !interrupted(ctx, err) {
			l.rec.errs.add(ErrorOf(err))
		}
		l.members[numbers[k]].neverConnected()
	}
	if first == nil {
		return nil
	}
	l.prune()
	if !l.usable() || interrupted(ctx, first) {
		return first
	}
	l.rec.errs.add(ErrorOf(first))
	return nil
}

// grace is how long the other ends of a lost pair have to be lost as well
// before they count as closed by this side: a broker that dies closes all its
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

// clearRetained removes the retained messages of topics that contain the run's
// id. Other topics were named by the user, who keeps what they retain.
// [MQTT-3.3.1-6]
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

// close disconnects all clients.
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
		in.report(&l.rec.errs)
	}
}

// allLost reports whether all connections that the workload needs are lost.
func (l *launch) allLost() bool {
	if l.spec.Load.Shape.Cycles {
		return false
	}
	if len(l.publishers) > 0 {
		return len(l.alive()) == 0
	}
	return !slices.ContainsFunc(l.members, (*member).alive)
}

// topicRun is the run id in topics. An iteration with connections of its own
// gets its own id, of the same length.
func (l *launch) topicRun() string {
	id := l.connector.runID
	if !l.spec.Load.FreshIterations {
		return id
	}
	serial := strconv.FormatInt(int64(l.serial), 36)
	if len(serial) >= len(id) {
		return serial
	}
	return id[:len(id)-len(serial)] + serial
}

// prune takes the receivers that did not connect out of what is expected. A
// publisher without receivers left has nothing to do.
func (l *launch) prune() {
	for _, p := range l.publishers {
		had, has := 0, 0
		for _, f := range p.flows {
			had += len(f.receipts)
			f.receipts = slices.DeleteFunc(f.receipts, (*receipt).dead)
			has += len(f.receipts)
			for i, r := range f.receipts {
				r.index = int32(i)
			}
		}
		if p.hasReceivers = has > 0; had > 0 && !p.hasReceivers {
			p.dead.Store(true)
		}
	}
}

// usable reports whether any client is left to run.
func (l *launch) usable() bool {
	if len(l.publishers) > 0 {
		return len(l.alive()) > 0
	}
	return l.connected.Load() > 0
}

// alive are the publishers that can publish and have receivers left.
func (l *launch) alive() []*publisher {
	var out []*publisher
	for _, p := range l.publishers {
		if !p.dead.Load() {
			out = append(out, p)
		}
	}
	return out
}

// usage is what the process and the launch's connections have used so far.
func (l *launch) usage() (u usage) {
	u.user, u.system = l.rec.cfg.CPU()
	u.pauses = gcPauses()
	for _, m := range l.members {
		io := m.io()
		u.io.Reads += io.Reads
		u.io.Writes += io.Writes
		u.io.BytesRead += io.BytesRead
		u.io.BytesWritten += io.BytesWritten
	}
	return u
}
