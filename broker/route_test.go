package broker

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/mqtt/packet"
)

func mustHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestMatching compares the tree of subscriptions, and that of retained
// messages, with the codec's rule for one filter and one topic.
func TestMatching(t *testing.T) {
	filters := []string{
		"#", "+", "/", "+/+", "/+", "a", "a/#", "a/+", "a/b", "a/+/c", "+/b/#", "a//c", "a/", "+/+/+", "$SYS/#",
		"$SYS/+", "+/x", "a/b/c/#", "//", "+/", "/#",
	}
	topics := []string{
		"a", "a/b", "a/b/c", "a//c", "/", "a/", "/a", "b", "$SYS/x", "$SYS", "a/b/c/d", "//", "x/y", "$a/b", "+x",
	}
	for _, filter := range filters {
		var tr tree
		s := &session{subs: map[string]*subscription{}}
		tr.subscribe(&subscription{sess: s, filter: filter})
		for _, topic := range topics {
			want := packet.MatchTopic(filter, topic)
			if got := len(tr.resolve(topic, nil).targets) == 1; got != want {
				t.Errorf("filter %q, topic %q: %v, want %v", filter, topic, got, want)
			}
			r := retained{max: 1 << 20}
			r.set(&message{topic: topic})
			if got := len(r.match(filter, 0)) == 1; got != want {
				t.Errorf("filter %q, retained %q: %v, want %v", filter, topic, got, want)
			}
			r.remove(topic)
			if r.len() != 0 || r.bytes != 0 || len(r.root.children) != 0 {
				t.Errorf("retained %q: something is left: %+v", topic, &r)
			}
		}
		if tr.unsubscribe(s, filter); tr.len() != 0 || !tr.root.empty() {
			t.Errorf("filter %q: something is left", filter)
		}
	}
}

// TestOverlap: a session with several matching filters gets one copy at the
// greatest QoS, with all Subscription Identifiers.
func TestOverlap(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	c := connect(t, addr, clean(packet.V5, "c"))
	for i, f := range []packet.Subscription{sub("a/#", 1), sub("a/b", 0), sub("+/b", 2)} {
		c.subscribeWith(packet.Properties{SubscriptionIDs: []uint32{uint32(i + 300)}}, f)
	}
	p := connect(t, addr, clean(packet.V311, "p"))
	p.publish("a/b", "x", 2, 1)
	finishPublish(p, 2, 1)
	got, props := c.publication()
	slices.Sort(props.SubscriptionIDs)
	if got.QoS != 2 || !slices.Equal(props.SubscriptionIDs, []uint32{300, 301, 302}) {
		t.Errorf("QoS %d, identifiers %v", got.QoS, props.SubscriptionIDs)
	}
	finishReceive(c, 2, got.PacketID)
	// Without an identifier where the new subscription has none.
	c.subscribe(sub("a/b", 1))
	c.send(&packet.Unsubscribe{PacketID: 3, Filters: []string{"a/#", "+/b"}})
	c.frame(packet.UNSUBACK)
	p.publish("a/b", "y", 2, 2)
	finishPublish(p, 2, 2)
	if got, props = c.publication(); got.QoS != 1 || props.SubscriptionIDs != nil {
		t.Errorf("QoS %d, identifiers %v", got.QoS, props.SubscriptionIDs)
	}
	c.sendAck(packet.PUBACK, got.PacketID)
	c.sync()
}

func TestNoLocal(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	c := connect(t, addr, clean(packet.V5, "c"))
	c.subscribe(packet.Subscription{Filter: "a", QoS: 1, NoLocal: true})
	c.publish1("a", "mine")
	c.sync()
	p := connect(t, addr, clean(packet.V5, "p"))
	p.publish1("a", "yours")
	c.wantPublish("a", "yours", 1)
	c.sync()
}

// TestProperties: properties of the publisher are forwarded as they are, its
// Topic Alias is not, and a 3.x subscriber gets none.
func TestProperties(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	five := connect(t, addr, clean(packet.V5, "five"))
	four := connect(t, addr, clean(packet.V311, "four"))
	p := connect(t, addr, clean(packet.V5, "p"))
	five.subscribe(sub("long/topic/name", 1))
	four.subscribe(sub("long/topic/name", 1))
	props := packet.Properties{
		PayloadFormat: ptr(byte(1)), MessageExpiry: ptr(uint32(100)), ContentType: ptr("text"), ResponseTopic: ptr("r"),
		CorrelationData: []byte{1, 2}, TopicAlias: ptr(uint16(1)),
		UserProperties: []packet.UserProperty{{Name: "k", Value: "v"}, {Name: "k", Value: "w"}},
	}
	for i, topic := range []string{"long/topic/name", "", ""} {
		pub := packet.Publish{Topic: []byte(topic), Payload: []byte{byte(i)}, QoS: 1, PacketID: uint16(i + 1)}
		p.must(pub.SetProperties(&props))
		p.send(&pub)
		p.wantAck(packet.PUBACK, pub.PacketID, 0)
		got, gotProps := five.publication()
		want := props
		want.TopicAlias = nil
		if string(got.Topic) != "long/topic/name" || !equalProperties(t, &gotProps, &want) {
			t.Errorf("%d: %q %+v", i, got.Topic, gotProps)
		}
		if got, _ := four.publication(); string(got.Topic) != "long/topic/name" || string(got.Payload) != string([]byte{byte(i)}) {
			t.Errorf("%d: 3.1.1 got %+v", i, got)
		}
		// From the second one the alias stands alone: three bytes of properties.
		props = packet.Properties{TopicAlias: props.TopicAlias}
	}
	// The alias may be given to another topic.
	five.subscribe(sub("other", 0))
	pub := packet.Publish{Topic: []byte("other")}
	p.must(pub.SetProperties(&props))
	p.send(&pub)
	five.wantPublish("other", "", 0)
	pub.Topic = nil
	p.send(&pub)
	five.wantPublish("other", "", 0)
}

func equalProperties(t *testing.T, a, b *packet.Properties) bool {
	t.Helper()
	x, err := packet.AppendProperties(nil, packet.PUBLISH, a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := packet.AppendProperties(nil, packet.PUBLISH, b)
	if err != nil {
		t.Fatal(err)
	}
	return string(x) == string(y)
}

// TestDuplicatePublish: a QoS 2 message is delivered once, however often its
// PUBLISH comes before PUBREL, and its identifier is new after it.
func TestDuplicatePublish(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	s := connect(t, addr, clean(packet.V311, "s"))
	s.subscribe(sub("a", 0))
	p := connect(t, addr, clean(packet.V5, "p"))
	for _, payload := range []string{"first", "second"} {
		p.publish("a", payload, 2, 5)
		p.wantAck(packet.PUBREC, 5, 0)
		p.send(&packet.Publish{Topic: []byte("a"), Payload: []byte(payload), QoS: 2, PacketID: 5, Dup: true})
		p.wantAck(packet.PUBREC, 5, 0)
		p.sendAck(packet.PUBREL, 5)
		p.wantAck(packet.PUBCOMP, 5, 0)
		s.wantPublish("a", payload, 0)
		s.sync()
	}
	p.sendAck(packet.PUBREL, 5)
	p.wantAck(packet.PUBCOMP, 5, packet.ReasonPacketIdentifierNotFound)
	p.sendAck(packet.PUBREC, 77)
	p.wantAck(packet.PUBREL, 77, packet.ReasonPacketIdentifierNotFound)
}

// TestWrongAck: acknowledging QoS 1 as QoS 2, or the other way, is an error.
func TestWrongAck(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	for _, tc := range []struct {
		qos  byte
		with packet.Type
	}{{1, packet.PUBREC}, {1, packet.PUBCOMP}, {2, packet.PUBACK}, {2, packet.PUBCOMP}} {
		c := connect(t, addr, clean(packet.V5, "c"))
		c.subscribe(sub("a", tc.qos))
		p := connect(t, addr, clean(packet.V5, "p"))
		p.publish("a", "", tc.qos, 1)
		finishPublish(p, tc.qos, 1)
		got := c.wantPublish("a", "", tc.qos)
		c.sendAck(tc.with, got.PacketID)
		c.wantClosed(packet.ReasonProtocolError)
	}
}

// TestShared: each message of a shared subscription goes to one member, in
// turn; members without a connection are passed over.
func TestShared(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	p := connect(t, addr, clean(packet.V5, "p"))
	var members []*peer
	for i := range 3 {
		c := connect(t, addr, clean(packet.V5, fmt.Sprint("m", i)))
		c.subscribe(sub("$share/g/a/+", 1))
		members = append(members, c)
	}
	plain := connect(t, addr, clean(packet.V311, "plain"))
	plain.subscribe(sub("a/#", 0))
	for range 9 {
		p.publish1("a/b", "x")
		plain.wantPublish("a/b", "x", 0)
	}
	for _, c := range members {
		for range 3 {
			got := c.wantPublish("a/b", "x", 1)
			c.sendAck(packet.PUBACK, got.PacketID)
		}
		c.sync()
	}
	members[0].leave()
	for range 4 {
		p.publish1("a/b", "y")
	}
	for _, c := range members[1:] {
		for range 2 {
			c.sendAck(packet.PUBACK, c.wantPublish("a/b", "y", 1).PacketID)
		}
		c.sync()
	}
	members[1].leave()
	members[2].leave()
	p.publish1("a/b", "nobody")
	plain.sync3("a/b", 5)
}

// sync3 expects n more messages of topic, and then no other.
func (c *peer) sync3(topic string, n int) {
	c.t.Helper()
	for range n {
		if got, _ := c.publication(); string(got.Topic) != topic {
			c.t.Fatalf("topic %q", got.Topic)
		}
	}
	c.sync()
}

// TestRetained checks the flag, the three kinds of Retain Handling, removal,
// replacement, and Retain As Published.
func TestRetained(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	p := connect(t, addr, clean(packet.V5, "p"))
	for _, topic := range []string{"r/1", "r/2"} {
		p.send(&packet.Publish{Topic: []byte(topic), Payload: []byte("old"), Retain: true})
		p.send(&packet.Publish{Topic: []byte(topic), Payload: []byte(topic), Retain: true, QoS: 1, PacketID: 1})
		p.wantAck(packet.PUBACK, 1, 0)
	}
	c := connect(t, addr, clean(packet.V5, "c"))
	c.subscribeWith(packet.Properties{SubscriptionIDs: []uint32{4}}, sub("r/1", 2))
	got, props := c.publication()
	if !got.Retain || got.QoS != 1 || string(got.Payload) != "r/1" || len(props.SubscriptionIDs) != 1 {
		t.Fatalf("%+v %+v", got, props)
	}
	c.sendAck(packet.PUBACK, got.PacketID)
	c.subscribe(packet.Subscription{Filter: "r/1", RetainHandling: 1})
	c.sync() // not new
	c.subscribe(packet.Subscription{Filter: "r/1", RetainHandling: 0})
	c.wantPublish("r/1", "r/1", 0)
	c.subscribe(packet.Subscription{Filter: "r/2", RetainHandling: 2})
	c.sync()
	c.subscribe(packet.Subscription{Filter: "+/2", RetainHandling: 1})
	c.wantPublish("r/2", "r/2", 0)
	c.subscribe(sub("$share/g/r/2", 0))
	c.sync()

	// Forwarded at once, the flag is kept only with Retain As Published.
	d := connect(t, addr, clean(packet.V5, "d"))
	d.subscribe(packet.Subscription{Filter: "n", RetainAsPublished: true})
	e := connect(t, addr, clean(packet.V311, "e"))
	e.subscribe(sub("n", 0))
	p.send(&packet.Publish{Topic: []byte("n"), Payload: []byte("1"), Retain: true})
	if got := d.wantPublish("n", "1", 0); !got.Retain {
		t.Error("Retain As Published: the flag is gone")
	}
	if got := e.wantPublish("n", "1", 0); got.Retain {
		t.Error("the flag is set on a message that is new")
	}
	// Empty payload removes, and is itself forwarded.
	p.send(&packet.Publish{Topic: []byte("n"), Retain: true})
	e.wantPublish("n", "", 0)
	late := connect(t, addr, clean(packet.V311, "late"))
	late.subscribe(sub("n", 0))
	late.sync()
}

// TestMaximumPacketSize: a message that is too large for a subscriber is omitted, and
// does not use its window.
func TestMaximumPacketSize(t *testing.T) {
	b := startBroker(t, Config{})
	addr := listen(t, b)
	conn := clean(packet.V5, "c")
	conn.Properties.MaximumPacketSize = ptr(uint32(40))
	conn.Properties.ReceiveMaximum = ptr(uint16(1))
	c := connect(t, addr, conn)
	c.subscribe(sub("a", 1))
	for _, v := range []packet.Version{packet.V311, packet.V5} {
		p := connect(t, addr, clean(v, "p"))
		p.publish1("a", strings.Repeat("x", 40))
		p.publish1("a", strings.Repeat("x", 31)) // 1+1+2+1+2+1+31 = 39
		p.publish1("a", strings.Repeat("x", 32)) // 40
		p.publish1("a", strings.Repeat("x", 33)) // 41
		for _, n := range []int{31, 32} {
			c.sendAck(packet.PUBACK, c.wantPublish("a", strings.Repeat("x", n), 1).PacketID)
		}
		c.sync()
	}
	if n := b.Stats().Oversize; n != 4 {
		t.Errorf("oversize %d, want 4", n)
	}
}
