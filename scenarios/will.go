package scenarios

import (
	"errors"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// willFields are the keys of every client's will. They cannot be axes, because all
// cases share one will.
func willFields() []field {
	will := func(c *Case) *Will {
		if c.Clients.Will == nil {
			c.Clients.Will = new(Will)
		}
		return c.Clients.Will
	}
	list := []field{
		{key: "will_topic", parse: func(_, text string) (value, error) {
			err := checkVars("will_topic", text, "icur")
			if err == nil {
				if err = packet.ValidateTopicName(Expand(text, sampleVars(1))); err != nil {
					err = errors.New("will_topic " + ruleOf(err))
				}
			}
			return plain(text, func(c *Case) { will(c).Topic = text }), err
		}, get: func(s *Scenario) any { return s.base.Clients.Will.Topic }},
		{key: "will_payload", parse: func(_, text string) (value, error) {
			err := checkVars("will_payload", text, "icur")
			// [MQTT5 3.1.3.4] the Will Payload is Binary Data.
			if len(text) > maxBinary {
				err = errors.New("will_payload is over MQTT's limit of 65,535 bytes")
			}
			return plain(text, func(c *Case) { will(c).Payload = text }), err
		}, get: func(s *Scenario) any { return s.base.Clients.Will.Payload }},
		{key: "will_qos", parse: func(_, text string) (value, error) {
			q, err := parseQoS(text)
			if err != nil {
				err = errors.New("will_qos must be 0, 1 or 2")
			}
			return plain(text, func(c *Case) { will(c).QoS = q }), err
		}, get: func(s *Scenario) any { return s.base.Clients.Will.QoS }},
		boolField("will_retain", func(c *Case) *bool { return &will(c).Retain }),
		secondsField("will_delay", maxExpiry, func(c *Case) *time.Duration { return &will(c).Delay }),
	}
	for i, f := range list {
		list[i].get = func(s *Scenario) any {
			if s.base.Clients.Will == nil {
				return nil
			}
			return f.get(s)
		}
	}
	return list
}

// checkWill rejects a will without a topic.
func checkWill(c *Case, given func(key string) bool, fail failer) {
	w := c.Clients.Will
	if w == nil {
		return
	}
	for _, key := range []string{"will_payload", "will_qos", "will_retain", "will_delay"} {
		if w.Topic == "" && given(key) && (w.Payload != "" || w.QoS > 0 || w.Retain || w.Delay > 0) {
			fail(key, "%s without a will_topic: give will_topic", key)
		}
	}
}

// settleWill removes a will whose every part is turned off.
func settleWill(c *Case) {
	if w := c.Clients.Will; w != nil && *w == (Will{}) {
		c.Clients.Will = nil
	}
}
