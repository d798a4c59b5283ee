package broker

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestWillIsLocal: [MQTT-3.8.3-3] a client with No Local does not find its own
// will in its session, others do. [MQTT-3.1.2-14] It is not retained.
func TestWillIsLocal(t *testing.T) {
	for _, noLocal := range []bool{true, false} {
		b := startBroker(t, Config{})
		addr := listen(t, b)
		watcher := connect(t, addr, clean(packet.V311, "watcher"))
		watcher.subscribe(sub("will", 1))
		p := kept(packet.V5, "c")
		p.Will = &packet.Will{Topic: "will", Payload: []byte("gone"), QoS: 1}
		c := connect(t, addr, p)
		c.subscribe(packet.Subscription{Filter: "will", QoS: 1, NoLocal: noLocal})
		c.drop(b, "c")
		watcher.sendAck(packet.PUBACK, watcher.wantPublish("will", "gone", 1).PacketID)
		c = connect(t, addr, kept(packet.V5, "c"))
		if !noLocal {
			c.wantPublish("will", "gone", 1)
		}
		c.sync()
		if n := b.Stats().RetainedMessages; n != 0 {
			t.Errorf("%d retained", n)
		}
	}
}

// TestClientIdentifiers: [MQTT-3.1.3-5] 1 to 23 letters and digits are good in
// every version; MQTT 3.1 has no others, and says so with return code 2.
func TestClientIdentifiers(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for _, v := range versions {
		for i := range len(alphabet) - 22 {
			connect(t, addr, clean(v, alphabet[i:i+23])).leave()
			connect(t, addr, clean(v, alphabet[i:i+1])).leave()
		}
		c := join(t, addr)
		ack := c.connect(clean(v, alphabet[:24]))
		switch {
		case v != packet.V31 && ack.Code != packet.ReasonSuccess:
			t.Errorf("%s: %v", v, ack.Code)
		case v == packet.V31 && ack.Code != 2:
			t.Errorf("%s: return code %d for 24 characters", v, ack.Code)
		case v == packet.V31:
			c.wantEOF()
		}
	}
	connect(t, addr, clean(packet.V31, strings.Repeat("é", 23))).leave()
	c := join(t, addr)
	c.raw("10 0e 0006 4d5149736470 03 02 0000 0000")
	if f := c.frame(packet.CONNACK); f.Body[1] != 2 {
		t.Errorf("return code %d for no character", f.Body[1])
	}
	c.wantEOF()
}

// TestSubackOfMQTT31: SUBACK has no failure code, so the answer to a refused filter is
// a QoS. [MQTT31 3.9]
func TestSubackOfMQTT31(t *testing.T) {
	addr := listen(t, startBroker(t, Config{RefusedFilters: []string{"no"}}))
	deep := strings.Repeat("a/", maxLevels) + "a"
	c := connect(t, addr, clean(packet.V31, "c"))
	if got := c.subscribe(sub(deep, 1), sub("b", 2), sub("no", 1)).Codes; got[0] != 1 || got[1] != 2 || got[2] != 1 {
		t.Errorf("codes %v", got)
	}
	c.publish1(deep, "x")
	c.publish1("no", "x")
	c.sync()
}

// TestNobodySubscribed: PUBACK tells an MQTT 5 client. [MQTT5 table 3-4]
func TestNobodySubscribed(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	old := connect(t, addr, clean(packet.V311, "old"))
	c := connect(t, addr, clean(packet.V5, "c"))
	want := func(p *peer, body string) {
		t.Helper()
		p.publish("a", "", 1, 1)
		if f := p.frame(packet.PUBACK); string(f.Body) != body {
			t.Errorf("%s: PUBACK % x, want % x", p.v, f.Body, body)
		}
	}
	want(c, "\x00\x01\x10")
	want(old, "\x00\x01")
	old.subscribe(sub("$share/g/a", 0))
	want(c, "\x00\x01")
	old.wantPublish("a", "", 0)
	old.send(&packet.Unsubscribe{PacketID: 2, Filters: []string{"$share/g/a"}})
	old.frame(packet.UNSUBACK)
	want(c, "\x00\x01\x10")
}

// TestSessionForever: 0xFFFFFFFF does not expire (5, section 3.1.2.11.2), nor does
// a 3.x session that is not clean. [MQTT-3.1.2-4] [MQTT-3.1.2-5] of 3.1.1
func TestSessionForever(t *testing.T) {
	for _, v := range versions {
		virtual(t, Config{}, func(t *testing.T, b *Broker) {
			conn := kept(v, "c")
			if v == packet.V5 {
				conn.Properties.SessionExpiry = ptr(uint32(0xFFFFFFFF))
			}
			c := connectPipe(t, b, conn)
			c.subscribe(sub("a", 1))
			_ = c.nc.Close()
			synctest.Wait()
			time.Sleep(200 * 365 * 24 * time.Hour)
			p := connectPipe(t, b, clean(packet.V311, "p"))
			p.publish1("a", "x")
			c = connectPipe(t, b, conn)
			c.wantPublish("a", "x", 1)
			c.sync()
		})
	}
}

// TestAssignedIdentifier: [MQTT-3.1.3-6] [MQTT-3.1.3-7] [MQTT-3.2.2-16] a client
// without an identifier gets a unique one, and can resume its session with it.
func TestAssignedIdentifier(t *testing.T) {
	b := startBroker(t, Config{})
	addr := listen(t, b)
	connect(t, addr, clean(packet.V311, "auto-1"))
	p := kept(packet.V5, "")
	c, ack := connectAck(t, addr, p)
	id := ack.Properties.AssignedClientID
	if id == nil || *id == "auto-1" || ack.SessionPresent {
		t.Fatalf("%+v", ack)
	}
	c.subscribe(sub("a", 0))
	_, other := connectAck(t, addr, p)
	if o := other.Properties.AssignedClientID; o == nil || *o == *id {
		t.Errorf("%+v", other)
	}
	c.drop(b, *id)
	p.ClientID = *id
	if _, ack = connectAck(t, addr, p); !ack.SessionPresent || ack.Properties.AssignedClientID != nil {
		t.Errorf("%+v", ack)
	}
	// 3.1.1 cannot learn its identifier, but each client has its own.
	connect(t, addr, clean(packet.V311, "")).sync()
	connect(t, addr, clean(packet.V311, "")).sync()
}

// TestSentDoesNotExpire: [MQTT-3.3.2-5] [MQTT-4.3.3-7] what has been sent once is
// sent again, though its Message Expiry Interval has passed.
func TestSentDoesNotExpire(t *testing.T) {
	virtual(t, Config{}, func(t *testing.T, b *Broker) {
		c := connectPipe(t, b, kept(packet.V5, "c"))
		c.subscribe(sub("a", 2))
		p := connectPipe(t, b, clean(packet.V5, "p"))
		for qos := byte(1); qos <= 2; qos++ {
			pub := packet.Publish{Topic: []byte("a"), Payload: []byte{'0' + qos}, QoS: qos, PacketID: 1}
			p.must(pub.SetProperties(&packet.Properties{MessageExpiry: ptr(uint32(10))}))
			go p.send(&pub)
			c.wantPublish("a", string(pub.Payload), qos)
			finishPublish(p, qos, 1)
		}
		_ = c.nc.Close()
		synctest.Wait()
		time.Sleep(time.Minute)
		c = connectPipe(t, b, kept(packet.V5, "c"))
		for qos := byte(1); qos <= 2; qos++ {
			if got := c.wantPublish("a", string('0'+rune(qos)), qos); !got.Dup {
				t.Error("no DUP")
			}
		}
	})
}

// TestAliasesOfOneConnection: [MQTT-3.3.2-7]
func TestAliasesOfOneConnection(t *testing.T) {
	b := startBroker(t, Config{})
	addr := listen(t, b)
	c := connect(t, addr, kept(packet.V5, "c"))
	c.raw("30 07 0001 61 03 230001  30 06 0000 03 230001")
	c.sync()
	c.drop(b, "c")
	c = connect(t, addr, kept(packet.V5, "c"))
	c.raw("30 06 0000 03 230001")
	c.wantClosed(packet.ReasonTopicAliasInvalid)
}

// TestAliasLimit: [MQTT-3.3.2-12] every alias up to the Topic Alias Maximum is taken,
// [MQTT-3.3.2-9] and none above it.
func TestAliasLimit(t *testing.T) {
	addr := listen(t, startBroker(t, Config{TopicAliasMaximum: 3}))
	c, ack := connectAck(t, addr, clean(packet.V5, "c"))
	if m := ack.Properties.TopicAliasMaximum; m == nil || *m != 3 {
		t.Errorf("%+v", ack.Properties)
	}
	c.subscribe(sub("a", 0))
	for alias := 1; alias <= 3; alias++ {
		c.raw(fmt.Sprintf("30 07 0001 61 03 23%04x  30 06 0000 03 23%04x", alias, alias))
		c.wantPublish("a", "", 0)
		c.wantPublish("a", "", 0)
	}
	c.raw("30 07 0001 61 03 230004")
	c.wantClosed(packet.ReasonTopicAliasInvalid)
}

// TestUnsubscribe: [MQTT-3.10.4-2] nothing new comes, [MQTT-3.10.4-3] what has
// been sent is sent to its end; [MQTT-3.10.4-1] filters are compared as they are;
// [MQTT-3.10.4-4] [MQTT-3.10.4-5] there is an answer in any case.
func TestUnsubscribe(t *testing.T) {
	for _, v := range versions {
		b := startBroker(t, Config{})
		addr := listen(t, b)
		c := connect(t, addr, kept(v, "c"))
		c.subscribe(sub("a/+", 1), sub("b", 0))
		p := connect(t, addr, clean(packet.V311, "p"))
		p.publish1("a/b", "started")
		id := c.wantPublish("a/b", "started", 1).PacketID
		c.send(&packet.Unsubscribe{PacketID: 8, Filters: []string{"a/b", "a/#", "B"}})
		c.frame(packet.UNSUBACK)
		p.publish1("a/b", "still")
		c.sendAck(packet.PUBACK, c.wantPublish("a/b", "still", 1).PacketID)
		p.publish("b", "still", 0, 0)
		c.wantPublish("b", "still", 0)
		c.send(&packet.Unsubscribe{PacketID: 9, Filters: []string{"a/+", "b"}})
		if f := c.frame(packet.UNSUBACK); f.Body[1] != 9 {
			t.Errorf("%s: % x", v, f.Body)
		}
		p.publish1("a/b", "new")
		p.publish("b", "new", 0, 0)
		p.sync()
		c.sync()
		c.drop(b, "c")
		c = connect(t, addr, kept(v, "c"))
		if got := c.wantPublish("a/b", "started", 1); !got.Dup || got.PacketID != id {
			t.Errorf("%s: %+v", v, got)
		}
		c.sync()
	}
}

// TestNothingAfter: [MQTT-3.1.4-6] what follows a CONNECT that is refused is not
// taken, nor what follows DISCONNECT [MQTT-3.14.4-1]; [MQTT-3.1.0-2] and nothing
// of a second CONNECT or behind it.
func TestNothingAfter(t *testing.T) {
	for _, tc := range []struct{ name, send string }{
		{"refused in 5", "10 0d 0004 4d515454 05 03 0000 00 0000  30 04 0001 61 00"},
		{"refused in 3.1.1", "10 0c 0004 4d515454 04 00 0000 0000  30 03 0001 61"},
		{"an unknown level", "10 0d 0004 4d515454 07 02 0000 00 0000  30 04 0001 61 00"},
		{"no CONNECT", "30 04 0001 61 00"},
		{"DISCONNECT", "10 0d 0004 4d515454 04 02 0000 0001 78  e0 00  30 03 0001 61"},
		{"DISCONNECT of 5", "10 0e 0004 4d515454 05 02 0000 00 0001 78  e0 00  30 04 0001 61 00"},
		{"CONNECT again", "10 0d 0004 4d515454 04 02 0000 0001 78  10 0d 0004 4d515454 04 02 0000 0001 79  30 03 0001 61"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			addr := listen(t, startBroker(t, Config{}))
			watcher := connect(t, addr, clean(packet.V311, "watcher"))
			watcher.subscribe(sub("#", 0))
			c := join(t, addr)
			c.raw(tc.send)
			for connacks := 0; ; connacks++ {
				f, err := c.next()
				if err != nil {
					break
				}
				// [MQTT-3.2.0-2] [MQTT-3.14.0-1]
				if f.Type() != packet.CONNACK || connacks > 0 {
					t.Errorf("got %s", f.Type())
				}
			}
			watcher.sync()
		})
	}
}

// TestWillOutOfReach: [MQTT-3.2.2-12] [MQTT-3.2.2-13]; 3.1.1 has no return code for
// either, so that the connection is just closed. [MQTT-3.2.2-6] of 3.1.1
func TestWillOutOfReach(t *testing.T) {
	addr := listen(t, startBroker(t, Config{MaximumQoS: new(byte), RetainUnavailable: true}))
	for _, tc := range []struct {
		will packet.Will
		code packet.ReasonCode
	}{
		{packet.Will{Topic: "w", QoS: 1}, packet.ReasonQoSNotSupported},
		{packet.Will{Topic: "w", Retain: true}, packet.ReasonRetainNotSupported},
	} {
		p := clean(packet.V5, "c")
		p.Will = &tc.will
		c := join(t, addr)
		if ack := c.connect(p); ack.Code != tc.code {
			t.Errorf("%v, want %v", ack.Code, tc.code)
		}
		c.wantEOF()
		p.Version = packet.V311
		c = join(t, addr)
		c.write(p.Append(nil))
		c.wantEOF()
	}
}

// TestOversizeQueued: [MQTT-3.1.2-25] what is too large for the connection on
// which it would go out is as good as sent.
func TestOversizeQueued(t *testing.T) {
	b := startBroker(t, Config{})
	addr := listen(t, b)
	c := connect(t, addr, kept(packet.V5, "c"))
	c.subscribe(sub("a", 1))
	c.drop(b, "c")
	p := connect(t, addr, clean(packet.V311, "p"))
	p.publish1("a", strings.Repeat("x", 100))
	p.publish1("a", "small")
	conn := kept(packet.V5, "c")
	conn.Properties.MaximumPacketSize = ptr(uint32(50))
	c = connect(t, addr, conn)
	c.sendAck(packet.PUBACK, c.wantPublish("a", "small", 1).PacketID)
	c.sync()
	b.checkAccounts(t, "c", 0)
}

// TestExpiredAtOnce: [MQTT-4.3.3-13] a message that expires on its way is still
// acknowledged to its end.
func TestExpiredAtOnce(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	p := connect(t, addr, clean(packet.V5, "p"))
	pub := packet.Publish{Topic: []byte("a"), QoS: 2, PacketID: 4}
	p.must(pub.SetProperties(&packet.Properties{MessageExpiry: new(uint32)}))
	p.send(&pub)
	finishPublish(p, 2, 4)
}

// TestReleaseNeedsNoQuota: [MQTT-3.3.4-10] [MQTT-4.9.0-3] with the send quota used
// up PUBREL goes out, and answers to what the client asks.
func TestReleaseNeedsNoQuota(t *testing.T) {
	b := startBroker(t, Config{})
	addr := listen(t, b)
	c := connect(t, addr, kept(packet.V5, "c"))
	c.subscribe(sub("a", 2))
	p := connect(t, addr, clean(packet.V311, "p"))
	p.publish1("a", "first")
	first := c.wantPublish("a", "first", 1).PacketID
	p.publish("a", "second", 2, 2)
	finishPublish(p, 2, 2)
	second := c.wantPublish("a", "second", 2).PacketID
	c.sendAck(packet.PUBREC, second)
	c.wantAck(packet.PUBREL, second, 0)
	c.drop(b, "c")
	conn := kept(packet.V5, "c")
	conn.Properties.ReceiveMaximum = ptr(uint16(1))
	c = connect(t, addr, conn)
	if got := c.wantPublish("a", "first", 1); got.PacketID != first {
		t.Errorf("identifier %d, want %d", got.PacketID, first)
	}
	c.wantAck(packet.PUBREL, second, 0)
	c.sync()
	c.subscribe(sub("b", 1))
}

// TestUnsubackOrder: [MQTT-3.11.3-1]
func TestUnsubackOrder(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	c := connect(t, addr, clean(packet.V5, "c"))
	c.subscribe(sub("a", 0), sub("b", 0))
	c.send(&packet.Unsubscribe{PacketID: 9, Filters: []string{"a", "b", "c", "a"}})
	if f := c.frame(packet.UNSUBACK); string(f.Body) != "\x00\x09\x00\x00\x00\x11\x11" {
		t.Errorf("UNSUBACK % x", f.Body)
	}
}
