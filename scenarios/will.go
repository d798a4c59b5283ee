package scenarios

import (
	"errors"

	"github.com/mqttload/mqttload/internal/text"
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
	get := func(of func(*Will) any) func(*Scenario) any {
		return func(s *Scenario) any {
			if w := s.base.Clients.Will; w != nil {
				return of(w)
			}
			return nil
		}
	}
	return []field{
		{key: "will_topic", parse: func(_, text string) (value, error) {
			err := checkVars("will_topic", text, "icur")
			if err == nil {
				if err = packet.ValidateTopicName(Expand(text, sampleVars(1))); err != nil {
					err = errors.New("will_topic " + ruleOf(err))
				}
			}
			return plain(text, func(c *Case) { will(c).Topic = text }), err
		}, get: get(func(w *Will) any { return w.Topic })},
		{key: "will_payload", parse: func(_, text string) (value, error) {
			err := checkVars("will_payload", text, "icur")
			// [MQTT5 3.1.3.4] the Will Payload is Binary Data.
			if len(text) > maxBinary {
				err = errors.New("will_payload is over MQTT's limit of 65,535 bytes")
			}
			return plain(text, func(c *Case) { will(c).Payload = text }), err
		}, get: get(func(w *Will) any { return w.Payload })},
		{key: "will_qos", parse: func(_, text string) (value, error) {
			q, err := parseQoS(text)
			if err != nil {
				err = errors.New("will_qos must be 0, 1 or 2")
			}
			return plain(text, func(c *Case) { will(c).QoS = q }), err
		}, get: get(func(w *Will) any { return w.QoS })},
		{key: "will_retain", parse: func(_, text string) (value, error) {
			on, err := parseFlag("will_retain", text)
			return plain(text, func(c *Case) { will(c).Retain = on }), err
		}, get: get(func(w *Will) any { return w.Retain })},
		{key: "will_delay", parse: func(_, text string) (value, error) {
			d, err := parseSeconds("will_delay", text, maxExpiry)
			return plain(text, func(c *Case) { will(c).Delay = d }), err
		}, get: get(func(w *Will) any { return text.Duration(w.Delay) })},
	}
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
