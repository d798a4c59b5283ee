package broker

import (
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestProtocolErrors sends packets that no client may send. MQTT 5 clients get the
// reason in DISCONNECT, 3.x connections are just closed, and the broker continues.
func TestProtocolErrors(t *testing.T) {
	one := byte(1)
	b := startBroker(t, Config{
		MaximumQoS: &one, RetainUnavailable: true, TopicAliasMaximum: 4,
		MaxPacketSize: 1000, ReceiveMaximum: 3,
	})
	addr := listen(t, b)
	for _, tc := range []struct {
		name string
		v    packet.Version
		send string
		code packet.ReasonCode
	}{
		{"SUBSCRIBE without options byte", packet.V5, "82 06 00 01 00 00 01 61", packet.ReasonMalformedPacket},
		{"SUBSCRIBE without options byte", packet.V311, "82 05 00 01 00 01 61", 0},
		{"second CONNECT", packet.V5, "10 0e 0004 4d515454 05 02 0000 00 0001 78", packet.ReasonProtocolError},
		{"second CONNECT", packet.V311, "10 0d 0004 4d515454 04 02 0000 0001 78", 0},
		{"AUTH", packet.V5, "f0 00", packet.ReasonProtocolError},
		{"CONNACK from a client", packet.V5, "20 03 00 00 00", packet.ReasonProtocolError},
		{"SUBACK from a client", packet.V311, "90 03 00 01 00", 0},
		{"reserved type", packet.V5, "00 00", packet.ReasonMalformedPacket},
		{"reserved flags", packet.V5, "c1 00", packet.ReasonMalformedPacket},
		{"remaining length of five bytes", packet.V5, "30 80 80 80 80 01", packet.ReasonMalformedPacket},
		{"packet too large", packet.V5, "30 f0 07", packet.ReasonPacketTooLarge},
		{"packet too large", packet.V311, "30 f0 07", 0},
		{"QoS above the maximum", packet.V5, "34 06 0001 61 0001 00", packet.ReasonQoSNotSupported},
		{"QoS above the maximum", packet.V311, "34 05 0001 61 0001", 0},
		{"retained publication", packet.V5, "31 04 0001 61 00", packet.ReasonRetainNotSupported},
		{"topic alias above the maximum", packet.V5, "30 07 0001 61 03 230005", packet.ReasonTopicAliasInvalid},
		{"topic alias not set", packet.V5, "30 06 0000 03 230001", packet.ReasonTopicAliasInvalid},
		{"topic with wildcard", packet.V5, "30 04 0001 23 00", packet.ReasonMalformedPacket},
		{"topic with control character", packet.V5, "30 04 0001 01 00", packet.ReasonMalformedPacket},
		{"filter with control character", packet.V311, "82 06 0001 0001 7f 00", 0},
		{"subscription identifier from a client", packet.V5, "30 06 0001 61 02 0b01", packet.ReasonProtocolError},
		{"session expiry set late", packet.V5, "e0 07 00 05 11 00000001", packet.ReasonProtocolError},
		{"PUBACK with flags", packet.V5, "42 02 0001", packet.ReasonMalformedPacket},
		{"PUBREL without flags", packet.V311, "60 02 0001", 0},
		{"PUBREL with DUP", packet.V311, "6a 02 0001", 0},
		{"PUBREL with DUP", packet.V5, "6a 02 0001", packet.ReasonMalformedPacket},
		{"SUBSCRIBE with DUP", packet.V311, "8a 06 0001 0001 61 00", 0},
		{"PUBACK of identifier 0", packet.V5, "40 02 0000", packet.ReasonProtocolError},
		{"packet identifier 0", packet.V5, "32 06 0001 61 0000 00", packet.ReasonProtocolError},
		{"shared subscription with No Local", packet.V5, "82 10 0001 00 000a 24736861 72652f672f61 04", packet.ReasonProtocolError},
	} {
		t.Run(tc.v.String()+"/"+tc.name, func(t *testing.T) {
			c := connect(t, addr, clean(tc.v, "x"))
			c.raw(tc.send)
			c.wantClosed(tc.code)
			again := connect(t, addr, clean(tc.v, "y"))
			again.sync()
		})
	}
}

// TestReceiveMaximum: the client may send as many as announced before it has
// seen an acknowledgement, QoS 2 until PUBCOMP, and no more.
func TestReceiveMaximum(t *testing.T) {
	addr := listen(t, startBroker(t, Config{ReceiveMaximum: 3}))
	c := connect(t, addr, clean(packet.V5, "c"))
	for range 2 {
		for id := uint16(1); id <= 3; id++ {
			c.publish("a", "", 2, id)
			c.wantAck(packet.PUBREC, id, 0)
		}
		c.publish("a", "", 2, 3) // a repetition
		c.wantAck(packet.PUBREC, 3, 0)
		for id := uint16(1); id <= 3; id++ {
			c.sendAck(packet.PUBREL, id)
			c.wantAck(packet.PUBCOMP, id, 0)
		}
	}
	for id := uint16(1); id <= 3; id++ {
		c.publish("a", "", 2, id)
		c.wantAck(packet.PUBREC, id, 0)
	}
	c.publish("a", "", 1, 4)
	c.wantClosed(packet.ReasonReceiveMaximumExceeded)
	// In one batch: the client cannot have seen any acknowledgement.
	c = connect(t, addr, clean(packet.V5, "c"))
	c.raw(strings.Repeat("32 06 0001 61 0001 00", 4))
	for range 3 {
		c.wantAck(packet.PUBACK, 1, 0)
	}
	c.wantClosed(packet.ReasonReceiveMaximumExceeded)
	// 3.1.1 has no Receive Maximum.
	c = connect(t, addr, clean(packet.V311, "c"))
	c.raw(strings.Repeat("32 05 0001 61 0001", 4))
	for range 4 {
		c.wantAck(packet.PUBACK, 1, 0)
	}
}

// TestFirstPacket starts with packets that are not an acceptable CONNECT.
func TestFirstPacket(t *testing.T) {
	addr := listen(t, startBroker(t, Config{MaxClients: 1}))
	for _, tc := range []struct {
		name, send, answer string
	}{
		{"PINGREQ", "c0 00", ""},
		{"PUBLISH", "30 03 0001 61", ""},
		{"version 6", "10 0d 0004 4d515454 06 02 0000 00 0000", "20 03 00 84 00"},
		{"version 2", "10 0c 0004 4d515454 02 02 0000 0000", "20 02 00 01"},
		{"3.1.1, no client identifier and no clean session", "10 0c 0004 4d515454 04 00 0000 0000", "20 02 00 02"},
		{"unknown protocol", "10 0d 0005 4d51545458 04 02 0000 0000", "20 02 00 01"},
		{"reserved flag of 3.1.1", "10 0c 0004 4d515454 04 03 0000 0000", ""},
		{"reserved flag of 5", "10 0d 0004 4d515454 05 03 0000 00 0000", "20 03 00 81 00"},
		{"authentication method", "10 11 0004 4d515454 05 02 0000 04 15000161 0000", "20 03 00 8c 00"},
		{"Maximum Packet Size 2", "10 12 0004 4d515454 05 02 0000 05 2700000002 0000", ""},
		{"client identifier with control character", "10 0e 0004 4d515454 05 02 0000 00 0001 01", "20 03 00 81 00"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := join(t, addr)
			c.raw(tc.send)
			if tc.answer != "" {
				f, err := c.next()
				if err != nil {
					t.Fatal(err)
				}
				got := append([]byte{f.First, byte(len(f.Body))}, f.Body...)
				want := mustHex(t, tc.answer)
				if string(got) != string(want) {
					t.Fatalf("answer % x, want % x", got, want)
				}
			}
			c.wantEOF()
		})
	}
	t.Run("too many clients", func(t *testing.T) {
		first := connect(t, addr, clean(packet.V5, "first"))
		c := join(t, addr)
		if ack := c.connect(clean(packet.V311, "a")); ack.Code != 3 {
			t.Fatalf("return code %d, want 3", ack.Code)
		}
		c.wantEOF()
		c = join(t, addr)
		if ack := c.connect(clean(packet.V5, "b")); ack.Code != packet.ReasonServerBusy {
			t.Fatalf("reason code %v", ack.Code)
		}
		c.wantEOF()
		first.sync()
	})
}

// TestConnack checks what the broker announces: only what differs from the
// defaults, besides the Topic Alias Maximum.
func TestConnack(t *testing.T) {
	t.Run("defaults", func(t *testing.T) {
		addr := listen(t, startBroker(t, Config{}))
		_, ack := connectAck(t, addr, clean(packet.V5, "c"))
		want := packet.Properties{TopicAliasMaximum: ptr(uint16(1024))}
		checkProperties(t, ack.Properties, want)
	})
	t.Run("limits", func(t *testing.T) {
		one := byte(1)
		addr := listen(t, startBroker(t, Config{
			MaximumQoS: &one, RetainUnavailable: true, TopicAliasMaximum: 7, MaxPacketSize: 5000,
			ReceiveMaximum: 9, MaxSessionExpiry: time.Minute,
		}))
		p := clean(packet.V5, "")
		p.Properties.SessionExpiry = ptr(uint32(3600))
		_, ack := connectAck(t, addr, p)
		checkProperties(t, ack.Properties, packet.Properties{
			AssignedClientID: ptr("auto-1"), SessionExpiry: ptr(uint32(60)), ReceiveMaximum: ptr(uint16(9)),
			MaximumQoS: ptr(byte(1)), RetainAvailable: ptr(byte(0)), MaximumPacketSize: ptr(uint32(5000)),
			TopicAliasMaximum: ptr(uint16(7)),
		})
	})
	t.Run("will above the maximum QoS", func(t *testing.T) {
		one := byte(1)
		addr := listen(t, startBroker(t, Config{MaximumQoS: &one}))
		p := clean(packet.V5, "c")
		p.Will = &packet.Will{Topic: "w", QoS: 2}
		c := join(t, addr)
		if ack := c.connect(p); ack.Code != packet.ReasonQoSNotSupported {
			t.Fatalf("reason code %v", ack.Code)
		}
		c.wantEOF()
	})
}

func checkProperties(t *testing.T, got, want packet.Properties) {
	t.Helper()
	g, err := packet.AppendProperties(nil, packet.CONNACK, &got)
	if err != nil {
		t.Fatal(err)
	}
	w, err := packet.AppendProperties(nil, packet.CONNACK, &want)
	if err != nil {
		t.Fatal(err)
	}
	if string(g) != string(w) {
		t.Errorf("properties % x, want % x", g, w)
	}
}

// TestSuback checks the reason codes of SUBACK and UNSUBACK.
func TestSuback(t *testing.T) {
	one := byte(1)
	addr := listen(t, startBroker(t, Config{MaximumQoS: &one}))
	deep := strings.Repeat("a/", maxLevels) + "a"
	for _, tc := range []struct {
		v    packet.Version
		fail packet.ReasonCode
	}{{packet.V311, 0x80}, {packet.V5, packet.ReasonTopicFilterInvalid}} {
		c := connect(t, addr, clean(tc.v, "c"))
		ack := c.subscribe(sub("a", 0), sub("b", 1), sub(deep, 1), sub("c", 2), sub("$share/g/#", 1))
		want := []packet.ReasonCode{0, 1, tc.fail, 1, 1}
		for i := range want {
			if ack.Codes[i] != want[i] {
				t.Errorf("%v: codes %v, want %v", tc.v, ack.Codes, want)
			}
		}
		c.send(&packet.Unsubscribe{PacketID: 9, Filters: []string{"b", "none", "$share/g/#"}})
		var un packet.Unsuback
		c.must(un.Decode(c.frame(packet.UNSUBACK), c.v))
		if un.PacketID != 9 || c.v != packet.V5 && len(un.Codes) > 0 {
			t.Errorf("%v: UNSUBACK %+v", tc.v, un)
		}
		if c.v == packet.V5 && (len(un.Codes) != 3 || un.Codes[0] != 0 ||
			un.Codes[1] != packet.ReasonNoSubscriptionExisted || un.Codes[2] != 0) {
			t.Errorf("codes %v", un.Codes)
		}
		c.publish1("b", "gone")
		c.sync()
	}
}
