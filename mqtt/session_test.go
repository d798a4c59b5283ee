package mqtt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

const (
	resumed311 = "20 02 01 00"
	resumed5   = "20 03 01 00 00"
)

// publish appends n messages "a" of a QoS with the stamps first, first+1, ...
func publish(t *testing.T, c *Client, qos byte, n int, first int64) {
	t.Helper()
	tmpl, err := c.Template(&packet.Publish{QoS: qos, PacketID: uint16(min(qos, 1)), Topic: []byte("a"), Payload: []byte("hi")})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if k, err := c.PublishN(tmpl, 1, first+int64(i), nil); k != 1 || err != nil {
			t.Fatalf("message %d: sent %d, %v", i, k, err)
		}
	}
	_ = c.Flush()
}

// cut ends a connection and waits until the client has noticed. The client handles
// what the peer has sent first: a pipe's write returns when it has been read.
func cut(c *Client, peer *mqtttest.Peer) {
	peer.Close()
	<-c.Done()
}

// TestResume: messages in flight are resent in order, with DUP and their ids, or as
// PUBREL after a PUBREC. New messages follow, with new ids.
func TestResume(t *testing.T) {
	for _, v := range []packet.Version{packet.V31, packet.V311, packet.V5} {
		t.Run(v.String(), func(t *testing.T) {
			r := newRecorder()
			cfg := Config{Version: v, ClientID: "c", Handler: r, Session: NewSession()}
			props, fresh, again := "", connack311, resumed311
			switch v {
			case packet.V5:
				props, fresh, again = "00", connack5, resumed5
			case packet.V31:
				again = connack311 // which has no Session Present
			}
			p := func(first, id string) string {
				size := 7 + len(props)/2
				return fmt.Sprintf("%s %02x 0001 61 %s %s 6869", first, size, id, props)
			}
			c, peer := start(t, cfg, fresh)
			publish(t, c, 1, 2, 100)
			publish(t, c, 2, 2, 102)
			for i, first := range []string{"32", "32", "34", "34"} {
				peer.Expect(p(first, fmt.Sprintf("%04x", i+1)))
			}
			peer.Send("50 02 0003")
			peer.Expect("62 02 0003")
			cut(c, peer)

			c, peer = start(t, cfg, again)
			if got := c.Resumed(); got.Resent != 4 || len(got.Dropped) != 0 {
				t.Errorf("resumed %+v", got)
			}
			publish(t, c, 1, 1, 104)
			// [MQTT-4.6.0-1, MQTT-3.3.1-1, MQTT-4.3.3-6]
			for _, want := range []string{p("3a", "0001"), p("3a", "0002"), p("3c", "0004"), "62 02 0003", p("32", "0005")} {
				peer.Expect(want)
			}
			peer.Send("40 02 0001  40 02 0002  70 02 0003  40 02 0005  50 02 0004")
			peer.Expect("62 02 0004")
			peer.Send("70 02 0004")
			cut(c, peer)
			if n := cfg.Session.InFlight(); n != 0 {
				t.Errorf("%d messages in flight, want none", n)
			}
			var stamps []int64
			for _, a := range r.acks {
				if a.Done {
					stamps = append(stamps, a.Stamp)
				}
			}
			if want := []int64{100, 101, 102, 104, 103}; !slices.Equal(stamps, want) {
				t.Errorf("acknowledged %v, want %v", stamps, want)
			}
		})
	}
}

// TestSessionLost: if the broker has no session, nothing is resent, ids and window start
// anew, and the caller learns which messages were dropped. [MQTT-3.2.2-5],
// [MQTT-3.1.2-6] of 3.1.1
func TestSessionLost(t *testing.T) {
	for _, tt := range []struct {
		v     packet.Version
		clean bool
		first string // of a PUBLISH, up to its identifier
		rest  string
	}{
		{packet.V5, false, "32 08 0001 61", "00 6869"},
		{packet.V5, true, "32 08 0001 61", "00 6869"},
		{packet.V311, false, "32 07 0001 61", "6869"},
		{packet.V311, true, "32 07 0001 61", "6869"},
		{packet.V31, true, "32 07 0001 61", "6869"},
	} {
		cfg := Config{Version: tt.v, ClientID: "c", CleanStart: tt.clean, Inflight: 3, Session: NewSession()}
		c, peer := start(t, cfg, connackOf(tt.v))
		publish(t, c, 1, 3, 7)
		for range 3 {
			peer.ExpectType(packet.PUBLISH)
		}
		// All but the second are acknowledged: case "collision".
		peer.Send("40 02 0001  40 02 0003")
		cut(c, peer)
		c, peer = start(t, cfg, connackOf(tt.v))
		if got := c.Resumed(); got.Present || got.Resent != 0 || !slices.Equal(got.Dropped, []int64{8}) {
			t.Errorf("%s, clean %v: %+v", tt.v, tt.clean, got)
		}
		publish(t, c, 1, 3, 10)
		for i := range 3 {
			peer.Expect(fmt.Sprintf("%s %04x %s", tt.first, i+1, tt.rest))
		}
		cut(c, peer)
	}
}

// TestSessionUnknown: [MQTT-3.2.2-4] Session Present is an error if the Session of this
// client is new.
func TestSessionUnknown(t *testing.T) {
	peer, nc := mqtttest.Pipe(t, packet.V5)
	s := NewSession()
	cfg := Config{Version: packet.V5, ClientID: "c", Session: s, Dial: func(context.Context) (net.Conn, error) { return nc, nil }}
	go func() {
		peer.ExpectType(packet.CONNECT)
		peer.Send(resumed5)
		peer.Expect("e0 01 82")
		peer.ExpectEnd()
	}()
	_, err := Connect(t.Context(), cfg)
	var pe *ProtocolError
	if !errors.As(err, &pe) {
		t.Errorf("got %v", err)
	}
	// The Session can be used again, and 3.1.1 has no such rule.
	c, _ := start(t, Config{Version: packet.V311, ClientID: "c", Session: s}, resumed311)
	if !c.Resumed().Present {
		t.Error("session not present")
	}
	if _, err := Connect(t.Context(), Config{Version: packet.V311, ClientID: "c", Session: s}); !errors.Is(err, ErrSessionInUse) {
		t.Errorf("a second connection: %v", err)
	}
}

// TestSessionNone: [MQTT-3.2.2-4] Session Present is an error for a client without a
// Session, but not in 3.1.1; 3.1 does not use that bit.
func TestSessionNone(t *testing.T) {
	peer, nc := mqtttest.Pipe(t, packet.V5)
	go func() {
		peer.ExpectType(packet.CONNECT)
		peer.Send(resumed5)
		peer.Expect("e0 01 82")
		peer.ExpectEnd()
	}()
	_, err := Connect(t.Context(), Config{Version: packet.V5, ClientID: "c", Dial: func(context.Context) (net.Conn, error) { return nc, nil }})
	var pe *ProtocolError
	if !errors.As(err, &pe) {
		t.Errorf("got %v", err)
	}
	c, _ := start(t, Config{Version: packet.V311, ClientID: "c"}, resumed311)
	if !c.Resumed().Present {
		t.Error("3.1.1: session not present")
	}
	c, _ = start(t, Config{Version: packet.V31, ClientID: "c", CleanStart: true}, resumed311)
	if c.Resumed().Present {
		t.Error("3.1: session present")
	}
}

// TestResumeQuota: resent messages stay within the Receive Maximum of the new CONNACK,
// and no new message overtakes them.
func TestResumeQuota(t *testing.T) {
	r := newRecorder()
	cfg := Config{Version: packet.V5, ClientID: "c", Inflight: 5, Session: NewSession(), Handler: r}
	c, peer := start(t, cfg, connack5)
	publish(t, c, 1, 5, 0)
	for range 5 {
		peer.ExpectType(packet.PUBLISH)
	}
	cut(c, peer)
	c, peer = start(t, cfg, "20 06 01 00 03 21 0002") // Receive Maximum 2
	tmpl, err := c.Template(&packet.Publish{QoS: 1, PacketID: 1, Topic: []byte("a")})
	if err != nil {
		t.Fatal(err)
	}
	dup := func(id int) string { return fmt.Sprintf("3a 08 0001 61 %04x 00 6869", id) }
	peer.Expect(dup(1))
	peer.Expect(dup(2))
	for id := 1; id <= 4; id++ {
		out := c.conn.Begin()
		left := len(c.session.pending)
		c.conn.End(out)
		if want := max(0, 4-id); left != want {
			t.Errorf("%d wait for their turn before %d acks, want %d", left, id, want)
		}
		if n, err := c.PublishN(tmpl, 1, 0, nil); n != 0 || err != nil {
			t.Fatalf("%d new messages before %d acks, %v", n, id, err)
		}
		peer.Send(fmt.Sprintf("40 02 %04x", id))
		<-r.end
		if id < 4 {
			peer.Expect(dup(id + 2))
		}
	}
	if n, _ := c.PublishN(tmpl, 9, 0, nil); n != 1 {
		t.Errorf("%d new messages, want 1", n)
	}
	cut(c, peer)
	// With a larger window all messages are resent at once.
	c, peer = start(t, cfg, resumed5)
	peer.Expect(dup(5))
	peer.Expect("3a 06 0001 61 0006 00")
	if n, _ := c.PublishN(tmpl, 9, 0, nil); n != 3 {
		t.Errorf("%d new messages, want 3", n)
	}
}

// TestResumeLarge: messages larger than the out buffer in total are resent without
// waiting for an acknowledgement.
func TestResumeLarge(t *testing.T) {
	cfg := Config{Version: packet.V311, ClientID: "c", Session: NewSession()}
	c, peer := start(t, cfg, connack311)
	const n, size = 100, 8192
	read := func(first byte) {
		for i := range n {
			f := peer.ExpectType(packet.PUBLISH)
			var p packet.Publish
			if err := p.Decode(f, packet.V311); err != nil {
				t.Fatal(err)
			}
			if f.First != first || int(p.PacketID) != i+1 || len(p.Payload) != size || p.Payload[0] != byte(i) {
				t.Fatalf("message %d: first byte %x, id %d, payload %d of %d B", i, f.First, p.PacketID, p.Payload[0], len(p.Payload))
			}
		}
	}
	done := make(chan struct{})
	go func() { defer close(done); read(0x32) }()
	tmpl, err := c.Template(&packet.Publish{QoS: 1, PacketID: 1, Topic: []byte("a"), Payload: make([]byte, size)})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < n; {
		k, err := c.PublishN(tmpl, 1, 0, func(p []byte) { p[0] = byte(i) })
		if err != nil {
			t.Fatal(err)
		}
		if i += k; k == 0 {
			_ = c.Flush()
			_ = c.conn.WaitRoom()
		}
	}
	_ = c.Flush()
	<-done
	cut(c, peer)
	_, peer = start(t, cfg, resumed311)
	read(0x3a)
}

// TestNoResendWhileConnected: [MQTT-4.4.0-1] in a minute without PUBACK the client sends
// only PINGREQ. The next connection resends the message, with DUP.
// (eclipse-paho/paho.mqtt.golang#511, emqx/emqtt-bench#224)
func TestNoResendWhileConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Version: packet.V311, ClientID: "c", KeepAlive: 10 * time.Second, Session: NewSession()}
		c, peer := start(t, cfg, connack311)
		publish(t, c, 1, 1, 0)
		peer.Expect("32 07 0001 61 0001 6869")
		for began := time.Now(); time.Since(began) < time.Minute; {
			peer.Expect("c0 00")
			peer.Send("d0 00")
		}
		cut(c, peer)
		c, peer = start(t, cfg, resumed311)
		peer.Expect("3a 07 0001 61 0001 6869")
		cut(c, peer)
	})
}

// TestResumeInbound: an inbound QoS 2 message without PUBREL is the same message after
// the reconnection. A PUBREL with an unknown id is answered too.
func TestResumeInbound(t *testing.T) {
	r := newRecorder()
	cfg := Config{Version: packet.V5, ClientID: "c", Session: NewSession(), Handler: r, Properties: packet.Properties{ReceiveMaximum: new(uint16(1))}}
	c, peer := start(t, cfg, connack5)
	peer.Send("34 08 0001 61 0007 00 6831")
	peer.Expect("50 02 0007")
	cut(c, peer)
	c, peer = start(t, cfg, resumed5)
	peer.Send("3c 08 0001 61 0007 00 6831")
	peer.Expect("50 02 0007")
	// The broker's quota does not count messages of the earlier connection. [MQTT5 4.9]
	peer.Send("34 08 0001 61 0008 00 6832")
	peer.Expect("50 02 0008")
	peer.Send("62 02 0007")
	peer.Expect("70 02 0007")
	// [MQTT-4.3.3-11]
	peer.Send("62 02 0063")
	peer.Expect("70 03 0063 92")
	cut(c, peer)
	// Without a session it is a new message.
	c, peer = start(t, cfg, connack5)
	peer.Send("34 08 0001 61 0008 00 6833")
	peer.Expect("50 02 0008")
	cut(c, peer)
	if want := []string{"a=h1", "a=h2", "a=h3"}; !slices.Equal(r.messages, want) {
		t.Errorf("messages %q, want %q", r.messages, want)
	}
}

// TestSessionIDs: after a reconnection the id of an unanswered SUBSCRIBE is free again,
// but no new message gets the id of a message in flight.
func TestSessionIDs(t *testing.T) {
	cfg := Config{Version: packet.V311, ClientID: "c", Session: NewSession()}
	c, peer := start(t, cfg, connack311)
	publish(t, c, 1, 1, 0)
	peer.ExpectType(packet.PUBLISH)
	failed := make(chan error)
	go func() {
		_, err := c.Subscribe(t.Context(), []packet.Subscription{{Filter: "x"}}, packet.Properties{})
		failed <- err
	}()
	peer.Expect("82 06 0002 0001 78 00") // [MQTT-2.3.1-2] of 3.1.1
	cut(c, peer)
	if err := <-failed; err == nil {
		t.Error("the SUBSCRIBE was answered")
	}
	if _, err := c.PublishN(mustTemplate(t, c), 1, 0, nil); err == nil {
		t.Error("published on a connection that has ended")
	}
	c, peer = start(t, cfg, resumed311)
	if c.win.ids.Used() != 1 || cfg.Session.InFlight() != 1 {
		t.Errorf("%d ids taken, %d in flight, want 1 and 1", c.win.ids.Used(), cfg.Session.InFlight())
	}
	for id := uint16(0); id != 65534; {
		id = c.win.reserve(idPublish1, 0)
		c.win.free(c.win.find(id))
	}
	publish(t, c, 1, 2, 0)
	for _, want := range []string{"3a 07 0001 61 0001 6869", "32 07 0001 61 ffff 6869", "32 07 0001 61 0002 6869"} {
		peer.Expect(want)
	}
}

func mustTemplate(t *testing.T, c *Client) *packet.Template {
	t.Helper()
	tmpl, err := c.Template(&packet.Publish{Topic: []byte("a")})
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}
