package mqtt

import (
	"context"
	"fmt"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// Template encodes p once, to be sent many times. It returns a [*LimitError] if
// the broker's CONNACK does not allow p.
func (c *Client) Template(p *packet.Publish) (*packet.Template, error) {
	// [MQTT-4.3.2-2, MQTT-4.3.3-2] A new message has no DUP; resending sets it.
	if p.Dup {
		return nil, limitErrorf("publish with DUP: only a message that a session resends may have it")
	}
	if err := c.checkFlags(p.QoS, p.Retain); err != nil {
		return nil, err
	}
	if err := c.checkProperties(p); err != nil {
		return nil, err
	}
	t, err := packet.NewTemplate(p, c.cfg.Version)
	if err != nil {
		return nil, err
	}
	if err := c.checkSize(t.Size()); err != nil {
		return nil, err
	}
	return t, nil
}

// checkFlags enforces the broker's Maximum QoS and Retain Available.
func (c *Client) checkFlags(qos byte, retain bool) error {
	limits := &c.connack.Properties
	// [MQTT-3.2.2-11]
	if m := limits.MaximumQoS; m != nil && qos > *m {
		return limitErrorf("publish at QoS %d: the broker allows QoS %d at most", qos, *m)
	}
	// [MQTT-3.2.2-14]
	if r := limits.RetainAvailable; r != nil && *r == 0 && retain {
		return limitErrorf("publish with retain: the broker does not retain messages")
	}
	return nil
}

// checkSize enforces the broker's Maximum Packet Size on a packet of size bytes.
func (c *Client) checkSize(size int) error {
	// [MQTT-3.2.2-15]
	if m := c.connack.Properties.MaximumPacketSize; m != nil && size > int(*m) {
		return limitErrorf("packet of %d B is larger than the broker's maximum of %d B", size, *m)
	}
	return nil
}

// checkProperties rejects a Subscription Identifier, which only a broker may send,
// and a Topic Alias above the broker's Topic Alias Maximum; absent is 0.
func (c *Client) checkProperties(p *packet.Publish) error {
	if len(p.RawProperties) == 0 {
		return nil
	}
	var props packet.Properties
	if err := p.ParseProperties(&props); err != nil {
		return err
	}
	// [MQTT-3.3.4-6]
	if len(props.SubscriptionIDs) > 0 {
		return limitErrorf("publish with a subscription identifier: only a broker may send one")
	}
	limit := uint16(0)
	if m := c.connack.Properties.TopicAliasMaximum; m != nil {
		limit = *m
	}
	// [MQTT-3.2.2-17, MQTT-3.2.2-18, MQTT-3.3.2-9]
	if a := props.TopicAlias; a != nil && *a > limit {
		return limitErrorf("topic alias %d: the broker allows %d at most", *a, limit)
	}
	return nil
}

// PublishN appends up to n copies of t to the out buffer, each with its own packet
// id, and returns how many it has appended. These are fewer than n if the in-flight
// window is full (Handler.Acks will follow) or the out buffer is (Handler.Room will
// follow). The acknowledgements return stamp. If fill is not nil, it is called with
// the payload of each copy, to change it in place. PublishN does not write: see
// [Client.Flush]. The error says why the connection has ended.
func (c *Client) PublishN(t *packet.Template, n int, stamp int64, fill func(payload []byte)) (int, error) {
	out := c.conn.Begin()
	if c.closing {
		c.conn.End(out)
		return 0, c.ended()
	}
	qos, offset, start := t.QoS(), t.PayloadOffset(), len(out)
	state := idPublish1 + qos - 1
	sent := 0
	for ; sent < n && c.conn.Room(out) > 0; sent++ {
		var id uint16
		if qos > 0 {
			// [MQTT-3.3.4-7] No more in flight than the Receive Maximum.
			if c.win.full() {
				break
			}
			// [MQTT-4.3.2-1, MQTT-4.3.3-1], [MQTT-2.3.1-2] of 3.1.1
			if id = c.win.reserve(state, stamp); id == 0 {
				break
			}
		}
		at := len(out)
		out = t.Append(out, id)
		if fill != nil {
			fill(out[at+offset:])
		}
	}
	if c.session != nil && qos > 0 {
		c.keep(t, out[start:])
	}
	c.conn.End(out)
	if sent == 0 {
		return 0, c.conn.Err()
	}
	return sent, nil
}

// ended returns the error for a publish after DISCONNECT or the connection's end.
func (c *Client) ended() error {
	if err := c.conn.Err(); err != nil {
		return err
	}
	return ErrClosed
}

// Flush writes what PublishN has appended. It never blocks: if the socket is full, a
// goroutine writes the rest. After BatchEnd the client flushes by itself, so its
// Handler need not.
func (c *Client) Flush() error { return c.conn.Flush() }

// Written reports whether all published messages have been written, or the
// connection has ended.
func (c *Client) Written() bool { return c.conn.Idle() || c.conn.Err() != nil }

// Publish sends p and waits until its QoS is fulfilled: at QoS 0 until it is
// written or queued for writing, at QoS 1 for PUBACK, at QoS 2 for PUBCOMP. It
// returns the reason code of the acknowledgement. If the in-flight window or the
// out buffer is full, it waits for room first. Publish is for single messages; use
// [Client.PublishN] for load.
func (c *Client) Publish(ctx context.Context, p *packet.Publish) (packet.ReasonCode, error) {
	t, err := c.Template(p)
	if err != nil {
		return 0, err
	}
	for {
		wait, freed, err := c.publishOne(t)
		if err != nil {
			return 0, err
		}
		if freed == nil {
			return c.await(ctx, wait)
		}
		select {
		case <-freed:
		case <-c.done:
			return 0, c.Err()
		case <-ctx.Done():
			return 0, fmt.Errorf("publish: %w: %w", ErrWindowFull, context.Cause(ctx))
		}
	}
}

// publishOne sends t and returns the channel on which its acknowledgement comes,
// nil at QoS 0. If the window is full, it returns instead a channel freed that is
// closed when there is room.
func (c *Client) publishOne(t *packet.Template) (wait chan reply, freed chan struct{}, err error) {
	if err := c.conn.WaitRoom(); err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.conn.Begin()
	if c.closing {
		c.conn.End(out)
		return nil, nil, c.ended()
	}
	var id uint16
	if qos := t.QoS(); qos > 0 {
		if !c.win.full() {
			id = c.win.reserve(idPublish1+qos-1, 0)
		}
		if id == 0 {
			c.conn.End(out)
			if c.freed == nil {
				c.freed = make(chan struct{})
			}
			return nil, c.freed, nil
		}
		wait = c.waiter(id)
	}
	start := len(out)
	out = t.Append(out, id)
	if c.session != nil && id != 0 {
		c.keep(t, out[start:])
	}
	c.conn.End(out)
	return wait, nil, c.conn.Flush()
}

// waiter returns a new channel on which the reply to id will come. c.mu is held.
func (c *Client) waiter(id uint16) chan reply {
	if c.waiters == nil {
		c.waiters = make(map[uint16]chan reply)
	}
	ch := make(chan reply, 1)
	c.waiters[id] = ch
	return ch
}

// await waits for a reply with one code. At QoS 0 ch is nil and the code is 0.
func (c *Client) await(ctx context.Context, ch chan reply) (packet.ReasonCode, error) {
	if ch == nil {
		return 0, nil
	}
	r, err := c.awaitReply(ctx, ch)
	return r.one, err
}

func (c *Client) awaitReply(ctx context.Context, ch chan reply) (reply, error) {
	select {
	case r, ok := <-ch:
		if !ok {
			return r, c.Err()
		}
		return r, nil
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
}

// notifyWaiters passes acknowledgements to the calls of Publish that wait for them.
func (c *Client) notifyWaiters(acks []Ack) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.freed != nil {
		close(c.freed)
		c.freed = nil
	}
	if len(c.waiters) == 0 {
		return
	}
	for _, a := range acks {
		if ch, ok := c.waiters[a.PacketID]; ok && a.Done {
			delete(c.waiters, a.PacketID)
			ch <- reply{one: a.Code}
		}
	}
}

// failWaiters ends all waits because the connection has ended.
func (c *Client) failWaiters() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range c.waiters {
		close(ch)
	}
	c.waiters = nil
}
