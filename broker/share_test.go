package broker

import (
	"fmt"
	"testing"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// member connects p as a member of $share/g/a/#.
func member(t *testing.T, addr string, p packet.Connect) *peer {
	t.Helper()
	c := connect(t, addr, p)
	c.subscribe(sub("$share/g/a/#", 2))
	return c
}

// narrow allows three messages in flight towards p.
func narrow(p packet.Connect) packet.Connect {
	p.Properties.ReceiveMaximum = ptr(uint16(3))
	return p
}

// TestSharedTakeOver: when the session of a member of a shared subscription ends,
// another member gets its unacknowledged QoS 1 messages and those that it was never
// sent. QoS 2 in flight is dropped. [MQTT-4.8.2-5]
func TestSharedTakeOver(t *testing.T) {
	for _, tc := range []struct {
		name string
		conn packet.Connect
		end  func(t *testing.T, b *Broker, addr string, c *peer)
	}{
		{"connection lost", clean(packet.V5, "m"), func(t *testing.T, b *Broker, _ string, c *peer) { c.drop(b, "m") }},
		{"disconnected", clean(packet.V5, "m"), func(_ *testing.T, _ *Broker, _ string, c *peer) { c.leave() }},
		{"clean start", kept(packet.V5, "m"), func(t *testing.T, b *Broker, addr string, c *peer) {
			c.drop(b, "m")
			connect(t, addr, clean(packet.V5, "m"))
		}},
		{"session expiry 0 at the end", kept(packet.V5, "m"), func(_ *testing.T, _ *Broker, _ string, c *peer) {
			c.send(&packet.Disconnect{Properties: packet.Properties{SessionExpiry: new(uint32)}})
			c.wantEOF()
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := startBroker(t, Config{})
			addr := listen(t, b)
			c := member(t, addr, narrow(tc.conn))
			c.subscribe(sub("own", 1))
			p := connect(t, addr, clean(packet.V5, "p"))
			for range 3 { // nobody else's: two make room later, one stays
				p.publish1("own", "own")
				c.wantPublish("own", "own", 1)
			}
			p.publish1("a/1", "sent at 1")
			c.sendAck(packet.PUBACK, 1)
			c.wantPublish("a/1", "sent at 1", 1)
			c.sendAck(packet.PUBACK, 2)
			p.publish("a/2", "sent at 2", 2, 2)
			p.wantAck(packet.PUBREC, 2, 0)
			p.publish1("a/3", "waits at 1")
			p.publish("a/4", "waits at 2", 2, 4)
			p.wantAck(packet.PUBREC, 4, 0)
			c.wantPublish("a/2", "sent at 2", 2)
			p.publish1("own", "own")
			other := member(t, addr, clean(packet.V311, "other"))
			other.sync()
			tc.end(t, b, addr, c)
			got := other.wantPublish("a/1", "sent at 1", 1)
			if got.Dup {
				t.Error("DUP on the first sending to this client")
			}
			other.wantPublish("a/3", "waits at 1", 1)
			other.wantPublish("a/4", "waits at 2", 2)
			other.sync()
			if n := b.Stats().Dropped; n != 0 {
				t.Errorf("%d dropped", n)
			}
		})
	}
}

// TestSharedWaits: as long as the session of a member lives, messages sent to it are
// for this member only. [MQTT-4.8.2-4]
func TestSharedWaits(t *testing.T) {
	b := startBroker(t, Config{})
	addr := listen(t, b)
	c := member(t, addr, narrow(kept(packet.V5, "m")))
	p := connect(t, addr, clean(packet.V5, "p"))
	p.publish1("a/1", "1")
	p.publish("a/2", "2", 2, 2)
	p.wantAck(packet.PUBREC, 2, 0)
	other := member(t, addr, clean(packet.V5, "other"))
	c.drop(b, "m")
	other.sync()
	c = connect(t, addr, kept(packet.V5, "m"))
	for i, qos := range []byte{1, 2} {
		if got := c.wantPublish(fmt.Sprint("a/", i+1), fmt.Sprint(i+1), qos); !got.Dup {
			t.Error("no DUP on the second sending")
		}
	}
	other.sync()
}

// TestSharedRefused: a message that a member refuses is discarded. [MQTT-4.8.2-6]
func TestSharedRefused(t *testing.T) {
	b := startBroker(t, Config{})
	addr := listen(t, b)
	c := member(t, addr, clean(packet.V5, "m"))
	p := connect(t, addr, clean(packet.V5, "p"))
	p.publish1("a/1", "1")
	p.publish("a/2", "2", 2, 2)
	p.wantAck(packet.PUBREC, 2, 0)
	other := member(t, addr, clean(packet.V5, "other"))
	c.send(&packet.Ack{Type: packet.PUBACK, PacketID: c.wantPublish("a/1", "1", 1).PacketID, Code: packet.ReasonQuotaExceeded})
	c.send(&packet.Ack{Type: packet.PUBREC, PacketID: c.wantPublish("a/2", "2", 2).PacketID, Code: packet.ReasonQuotaExceeded})
	c.sync()
	c.leave()
	other.sync()
}

// TestSharedLast: when the last member leaves, its messages are dropped.
func TestSharedLast(t *testing.T) {
	b := startBroker(t, Config{})
	addr := listen(t, b)
	c := member(t, addr, clean(packet.V5, "m"))
	p := connect(t, addr, clean(packet.V5, "p"))
	p.publish1("a/1", "1")
	c.wantPublish("a/1", "1", 1)
	c.leave()
	late := member(t, addr, clean(packet.V5, "late"))
	late.sync()
}

// TestQuotaOfResumedSession: messages of a connection before do not count
// against the Receive Maximum of this one. [MQTT5 3.1.2.11.3]
func TestQuotaOfResumedSession(t *testing.T) {
	b := startBroker(t, Config{ReceiveMaximum: 2})
	addr := listen(t, b)
	c := connect(t, addr, kept(packet.V5, "c"))
	publish := func(ids ...uint16) {
		t.Helper()
		for _, id := range ids {
			c.publish("a", "", 2, id)
			c.wantAck(packet.PUBREC, id, 0)
		}
	}
	publish(1, 2)
	c.drop(b, "c")
	c = connect(t, addr, kept(packet.V5, "c"))
	publish(3, 4)
	for _, id := range []uint16{1, 2, 3} {
		c.sendAck(packet.PUBREL, id)
		c.wantAck(packet.PUBCOMP, id, 0)
	}
	publish(5) // 3 has gone, and 1 and 2 were none of these
	c.publish("a", "", 2, 6)
	c.wantClosed(packet.ReasonReceiveMaximumExceeded)
}

// TestFarewell: only DISCONNECT with Normal disconnection takes the will away
// [MQTT-3.14.4-3], and a DISCONNECT that may not set a session expiry does not.
func TestFarewell(t *testing.T) {
	for _, tc := range []struct {
		name   string
		bye    packet.Disconnect
		closed packet.ReasonCode // told by the broker
		will   bool
	}{
		{"normal", packet.Disconnect{}, 0, false},
		{"with will", packet.Disconnect{Code: packet.ReasonDisconnectWithWill}, 0, true},
		{"an error of the client", packet.Disconnect{Code: packet.ReasonUnspecifiedError}, 0, true},
		{"session expiry out of nothing", packet.Disconnect{Properties: packet.Properties{SessionExpiry: ptr(uint32(60))}}, packet.ReasonProtocolError, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := startBroker(t, Config{})
			addr := listen(t, b)
			watcher := connect(t, addr, clean(packet.V5, "watcher"))
			watcher.subscribe(sub("will", 0))
			p := clean(packet.V5, "c")
			p.Will = &packet.Will{Topic: "will", Payload: []byte("gone")}
			c := connect(t, addr, p)
			c.send(&tc.bye)
			if tc.closed != 0 {
				c.wantClosed(tc.closed)
			} else {
				c.wantEOF()
			}
			b.waitOffline(t, "c")
			if tc.will {
				watcher.wantPublish("will", "gone", 0)
			}
			watcher.sync()
			p.CleanStart = false
			if _, ack := connectAck(t, addr, p); ack.SessionPresent {
				t.Error("the session has outlived its expiry interval of 0")
			}
		})
	}
}
