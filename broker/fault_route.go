package broker

import (
	"errors"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// errCut ends a connection that a fault cuts.
var errCut = errors.New("cut by a fault")

// publishFaulty handles the PUBLISH in c.pub as the inbound faults say.
func (c *client) publishFaulty(rt *route) error {
	p := &c.pub
	f := c.b.faults.judge(Inbound, rt.topic, c.sess.id, p.QoS)
	if f.cut {
		return errCut
	}
	if err := c.pause(f.stall); err != nil {
		return err
	}
	if p.QoS < 2 || !c.sess.inbound.has(p.PacketID) {
		if p.QoS > 0 {
			if err := c.checkQuota(); err != nil {
				return err
			}
		}
		if err := c.makeRoom(); err != nil {
			return err
		}
		if p.QoS == 2 {
			c.sess.inbound.add(p.PacketID)
		}
		c.spread(rt, &f)
	}
	c.answer(f.delay)
	return nil
}

// pause reads nothing from the client for d, unless the connection ends.
func (c *client) pause(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	c.finishBatch()
	defer c.block()()
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case <-c.wakeCh:
			if err := c.ended(); err != nil {
				return err
			}
		}
	}
}

// spread publishes the message as often as f says, with its delay.
func (c *client) spread(rt *route, f *fate) {
	c.msg, c.route, c.late = nil, rt, f.delay
	for i := range f.times() {
		c.dup = i > 0 && f.dup
		c.publish(rt)
	}
	c.late, c.dup = 0, false
}

// answer acknowledges the message in c.pub, after a delay.
func (c *client) answer(delay time.Duration) {
	p := &c.pub
	if p.QoS == 0 {
		return
	}
	a := packet.Ack{Type: packet.PUBACK + packet.Type(p.QoS-1), PacketID: p.PacketID}
	if p.QoS == 1 && c.v5 {
		a.Code = c.outcome()
	}
	if delay > 0 {
		c.b.faults.after(delay, func() { c.sendLate(&a) })
		return
	}
	c.ackWith(a.Type, a.PacketID, a.Code)
	if p.QoS == 1 {
		c.unsent++
	}
}

func (fs *faults) after(d time.Duration, do func()) { fs.queue.Add(time.Now().Add(d), do) }

// sendLate sends an acknowledgement from the queue's goroutine.
func (c *client) sendLate(a *packet.Ack) {
	out := c.wc.Begin()
	if with, err := a.Append(out, c.version); err == nil {
		out = with
	}
	c.wc.End(out)
	_ = c.wc.Flush() // an error ends the connection's own reader
}

// deliverFaulty delivers the message to one session as the outbound faults say,
// and after the delay of the inbound ones.
func (r *router) deliverFaulty(t *target) {
	s, qos := t.sess, min(r.pub.QoS, t.qos)
	f := r.b.faults.judge(Outbound, r.route.topic, s.id, qos)
	if f.cut {
		r.cutOff(s)
	}
	if f.stall > 0 {
		r.stall(s, f.stall)
	}
	body, dup := r.body, r.dup
	for i := range f.times() {
		if r.dup = dup || i > 0 && f.dup; r.dup {
			r.body = nil // a copy of the packet has another DUP flag
		}
		r.hold(s)
		switch wait := r.late + f.delay; {
		case wait > 0:
			r.handLater(t, qos, wait)
		case r.to != nil && (s.stalls > 0 || s.queue.len() > 0):
			r.put(s, r.delivery(t, qos)) // at the end of the queue, at QoS 0, too
		default:
			r.hand(t)
		}
	}
	r.body, r.dup = body, dup
}

// cutOff ends the connection of s.
func (r *router) cutOff(s *session) {
	r.hold(s)
	c := r.to
	r.flush() // earlier messages go out; and the lock must be free to close
	if c != nil {
		c.cut(errCut)
	}
}

// stall makes the messages to s wait in its session for d.
func (r *router) stall(s *session, d time.Duration) {
	r.hold(s)
	s.stalls++
	fs := r.b.faults
	fs.after(d, func() {
		q := &fs.router
		q.hold(s)
		s.stalls--
		q.pump(s)
		q.flush()
	})
}

// handLater gives the message to the session held after a delay. Until then it
// counts as queued, so that publishers wait before memory is exhausted.
func (r *router) handLater(t *target, qos byte, wait time.Duration) {
	s := t.sess
	if r.to == nil && !s.keeps(qos, t.share) {
		return
	}
	d := r.delivery(t, qos)
	s.bytes += d.cost
	r.jam(s)
	r.b.faults.after(wait, func() { r.b.faults.handNow(s, d) })
}

// handNow ends the delay of handLater.
func (fs *faults) handNow(s *session, d delivery) {
	r := &fs.router
	r.hold(s)
	s.bytes -= d.cost
	if r.to != nil || s.keeps(d.qos, d.share) {
		r.put(s, d)
	}
	r.pump(s)
	r.flush()
}

// pump sends the queue of s, if it is held, and wakes the publishers that wait for
// it.
func (r *router) pump(s *session) {
	if r.held != s {
		return // put has handed d over
	}
	if r.to != nil {
		r.out = s.pump(r.to, r.out)
		r.mark()
	}
	r.freed = len(s.waiters) > 0
	r.jammed = r.jammed[:0] // this goroutine never waits
}
