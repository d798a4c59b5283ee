package load

import "time"

// patience is how long it is waited for what is outstanding: for the drain time
// after a message was last sent, received or answered, or bytes of one moved. A
// large message, or a slow network, is no stall.
type patience struct {
	launch   *launch
	drain    int64
	messages int64 // so many have been sent, received and answered
	moved    movement
	since    int64
	// What moves until another message comes of it has its bounds: others may send
	// to the same topics, and they would never end.
	mostOut, mostIn int64
}

// movement counts, over all connections, the bytes of unfinished packets that the
// broker has taken, and those that it has sent, and what it has sent at all. See
// [mqtt.Client.Stats].
type movement struct{ out, partial, in int64 }

const (
	// overhead is more than what a packet has besides its payload.
	overhead = 1 << 17
	// leastSpeed, in bytes per second, is what the ends of a connection do at
	// least with a message while none of its bytes moves: copy and check it, or
	// write it to a disk.
	leastSpeed = 16 << 20
)

func (l *launch) patience(now int64) *patience {
	p := &patience{launch: l, since: now}
	p.drain = int64(l.spec.Load.Drain) + int64(l.spec.Payload.Max())*int64(time.Second)/leastSpeed
	p.expect(l.move(now))
	return p
}

// expect bounds what may move from now on until another message has come of it.
func (p *patience) expect(moved movement) {
	size := int64(p.launch.spec.Payload.Max()) + overhead
	p.moved = moved
	p.mostOut = moved.out + size*int64(p.launch.spec.Load.Inflight)*int64(len(p.launch.publishers))
	p.mostIn = moved.in + size*int64(len(p.launch.members))
}

// over reports whether it was waited long enough at now, when so many messages
// had been sent, received and answered.
func (p *patience) over(now, messages int64) bool {
	moved := p.launch.move(now)
	switch {
	case messages != p.messages:
		p.messages, p.since = messages, now
		p.expect(moved)
	case moved.out > p.moved.out && moved.out <= p.mostOut, moved.partial > p.moved.partial && moved.in <= p.mostIn:
		p.since = now
	}
	p.moved = moved
	return now-p.since >= p.drain
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

// written waits until what nobody answers, being at QoS 0 and for no one, is
// written at least. It reports false when that goes no further.
func (it *iteration) written(still *patience) bool {
	for _, m := range it.launch.members {
		c := m.client.Load()
		if m.pub == nil || m.pub.heard || m.pub.qos > 0 || c == nil {
			continue
		}
		for wait := 50 * time.Microsecond; !c.Written(); wait = min(2*wait, time.Millisecond) {
			if still.over(it.launch.run.x.clock(), still.messages) {
				return false
			}
			time.Sleep(wait)
		}
	}
	return true
}
