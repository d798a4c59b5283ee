package broker

import (
	"slices"
	"strings"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// onSubscribe adds subscriptions, answers, and sends retained messages. It holds
// the client's session throughout, so that SUBACK comes before the messages. [MQTT-3.8.4-1] [MQTT-3.8.4-5], [MQTT-3.8.4-4] of 3.1.1
func (c *client) onSubscribe(f packet.Frame) error {
	var p packet.Subscribe
	if err := p.Decode(f, c.version); err != nil {
		return err
	}
	for i := range p.Subscriptions {
		if err := refuseControl("topic filter", p.Subscriptions[i].Filter); err != nil {
			return err
		}
	}
	if err := c.makeRoom(); err != nil {
		return err
	}
	s := c.sess
	c.hold(s)
	// [MQTT-2.2.1-6] [MQTT-3.8.4-2], [MQTT-2.3.1-7] of 3.1.1
	ack := packet.Suback{PacketID: p.PacketID}
	var items []delivery
	now := c.b.now()
	for i := range p.Subscriptions {
		if len(items)*overhead >= c.b.cfg.MaxQueuedBytes {
			// A few bytes of filters may ask for all retained messages again and again.
			ack.Codes = append(ack.Codes, c.subackError(packet.ReasonQuotaExceeded, p.Subscriptions[i].QoS))
			continue
		}
		code, found := c.subscribe(&p.Subscriptions[i], p.Properties.SubscriptionIDs, now)
		// [MQTT-3.8.4-6] [MQTT-3.9.3-1], [MQTT-3.8.4-5] of 3.1.1
		ack.Codes = append(ack.Codes, code)
		items = append(items, found...)
	}
	before := c.appendAcks(c.out)
	out, err := ack.Append(before, c.version)
	if err != nil {
		return &closeError{packet.ReasonImplementationSpecificError, err.Error()}
	}
	// [MQTT-3.1.2-24]
	if len(out)-len(before) > c.maxPacket {
		return &closeError{packet.ReasonPacketTooLarge, "SUBACK is over the client's Maximum Packet Size"}
	}
	for _, d := range items {
		s.bytes += d.cost
		s.queue.push(d)
	}
	c.out = s.pump(c, out)
	c.mark()
	if s.queue.len() > 0 {
		c.jam(s)
	}
	return nil
}

// subscribe adds one subscription and returns its reason code and the retained
// messages due to it. The client's session is held.
func (c *client) subscribe(p *packet.Subscription, ids []uint32, now int64) (packet.ReasonCode, []delivery) {
	if strings.Count(p.Filter, "/") >= maxLevels {
		return c.subackError(packet.ReasonTopicFilterInvalid, p.QoS), nil
	}
	_, filter, shared := packet.SplitShared(p.Filter)
	if !shared {
		filter = p.Filter
	}
	if slices.Contains(c.b.cfg.RefusedFilters, filter) {
		return c.subackError(packet.ReasonUnspecifiedError, p.QoS), nil
	}
	// [MQTT-3.2.2-10] [MQTT-3.8.4-7]
	sub := &subscription{
		sess: c.sess, filter: strings.Clone(p.Filter), qos: min(p.QoS, c.b.maxQoS),
		noLocal: p.NoLocal, retainAsPublished: p.RetainAsPublished,
	}
	if len(ids) > 0 {
		sub.id = ids[0]
	}
	c.sess.sharing = c.sess.sharing || shared
	isNew := c.b.subs.subscribe(sub)
	// [MQTT-3.3.1-9] [MQTT-3.3.1-10] [MQTT-3.3.1-11] [MQTT-3.8.4-4], [MQTT-3.3.1-6]
	// and [MQTT-3.8.4-3] of 3.1.1; none to a shared subscription [MQTT5 4.8.2]
	if shared || p.RetainHandling == 2 || p.RetainHandling == 1 && !isNew {
		return packet.ReasonCode(sub.qos), nil
	}
	return packet.ReasonCode(sub.qos), c.retainedFor(sub, now)
}

// subackError is code for MQTT 5 and Failure for 3.1.1. [MQTT-3.9.3-2] SUBACK of
// MQTT 3.1 has no code for a refusal [MQTT31-3.9]: it grants a QoS, and there is
// no subscription.
func (c *client) subackError(code packet.ReasonCode, qos byte) packet.ReasonCode {
	switch c.version {
	case packet.V5:
		return code
	case packet.V31:
		return packet.ReasonCode(min(qos, c.b.maxQoS))
	}
	return packet.ReasonUnspecifiedError
}

// retainedFor returns the retained messages that match sub, with RETAIN.
// [MQTT-3.3.1-8] of 3.1.1
func (c *client) retainedFor(sub *subscription, now int64) []delivery {
	var list []delivery
	ids := appendSubscriptionID(nil, sub.id)
	for _, m := range c.b.retained.match(sub.filter, now) {
		// The message belongs to the store: the session is charged for the entry only.
		list = append(list, delivery{
			msg: m, ids: ids, cost: overhead, qos: min(m.qos, sub.qos), retain: true,
		})
	}
	return list
}

// onUnsubscribe removes subscriptions, and answers once. [MQTT-3.10.4-4]
// [MQTT-3.10.4-5] [MQTT-3.10.4-6]
func (c *client) onUnsubscribe(f packet.Frame) error {
	var p packet.Unsubscribe
	if err := p.Decode(f, c.version); err != nil {
		return err
	}
	if err := refuseControl("topic filter", p.Filters...); err != nil {
		return err
	}
	c.release()
	ack := packet.Unsuback{PacketID: p.PacketID}
	for _, filter := range p.Filters {
		// [MQTT-3.10.4-1] [MQTT-3.11.3-1] [MQTT-3.11.3-2]
		code := packet.ReasonSuccess
		if !c.b.subs.unsubscribe(c.sess, filter) {
			code = packet.ReasonNoSubscriptionExisted
		}
		if c.v5 {
			ack.Codes = append(ack.Codes, code)
		}
	}
	buf := c.ackBuffer()
	with, err := ack.Append(*buf, c.version)
	if err != nil {
		return &closeError{packet.ReasonImplementationSpecificError, err.Error()}
	}
	// [MQTT-3.1.2-24]
	if len(with)-len(*buf) > c.maxPacket {
		return &closeError{packet.ReasonPacketTooLarge, "UNSUBACK is over the client's Maximum Packet Size"}
	}
	*buf = with
	return nil
}
