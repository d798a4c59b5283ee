package broker

// orphans removes from s, which has ended, the messages of shared subscriptions
// for other members: those in the queue, and QoS 1 in flight. QoS 2 in flight
// goes to no other member. [MQTT-4.8.2-5]
func (s *session) orphans() (list []delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	for _, d := range s.win.unfinished() {
		if d.share != nil && d.qos == 1 {
			list = append(list, d)
		}
	}
	for ; s.queue.len() > 0; s.queue.pop() {
		if d := s.queue.front(); d.share != nil && d.id == 0 {
			list = append(list, *d)
		}
	}
	return list
}

// handOver delivers messages of shared subscriptions to other members, as new
// messages. [MQTT5 4.8.2] The caller holds no session.
func (b *Broker) handOver(list []delivery) {
	r := router{b: b}
	for _, d := range list {
		for taken := false; !taken; {
			r.release()
			t := b.subs.member(d.share)
			if t == nil {
				break
			}
			d.id, d.ids, d.qos, d.retain = 0, t.ids, min(d.msg.qos, t.qos), d.retain && t.retain
			taken = r.takeOver(t.sess, d)
		}
	}
	r.flush()
}

// member picks a current member of g.
func (t *tree) member(g *group) *target {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := g.shared()
	return s.pick()
}

// takeOver queues d for s, and sends as much of the queue as possible. It returns
// false if s has ended, too, and so is not a member any more.
func (r *router) takeOver(s *session, d delivery) bool {
	r.hold(s)
	switch {
	case s.gone:
		return false
	case r.to == nil && d.qos == 0, !s.enqueue(&r.b.cfg, d):
		r.dropped++
	case r.to != nil:
		r.out = s.pump(r.to, r.out)
		r.mark()
	}
	return true
}
