package packet

import "strings"

// Bits of the Subscription Options. [MQTT5 3.8.3.1]
const (
	optionNoLocal           = 0x04
	optionRetainAsPublished = 0x08
)

const (
	ruleNoLocal  = "No Local must be 0 on a shared subscription [MQTT-3.8.3-4]"
	ruleNoFilter = "has no topic filter"
)

// Append appends s, encoded for version v, to dst. In 3.x a subscription must not have
// any option but its QoS. On error, which is an *InvalidError, it returns dst unchanged.
func (s *Subscribe) Append(dst []byte, v Version) ([]byte, error) {
	w := begin(dst, SUBSCRIBE)
	w.packetID(s.PacketID)
	if v == V5 {
		w.properties(SUBSCRIBE, &s.Properties)
	}
	// [MQTT-3.8.3-2]
	if len(s.Subscriptions) == 0 {
		w.fail("payload", ruleNoFilter)
	}
	for i := range s.Subscriptions {
		w.subscription(&s.Subscriptions[i], v)
	}
	return w.end()
}

func (w *writer) subscription(s *Subscription, v Version) {
	options := s.options()
	switch {
	case s.QoS > 2:
		w.fail("QoS", "must be 0, 1 or 2")
	case s.RetainHandling > 2:
		w.fail("Retain Handling", "must be 0, 1 or 2")
	case v != V5 && options > 2:
		w.fail("Subscription Options", "exist in MQTT 5 only")
	// [MQTT-3.8.3-4]
	case s.NoLocal && strings.HasPrefix(s.Filter, sharePrefix):
		w.fail("Subscription Options", ruleNoLocal)
	}
	w.filter(s.Filter, v)
	w.byte(options)
}

func (w *writer) filter(s string, v Version) {
	if rule := topicFilterRule(s, v); rule != "" {
		w.fail("topic filter", rule)
	}
	w.binary("topic filter", viewBytes(s))
}

func (s *Subscription) options() byte {
	b := s.QoS | s.RetainHandling<<4
	if s.NoLocal {
		b |= optionNoLocal
	}
	if s.RetainAsPublished {
		b |= optionRetainAsPublished
	}
	return b
}

// Decode decodes f, a SUBSCRIBE of version v, into s. It reuses the array of
// s.Subscriptions. The error is a *MalformedError.
func (s *Subscribe) Decode(f Frame, v Version) error {
	*s = Subscribe{Subscriptions: s.Subscriptions[:0]}
	r := open(f, SUBSCRIBE, v)
	s.PacketID = r.packetID()
	if v == V5 {
		r.properties(SUBSCRIBE, &s.Properties)
	}
	// [MQTT-3.8.3-2], [MQTT-3.8.3-3] of 3.1.1
	if r.left() == 0 {
		r.fail(ReasonProtocolError, "payload "+ruleNoFilter+" [MQTT-3.8.3-2]")
	}
	for r.left() > 0 {
		s.Subscriptions = append(s.Subscriptions, r.subscription(v))
	}
	return r.close()
}

func (r *reader) subscription(v Version) Subscription {
	filter, start := r.filter(v), r.off
	b := r.byte("Subscription Options")
	s := Subscription{
		Filter: filter, QoS: b & 3, NoLocal: b&optionNoLocal != 0,
		RetainAsPublished: b&optionRetainAsPublished != 0, RetainHandling: b >> 4 & 3,
	}
	switch {
	// [MQTT-3.8.3-5], and [MQTT-3-8.3-4] of 3.1.1
	case b&0xC0 != 0 || v != V5 && b > 3:
		r.failAt(start, ReasonMalformedPacket, "reserved subscription option bits must be 0 [MQTT-3.8.3-5]")
	case s.QoS == 3:
		r.failAt(start, ReasonProtocolError, "subscription QoS 3 does not exist")
	case s.RetainHandling == 3:
		r.failAt(start, ReasonProtocolError, "Retain Handling 3 does not exist")
	// [MQTT-3.8.3-4]
	case s.NoLocal && strings.HasPrefix(s.Filter, sharePrefix):
		r.failAt(start, ReasonProtocolError, ruleNoLocal)
	}
	return s
}

// filter reads a topic filter. A bad one makes the packet malformed: 0x8F, Topic Filter
// invalid, is for well-formed filters only. [MQTT5 table 3-10] [MQTT-3.8.3-1]
// [MQTT-3.10.3-1]
func (r *reader) filter(v Version) string {
	start := r.off
	s := string(r.text("topic filter"))
	if rule := topicFilterRule(s, v); rule != "" {
		r.failAt(start, ReasonMalformedPacket, "topic filter "+rule)
	}
	return s
}
