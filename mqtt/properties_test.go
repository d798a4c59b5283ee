package mqtt

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestProperties: the properties of a PUBLISH are sent, but not those that only a broker
// may send.
func TestProperties(t *testing.T) {
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true}, connack5)
	p := packet.Publish{Topic: []byte("a")}
	if err := p.SetProperties(&packet.Properties{
		PayloadFormat: new(byte(1)), MessageExpiry: new(uint32(60)), ContentType: new("t"), ResponseTopic: new("r"),
		CorrelationData: []byte("d"), UserProperties: []packet.UserProperty{{Name: "n", Value: "v"}},
	}); err != nil {
		t.Fatal(err)
	}
	tmpl, err := c.Template(&p)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.PublishN(tmpl, 1, 0, nil)
	_ = c.Flush()
	peer.Expect("30 1e 0001 61 1a 0101 020000003c 03 0001 74 08 0001 72 09 0001 64 26 0001 6e 0001 76")

	// [MQTT-3.3.4-6]
	var limit *LimitError
	if _, err := c.Template(&packet.Publish{Topic: []byte("a"), RawProperties: []byte{0x0b, 1}}); !errors.As(err, &limit) || !strings.Contains(err.Error(), "subscription identifier") {
		t.Errorf("got %v", err)
	}
	// [MQTT-3.3.2-14]
	if err := p.SetProperties(&packet.Properties{ResponseTopic: new("r/#")}); err == nil {
		t.Error("a response topic with a wildcard")
	}
}

// TestSubscriptionIdentifier: a Subscription Identifier is sent if the broker allows it.
func TestSubscriptionIdentifier(t *testing.T) {
	subscribe := func(c *Client) error {
		_, err := c.Subscribe(t.Context(), []packet.Subscription{{Filter: "b"}}, packet.Properties{SubscriptionIDs: []uint32{300}})
		return err
	}
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true}, connack5)
	go func() {
		peer.Expect("82 0a 0001 03 0bac02 0001 62 00")
		peer.Send("90 04 0001 00 00")
	}()
	if err := subscribe(c); err != nil {
		t.Error(err)
	}
	c, _ = start(t, Config{Version: packet.V5, CleanStart: true}, "20 05 00 00 02 29 00") // not available
	var limit *LimitError
	if err := subscribe(c); !errors.As(err, &limit) {
		t.Errorf("got %v", err)
	}
}

// TestProblemInfo: [MQTT-3.1.2-29] with Request Problem Information 0, a Reason String or
// User Property is an error except in CONNACK, PUBLISH and DISCONNECT.
func TestProblemInfo(t *testing.T) {
	const text, user = "1f 0001 72", "26 0001 6e 0001 76"
	for name, tt := range map[string]struct{ send, want string }{
		"PUBACK":     {"40 08 0001 10 04 " + text, "e0 01 82"},
		"PUBREC":     {"50 0b 0001 00 07 " + user, "e0 01 82"},
		"PUBREL":     {"62 08 0001 92 04 " + text, "e0 01 82"},
		"PUBCOMP":    {"70 08 0001 92 04 " + text, "e0 01 82"},
		"SUBACK":     {"90 08 0001 04 " + text + " 00", "e0 01 82"},
		"UNSUBACK":   {"b0 0b 0001 07 " + user + " 00", "e0 01 82"},
		"PUBLISH":    {"32 0d 0001 61 0001 07 " + user, "40 02 0001"},
		"DISCONNECT": {"e0 06 00 04 " + text, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, asked := range []byte{0, 1} {
				c, peer := start(t, Config{Version: packet.V5, CleanStart: true, Properties: packet.Properties{RequestProblemInfo: &asked}}, connack5)
				peer.Send(tt.send)
				switch {
				case name == "DISCONNECT":
					<-c.Done()
					var de *DisconnectedError
					if !errors.As(c.Err(), &de) || de.Reason != "r" {
						t.Errorf("got %v", c.Err())
					}
				case asked == 0 || name == "PUBLISH":
					peer.Expect(tt.want)
				default:
					alive(t, peer)
				}
			}
		})
	}
}

// alive checks that the client still acknowledges messages.
func alive(t *testing.T, peer *mqtttest.Peer) {
	t.Helper()
	peer.Send("32 08 0001 61 0063 00 6869")
	for {
		if f := peer.Next(); f.Type() == packet.PUBACK {
			return
		} else if f.Type() == packet.DISCONNECT {
			t.Fatal("the client has gone")
		}
	}
}

// TestDisconnectExpiry: DISCONNECT cannot set a Session Expiry Interval if that of
// CONNECT was 0. [MQTT5 3.14.2.2.2]
func TestDisconnectExpiry(t *testing.T) {
	later := packet.Disconnect{Properties: packet.Properties{SessionExpiry: new(uint32(9))}}
	c, _ := start(t, Config{Version: packet.V5, CleanStart: true}, connack5)
	var limit *LimitError
	if err := c.DisconnectWith(t.Context(), later); !errors.As(err, &limit) || c.Err() != nil {
		t.Errorf("got %v, connection %v", err, c.Err())
	}
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true, Properties: packet.Properties{SessionExpiry: new(uint32(5))}}, connack5)
	go c.DisconnectWith(t.Context(), later)
	peer.Expect("e0 07 00 05 1100000009")
	peer.ExpectEnd()
	// [MQTT-3.14.4-3] With 0x04 the broker publishes the will.
	c, peer = start(t, Config{Version: packet.V5, CleanStart: true}, connack5)
	go c.Disconnect(t.Context(), packet.ReasonDisconnectWithWill)
	peer.Expect("e0 01 04")
	peer.ExpectEnd()
}

// TestMQTT31: the differences of 3.1: protocol name and level, short client identifiers,
// and a SUBACK without error codes.
func TestMQTT31(t *testing.T) {
	_, err := Connect(t.Context(), Config{Version: packet.V31, ClientID: strings.Repeat("x", 24)})
	if err == nil || !strings.Contains(err.Error(), "24 characters; MQTT 3.1 allows 23") {
		t.Errorf("got %v", err)
	}
	c, peer := start(t, Config{Version: packet.V31, ClientID: strings.Repeat("x", 23), CleanStart: true}, connack311)
	if got := c.ClientID(); len(got) != 23 {
		t.Errorf("client identifier %q", got)
	}
	go func() {
		peer.Expect("82 06 0001 0001 62 01")
		peer.Send("90 03 0001 80")
	}()
	codes, err := c.Subscribe(t.Context(), []packet.Subscription{{Filter: "b", QoS: 1}}, packet.Properties{})
	if err != nil || len(codes) != 1 || codes[0] != 0 {
		t.Errorf("got %v %v, want QoS 0 granted", codes, err)
	}
}

// TestConnectName: CONNECT has the protocol name and level of each version.
func TestConnectName(t *testing.T) {
	for v, want := range map[packet.Version]string{
		packet.V31:  "10 0f 0006 4d5149736470 03 02 0000 0001 63",
		packet.V311: "10 0d 0004 4d515454 04 02 0000 0001 63",
		packet.V5:   "10 0e 0004 4d515454 05 02 0000 00 0001 63",
	} {
		cfg := Config{Version: v, ClientID: "c", CleanStart: true}
		got, err := cfg.connectPacket()
		if err != nil || string(got) != string(mqtttest.Hex(t, want)) {
			t.Errorf("%s: % x, %v", v, got, err)
		}
	}
}

// TestConnectProperties: the properties of CONNECT and of its will are sent in order.
func TestConnectProperties(t *testing.T) {
	cfg := Config{
		Version: packet.V5, ClientID: "c", CleanStart: true,
		Properties: packet.Properties{RequestProblemInfo: new(byte(0)), RequestResponseInfo: new(byte(1)), UserProperties: []packet.UserProperty{{Name: "n", Value: "v"}}},
		Will:       &packet.Will{Topic: "w", Payload: []byte("x"), QoS: 1, Properties: packet.Properties{WillDelay: new(uint32(5)), MessageExpiry: new(uint32(9))}},
	}
	b, err := cfg.connectPacket()
	if err != nil {
		t.Fatal(err)
	}
	var got packet.Connect
	if err := got.Decode(packet.Frame{First: b[0], Body: b[2:]}); err != nil {
		t.Fatal(err)
	}
	want := packet.Connect{Version: packet.V5, ClientID: "c", CleanStart: true, Properties: cfg.Properties, Will: cfg.Will}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// Flags: will QoS 1, will, clean start; then 17 00, 19 01, and the will's 18.
	for _, part := range []string{"04 4d515454 05 0e 0000", "17 00", "19 01", "18 00000005"} {
		if !bytes.Contains(b, mqtttest.Hex(t, part)) {
			t.Errorf("% x lacks %s", b, part)
		}
	}
}
