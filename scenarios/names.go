package scenarios

import (
	"errors"
	"strings"
	"unicode"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// sampleRunID has the length and the characters of a run's id.
const sampleRunID = "00000000"

// clientVars are the values of the variables for client n, from 1. User name and
// client id may each hold the other.
func clientVars(c *Case, n int) Vars {
	v := Vars{I: n, R: sampleRunID}
	v.U = Expand(c.Clients.Username, v)
	v.C = Expand(c.Clients.ClientID, v)
	v.U = Expand(c.Clients.Username, v)
	return v
}

// topicVars are the values of the variables in topic n, from 1: %i is the topic's
// number, and %c and %u are those of [Load.Speaker].
func topicVars(c *Case, topic int) Vars {
	v := clientVars(c, c.Load.Speaker(topic-1)+1)
	v.I = topic
	return v
}

// checkExpanded rejects names that are invalid once their variables have values. It
// looks at the first and the last: the others differ only in digits.
func checkExpanded(c *Case, fail failer) {
	for _, pair := range []int{1, c.Load.Topics} {
		topic := Expand(c.Clients.Topic, topicVars(c, pair))
		if err := checkTopicName(topic); err != nil {
			fail("topic", "topic %s becomes %s with its client id and user name, and %v", text.Quote(c.Clients.Topic), text.Quote(topic), err)
			break
		}
	}
	// [MQTT5 1.5.4]
	if len(clientVars(c, maxClientNumber).U) > maxBinary {
		fail("username", "username is over MQTT's limit of 65,535 bytes")
	}
}

func checkTopicName(topic string) error {
	if err := packet.ValidateTopicName(topic); err != nil {
		return errors.New("topic " + ruleOf(err))
	}
	// [MQTT5 4.8.2]
	if strings.HasPrefix(topic, "$share/") {
		return errors.New("topic must not start with $share/, which marks a shared subscription")
	}
	return nil
}

// checkText rejects characters in user names and client ids that MQTT forbids, and
// those that it advises against: brokers log these names and use them in topics.
// [MQTT-1.5.4-1] [MQTT-1.5.4-2] [MQTT5 1.5.4]
func checkText(key, text string) error {
	if err := packet.ValidateUTF8([]byte(text)); err != nil {
		return errors.New(key + " " + ruleOf(err))
	}
	switch {
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New(key + " contains a control character [MQTT5 1.5.4]")
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Noncharacter_Code_Point, r) }):
		return errors.New(key + " contains a Unicode non-character [MQTT5 1.5.4]")
	}
	return nil
}
