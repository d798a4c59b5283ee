package broker

import (
	"testing"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// takesAliases is a CONNECT that allows the broker so many Topic Aliases.
func takesAliases(id string, n uint16) packet.Connect {
	c := clean(packet.V5, id)
	c.Properties.TopicAliasMaximum = &n
	return c
}

// wantAlias reads a PUBLISH with this topic and alias; 0 is none.
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

// TestGivenAliases: a topic is said once with its alias, and then the alias
// alone; the third topic finds none. Who has not asked gets none. [MQTT-3.1.2-26]
// [MQTT-3.1.2-27]
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

// TestGivenAliasesEnd: what was queued for a session goes with its topic first
// on the next connection. [MQTT-3.3.2-7]
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
