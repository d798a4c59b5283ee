package load

import "time"

// drainTimer says how long to wait for outstanding messages: for the drain time
// after a message was last sent, received or answered, or bytes of one moved. A
// large message, or a slow network, is not a stall.
type drainTimer struct {
	launch   *launch
	limit    int64
	messages int64 // so many have been sent, received and answered
	moved    movement
	since    int64
	// The bytes that may move until another message is complete are bounded: others
	// may send to the same topics, and they would never end.
	mostOut, mostIn int64
}

// movement counts, over all connections, the bytes of unfinished packets that the
// broker has taken, and those that it has sent, and all bytes that it has sent. See
// [mqtt.Client.Stats].
type movement struct{ out, partial, in int64 }

const (
	// overhead is more than a packet holds besides its payload.
	overhead = 1 << 17
	// leastSpeed, in bytes per second, is what the ends of a connection do at
	// least with a message while none of its bytes moves: copy and check it, or
	// write it to a disk.
	leastSpeed = 16 << 20
)

// drain begins to wait at now.
func (l *launch) drain(now int64) *drainTimer {
	t := &drainTimer{launch: l, since: now}
	t.limit = int64(l.spec.Load.Drain) + int64(l.spec.Payload.Max())*int64(time.Second)/leastSpeed
	t.allow(l.move(now))
	return t
}

// allow bounds what may move from now on until another message is complete.
func (t *drainTimer) allow(moved movement) {
	l := t.launch
	size := int64(l.spec.Payload.Max()) + overhead
	t.moved = moved
	t.mostOut = moved.out + size*int64(l.spec.Load.Inflight)*int64(len(l.publishers))
	t.mostIn = moved.in + size*int64(len(l.members))
}

// over reports whether the wait has been long enough at now, when so many
// messages had been sent, received and answered.
func (t *drainTimer) over(now, messages int64) bool {
	moved := t.launch.move(now)
	switch {
	case messages != t.messages:
		t.messages, t.since = messages, now
		t.allow(moved)
	case moved.out > t.moved.out && moved.out <= t.mostOut, moved.partial > t.moved.partial && moved.in <= t.mostIn:
		t.since = now
	}
	t.moved = moved
	return now-t.since >= t.limit
}

// written waits until messages without an answer, which are those at QoS 0
// without a receiver, are at least written. It reports false when that makes no
// progress.
func (t *drainTimer) written() bool {
	for _, m := range t.launch.members {
		c := m.client.Load()
		if m.pub == nil || m.pub.hasReceivers || m.pub.qos > 0 || c == nil {
			continue
		}
		for wait := 50 * time.Microsecond; !c.Written(); wait = min(2*wait, time.Millisecond) {
			if t.over(t.launch.clock(), t.messages) {
				return false
			}
			time.Sleep(wait)
		}
	}
	return true
}

// move adds up the movement of all connections. A publisher whose bytes move
// does not stand still.
func (l *launch) move(now int64) (sum movement) {
	for _, m := range l.members {
		c := m.client.Load()
		if c == nil {
			continue
		}
		st := c.Stats()
		sum.out += st.Progress
		sum.partial += st.Partial
		sum.in += st.BytesIn
		if st.Progress != m.progress && m.pub != nil {
			m.pub.lastAt.Store(now)
		}
		m.progress = st.Progress
	}
	return sum
}
