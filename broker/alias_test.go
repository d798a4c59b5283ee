package broker

import (
	"testing"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// takesAliases is a CONNECT with a Topic Alias Maximum.
func takesAliases(id string, n uint16) packet.Connect {
	c := clean(packet.V5, id)
	c.Properties.TopicAliasMaximum = &n
	return c
}

// wantAlias reads a PUBLISH and checks its topic and alias; 0 means no alias.
func (c *peer) wantAlias(topic string, alias uint16) {
	c.t.Helper()
	p, props := c.publication()
	got := uint16(0)
	if props.TopicAlias != nil {
		got = *props.TopicAlias
	}
	if string(p.Topic) != topic || got != alias {
		c.t.Errorf("topic %q and alias %d, want %q and %d", p.Topic, got, topic, alias)
	}
	finishReceive(c, p.QoS, p.PacketID)
}

// TestGivenAliases: the first message of a topic has the topic and its alias, later
// ones the alias alone. There is none left for the third topic, and none for a client
// without a Topic Alias Maximum. [MQTT-3.1.2-26] [MQTT-3.1.2-27]
func TestGivenAliases(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	for qos := range byte(3) {
		s, plain := connect(t, addr, takesAliases("s", 2)), connect(t, addr, clean(packet.V5, "plain"))
		s.subscribe(sub("t/#", qos))
		plain.subscribe(sub("t/#", qos))
		p := connect(t, addr, clean(packet.V311, "p"))
		id := uint16(0)
		for _, one := range []struct {
			topic, said string
			alias       uint16
		}{{"t/a", "t/a", 1}, {"t/a", "", 1}, {"t/b", "t/b", 2}, {"t/c", "t/c", 0}, {"t/a", "", 1}, {"t/b", "", 2}, {"t/c", "t/c", 0}} {
			id++
			p.publish(one.topic, "x", qos, id)
			finishPublish(p, qos, id)
			s.wantAlias(one.said, one.alias)
			plain.wantAlias(one.topic, 0)
		}
		s.leave()
		plain.leave()
		p.leave()
	}
}

// TestGivenAliasesEnd: the first message of a topic on a new connection has the topic,
// also if it was queued. [MQTT-3.3.2-7]
func TestGivenAliasesEnd(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	hello := takesAliases("s", 5)
	hello.Properties.SessionExpiry = ptr(uint32(60))
	s := connect(t, addr, hello)
	s.subscribe(sub("a", 1))
	p := connect(t, addr, clean(packet.V5, "p"))
	send := func(n int) {
		for range n {
			p.publish("a", "x", 1, 1)
			p.wantAck(packet.PUBACK, 1, 0)
		}
	}
	send(2)
	s.wantAlias("a", 1)
	s.wantAlias("", 1)
	s.sync()
	s.leave()
	send(2)
	hello.CleanStart = false
	s = connect(t, addr, hello)
	s.wantAlias("a", 1)
	s.wantAlias("", 1)
}

// TestGivenAliasTooLarge: a message that only fits without the alias goes
// without it.
func TestGivenAliasTooLarge(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	hello := takesAliases("s", 5)
	hello.Properties.MaximumPacketSize = ptr(uint32(30))
	s := connect(t, addr, hello)
	s.subscribe(sub("#", 0))
	p := connect(t, addr, clean(packet.V5, "p"))
	p.publish1("a", "1234567890123456789012345") // 31 bytes
	p.publish1("a", "123456789012345678901234")
	p.publish1("a", "1")
	s.wantAlias("a", 0)
	s.wantAlias("a", 1)
	p.publish1("a", "123456789012345678901234")
	s.wantAlias("a", 0)
}

// TestTakenAliases: an alias stands for the topic for which it was set last, whatever
// was published in between, and however the messages are batched.
// [MQTT-3.3.2-7] [MQTT-3.3.2-12]
func TestTakenAliases(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	for qos := range byte(3) {
		s := connect(t, addr, clean(packet.V5, "s"))
		s.subscribe(sub("t/#", qos))
		p := connect(t, addr, clean(packet.V5, "p"))
		for i, one := range []struct {
			topic string
			alias uint16
			props packet.Properties
			want  string
		}{
			{"t/a", 1, packet.Properties{}, "t/a"},
			{"", 1, packet.Properties{}, "t/a"},
			{"", 1, packet.Properties{}, "t/a"},
			{"t/b", 0, packet.Properties{}, "t/b"},
			{"", 1, packet.Properties{}, "t/a"},
			{"t/a", 0, packet.Properties{}, "t/a"},
			{"", 1, packet.Properties{}, "t/a"},
			{"t/b", 1, packet.Properties{}, "t/b"},
			{"", 1, packet.Properties{}, "t/b"},
			{"t/a", 2, packet.Properties{}, "t/a"},
			{"", 2, packet.Properties{ContentType: ptr("x")}, "t/a"},
			{"", 2, packet.Properties{}, "t/a"},
			{"", 1, packet.Properties{}, "t/b"},
			{"", 2, packet.Properties{}, "t/a"},
		} {
			m := packet.Publish{Topic: []byte(one.topic), Payload: []byte("x"), QoS: qos}
			if qos > 0 {
				m.PacketID = uint16(i + 1)
			}
			if one.alias > 0 {
				one.props.TopicAlias = &one.alias
			}
			p.must(m.SetProperties(&one.props))
			p.send(&m)
			finishPublish(p, qos, m.PacketID)
			got, props := s.publication()
			if string(got.Topic) != one.want || props.TopicAlias != nil || (props.ContentType != nil) != (one.props.ContentType != nil) {
				t.Errorf("QoS %d, message %d: topic %q with %+v, want %q", qos, i+1, got.Topic, props, one.want)
			}
			finishReceive(s, got.QoS, got.PacketID)
		}
		p.send(&packet.Publish{QoS: 0, RawProperties: []byte{idTopicAlias, 0, 3}})
		p.wantClosed(packet.ReasonTopicAliasInvalid)
		s.leave()
	}
}
