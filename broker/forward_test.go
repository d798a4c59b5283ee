package broker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestDupIsNotForwarded: [MQTT-3.3.1-3]
func TestDupIsNotForwarded(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	for _, v := range versions {
		s := connect(t, addr, clean(v, "s"))
		s.subscribe(sub("a", 2))
		p := connect(t, addr, clean(packet.V311, "p"))
		for qos := byte(1); qos <= 2; qos++ {
			p.send(&packet.Publish{Topic: []byte("a"), QoS: qos, PacketID: 3, Dup: true})
			finishPublish(p, qos, 3)
			got := s.wantPublish("a", "", qos)
			if got.Dup {
				t.Errorf("%s: DUP at QoS %d", v, qos)
			}
			finishReceive(s, qos, got.PacketID)
		}
	}
}

// TestRetainedIsTheLast: [MQTT-3.3.1-8] a message without RETAIN leaves what is
// retained as it is, [MQTT-3.1.2-7] of 3.1.1 and so does the end of its session;
// [MQTT-3.3.1-7] of 3.1.1 one at QoS 0 replaces it.
func TestRetainedIsTheLast(t *testing.T) {
	b := startBroker(t, Config{})
	addr := listen(t, b)
	for _, v := range versions {
		p := connect(t, addr, clean(v, "p"))
		p.send(&packet.Publish{Topic: []byte("a"), Payload: []byte("kept"), Retain: true, QoS: 1, PacketID: 1})
		p.wantAck(packet.PUBACK, 1, 0)
		p.publish1("a", "not kept")
		p.publish1("b", "not kept")
		p.publish1("a", "")
		p.leave()
		b.waitOffline(t, "p")
		s := connect(t, addr, clean(v, "s"))
		s.subscribe(sub("#", 0))
		if got := s.wantPublish("a", "kept", 0); !got.Retain {
			t.Errorf("%s: no RETAIN", v)
		}
		s.sync()
		s.leave()
		p = connect(t, addr, clean(v, "p"))
		p.send(&packet.Publish{Topic: []byte("a"), Payload: []byte("newer"), Retain: true})
		p.sync()
		s = connect(t, addr, clean(v, "s"))
		s.subscribe(sub("a", 2))
		s.wantPublish("a", "newer", 0)
		s.sync()
		s.leave()
		p.leave()
	}
}

// TestRetainedWithoutShare: section 4.8.2 of MQTT 5. For Retain Handling 1 a repeated
// subscription is not new, even with another QoS. [MQTT-3.3.1-10]
func TestRetainedWithoutShare(t *testing.T) {
	b := startBroker(t, Config{})
	addr := listen(t, b)
	p := connect(t, addr, clean(packet.V5, "p"))
	for _, topic := range []string{"a", "$share/g/a"} { // also one of the same name
		p.send(&packet.Publish{Topic: []byte(topic), Payload: []byte("x"), Retain: true})
	}
	p.sync()
	c := connect(t, addr, kept(packet.V5, "c"))
	c.subscribe(sub("$share/g/a", 1))
	c.sync()
	c.subscribe(packet.Subscription{Filter: "a", RetainHandling: 1})
	c.wantPublish("a", "x", 0)
	c.subscribe(packet.Subscription{Filter: "a", QoS: 2, RetainHandling: 1})
	c.sync()
	c.drop(b, "c")
	c = connect(t, addr, kept(packet.V5, "c"))
	c.subscribe(packet.Subscription{Filter: "a", QoS: 2, RetainHandling: 1})
	c.sync() // the session had it
	c.send(&packet.Unsubscribe{PacketID: 9, Filters: []string{"a"}})
	c.frame(packet.UNSUBACK)
	c.subscribe(packet.Subscription{Filter: "a", RetainHandling: 1})
	c.wantPublish("a", "x", 0)
}

// TestShareQoS: [MQTT-4.8.2-3] each member gets the QoS granted to it.
func TestShareQoS(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	for qos := range byte(3) {
		c := connect(t, addr, clean(packet.V5, fmt.Sprint("c", qos)))
		c.subscribe(sub("$share/g/a", qos))
		p := connect(t, addr, clean(packet.V5, "p"))
		p.publish("a", "x", 2, 1)
		finishPublish(p, 2, 1)
		finishReceive(c, qos, c.wantPublish("a", "x", qos).PacketID)
		c.leave()
	}
}

// TestOverlapIn3: [MQTT-3.3.5-1] of 3.1.1: at the greatest QoS, here in one copy.
func TestOverlapIn3(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	for _, v := range versions[:2] {
		c := connect(t, addr, clean(v, "c"))
		c.subscribe(sub("a/#", 0), sub("a/+", 2), sub("a/b", 1))
		p := connect(t, addr, clean(v, "p"))
		p.publish("a/b", "x", 2, 1)
		finishPublish(p, 2, 1)
		finishReceive(c, 2, c.wantPublish("a/b", "x", 2).PacketID)
		c.sync()
	}
}

// TestNoNormalization: [MQTT-4.7.3-4] names are bytes, and [MQTT-1.5.4-3] U+FEFF is
// one of their characters.
func TestNoNormalization(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	c := connect(t, addr, clean(packet.V5, "c"))
	names := []string{"é", "e\u0301", "É", "\ufeffé", "é ", " é", "é/", "/é", "Å", "\u212b"}
	for i, name := range names {
		c.subscribeWith(packet.Properties{SubscriptionIDs: []uint32{uint32(i + 1)}}, sub(name, 0))
	}
	for i, name := range names {
		c.publish(name, "", 0, 0)
		got, props := c.publication()
		if string(got.Topic) != name || len(props.SubscriptionIDs) != 1 || props.SubscriptionIDs[0] != uint32(i+1) {
			t.Errorf("%q: %q of %v", name, got.Topic, props.SubscriptionIDs)
		}
	}
	c.sync()
}

// TestMaximumPacketSizeAtOnce: [MQTT-3.1.2-24] to the byte, for messages that are
// forwarded at once, alone and in a run, in the same and in another version.
func TestMaximumPacketSizeAtOnce(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	for _, v := range []packet.Version{packet.V311, packet.V5} {
		for qos := range byte(3) {
			conn := clean(packet.V5, "c")
			conn.Properties.MaximumPacketSize = ptr(uint32(40))
			c := connect(t, addr, conn)
			c.subscribe(sub("a", 2))
			p := connect(t, addr, clean(v, "p"))
			largest := 40 - (1 + 1 + 2 + 1 + 1) // header, topic and no properties
			if qos > 0 {
				largest -= 2
			}
			id := uint16(0)
			for _, n := range []int{largest + 1, largest, largest + 1, largest + 1, largest, largest} {
				id += uint16(min(qos, 1))
				p.publish("a", strings.Repeat("x", n), qos, id)
				finishPublish(p, qos, id)
				p.sync()
			}
			var row []byte
			for _, n := range []int{largest, largest + 1, largest} {
				id += uint16(min(qos, 1))
				pub := packet.Publish{Topic: []byte("a"), Payload: make([]byte, n), QoS: qos, PacketID: id}
				var err error
				row, err = pub.Append(row, v)
				p.must(err)
			}
			p.write(row, nil)
			for range 3 {
				c.wantPublish("a", strings.Repeat("x", largest), qos)
			}
			for range 2 {
				c.wantPublish("a", string(make([]byte, largest)), qos)
			}
			for i := range uint16(3) {
				if qos > 0 {
					p.wantAck(packet.PUBACK+packet.Type(qos)-1, id-2+i, 0)
				}
			}
			c.sync()
			c.leave()
			p.leave()
		}
	}
}
