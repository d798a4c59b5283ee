package mqtt

import (
	"testing"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// aliased makes the alias form of a message "hi".
func aliased(t *testing.T, c *Client, topic string, qos byte) *Aliased {
	t.Helper()
	a, err := c.Aliased(&packet.Publish{QoS: qos, PacketID: uint16(min(qos, 1)), Topic: []byte(topic), Payload: []byte("hi")})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func send(t *testing.T, c *Client, a *Aliased, n int) {
	t.Helper()
	if k, err := c.PublishAliased(a, n, 0, nil); k != n || err != nil {
		t.Fatalf("sent %d of %d, %v", k, n, err)
	}
	_ = c.Flush()
}

const twoAliases = "20 06 00 00 03 22 0002" // CONNACK with Topic Alias Maximum 2

// TestAliases: the first message on a topic has topic and alias, all later ones of
// any QoS only the alias. With two aliases, the third topic gets none.
// [MQTT-3.2.2-17]
func TestAliases(t *testing.T) {
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true, TopicAliases: 10}, twoAliases)
	a, b, third := aliased(t, c, "a", 0), aliased(t, c, "b", 1), aliased(t, c, "c", 0)
	send(t, c, a, 3)
	send(t, c, b, 1)
	send(t, c, aliased(t, c, "a", 1), 1)
	send(t, c, third, 2)
	send(t, c, a, 1)
	for _, want := range []string{
		"30 09 0001 61 03 230001 6869", "30 08 0000 03 230001 6869", "30 08 0000 03 230001 6869",
		"32 0b 0001 62 0001 03 230002 6869",
		"32 0a 0000 0002 03 230001 6869",
		"30 06 0001 63 00 6869", "30 06 0001 63 00 6869",
		"30 08 0000 03 230001 6869",
	} {
		peer.Expect(want)
	}
	if a.Size() != 10 || third.Size() != 8 {
		t.Errorf("sizes %d and %d", a.Size(), third.Size())
	}
}

// TestAliasesOff: [MQTT-3.2.2-18] no alias is sent if the broker states no maximum,
// or if the Config asks for none.
func TestAliasesOff(t *testing.T) {
	for _, tt := range []struct {
		asked   uint16
		connack string
	}{{10, connack5}, {0, twoAliases}, {10, "20 06 00 00 03 22 0000"}} {
		c, peer := start(t, Config{Version: packet.V5, CleanStart: true, TopicAliases: tt.asked}, tt.connack)
		send(t, c, aliased(t, c, "a", 0), 2)
		peer.Expect("30 06 0001 61 00 6869")
		peer.Expect("30 06 0001 61 00 6869")
	}
}

// TestAliasesEnd: [MQTT-3.3.2-7] the next connection sets its aliases anew, and
// resent messages have their topic and their payload.
func TestAliasesEnd(t *testing.T) {
	cfg := Config{Version: packet.V5, ClientID: "c", TopicAliases: 1, Session: NewSession()}
	c, peer := start(t, cfg, twoAliases)
	a := aliased(t, c, "a", 1)
	for _, x := range []byte("xyz") {
		if n, err := c.PublishAliased(a, 1, 0, func(p []byte) { p[1] = x }); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	_ = c.Flush()
	peer.Expect("32 0b 0001 61 0001 03 230001 6878")
	peer.Expect("32 0a 0000 0002 03 230001 6879")
	peer.Expect("32 0a 0000 0003 03 230001 687a")
	cut(c, peer)
	c, peer = start(t, cfg, "20 06 01 00 03 22 0001")
	send(t, c, aliased(t, c, "a", 1), 2)
	for _, want := range []string{
		"3a 08 0001 61 0001 00 6878", "3a 08 0001 61 0002 00 6879", "3a 08 0001 61 0003 00 687a",
		"32 0b 0001 61 0004 03 230001 6869", "32 0a 0000 0005 03 230001 6869",
	} {
		peer.Expect(want)
	}
}

// TestAliasWindow: a message that the full window holds back sets no alias.
func TestAliasWindow(t *testing.T) {
	r := newRecorder()
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true, TopicAliases: 1, Inflight: 1, Handler: r}, twoAliases)
	a, b := aliased(t, c, "a", 1), aliased(t, c, "b", 1)
	send(t, c, b, 1)
	if n, err := c.PublishAliased(a, 1, 0, nil); n != 0 || err != nil {
		t.Errorf("sent %d, %v", n, err)
	}
	peer.Expect("32 08 0001 62 0001 00 6869")
	peer.Send("40 02 0001")
	<-r.end
	send(t, c, a, 1)
	peer.Expect("32 0b 0001 61 0002 03 230001 6869")
}

// TestAliasSizes: messages of different sizes share an alias, and are resent in
// their own size.
func TestAliasSizes(t *testing.T) {
	cfg := Config{Version: packet.V5, ClientID: "c", TopicAliases: 1, Session: NewSession()}
	c, peer := start(t, cfg, twoAliases)
	a, err := c.AliasedResizer(&packet.Publish{QoS: 1, PacketID: 1, Topic: []byte("a"), Payload: []byte("hello")})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{5, 0, 2} {
		a.Resize(n)
		send(t, c, a, 1)
	}
	peer.Expect("32 0e 0001 61 0001 03 230001 68656c6c6f")
	peer.Expect("32 08 0000 0002 03 230001")
	peer.Expect("32 0a 0000 0003 03 230001 6865")
	cut(c, peer)
	_, peer = start(t, cfg, "20 06 01 00 03 22 0001")
	for _, want := range []string{"3a 0b 0001 61 0001 00 68656c6c6f", "3a 06 0001 61 0002 00", "3a 08 0001 61 0003 00 6865"} {
		peer.Expect(want)
	}
}
