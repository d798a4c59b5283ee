package scenarios

import (
	"errors"
	"strings"
	"unicode"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// sampleRunID is as long as those of runs, and of the same characters.
const sampleRunID = "00000000"

// clientVars are the values of the variables in what the n-th client is
// called, from 1. User name and client id may each hold the other.
func clientVars(c *Case, n int) Vars {
	v := Vars{I: n, R: sampleRunID}
	v.U = Expand(c.Clients.Username, v)
	v.C = Expand(c.Clients.ClientID, v)
	v.U = Expand(c.Clients.Username, v)
	return v
}

// topicVars are the values of the variables in a topic, from 1: %i is the
// topic's number, and %c and %u are its speaker's.
func topicVars(c *Case, topic int) Vars {
	v := clientVars(c, c.Load.Speaker(topic-1)+1)
	v.I = topic
	return v
}

// checkExpanded is about names that are sound only until their variables get
// their values. The first and the last are looked at: those between them
// differ in nothing but digits.
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
		return errors.New("topic must not start with $share/: that subscribes to a share of other topics")
	}
	return nil
}

// checkText is about user names and client ids, which brokers log and build
// topics of: what MQTT forbids in them, and what it advises against.
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
