package mqtt

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestNothingAfterRefusal: [MQTT-3.2.2-7], [MQTT-3.2.2-5] of 3.1.1: packets after a
// CONNACK with an error are ignored, and the client closes without sending anything.
func TestNothingAfterRefusal(t *testing.T) {
	for v, send := range map[packet.Version]string{
		packet.V31:  "20 02 00 05  32 07 0001 61 0001 6869",
		packet.V311: "20 02 00 05  32 07 0001 61 0001 6869",
		packet.V5:   "20 03 00 87 00  32 08 0001 61 0001 00 6869",
	} {
		r := newRecorder()
		peer, nc := mqtttest.Pipe(t, v)
		done := make(chan struct{})
		go func() {
			defer close(done)
			peer.ExpectType(packet.CONNECT)
			peer.Send(send)
			peer.ExpectEnd()
		}()
		_, err := Connect(t.Context(), Config{Dial: func(context.Context) (net.Conn, error) { return nc, nil }, Version: v, ClientID: "c", Handler: r})
		<-done
		var refused *RefusedError
		if !errors.As(err, &refused) || len(r.messages) != 0 || r.ended {
			t.Errorf("%s: %v, messages %q, ended %v", v, err, r.messages, r.ended)
		}
	}
}

// TestQoS1IsNewAfterPuback: [MQTT-4.3.2-5] after PUBACK the same id is another message,
// DUP or not. [MQTT-4.5.0-2] All are acknowledged.
func TestQoS1IsNewAfterPuback(t *testing.T) {
	r := newRecorder()
	c, peer := start(t, Config{Version: packet.V311, CleanStart: true, Handler: r}, connack311)
	for _, send := range []string{"32 07 0001 61 0007 6831", "32 07 0001 61 0007 6832", "3a 07 0001 61 0007 6832"} {
		peer.Send(send)
		peer.Expect("40 02 0007")
	}
	cut(c, peer)
	if want := []string{"a=h1", "a=h2", "a=h2"}; !slices.Equal(r.messages, want) {
		t.Errorf("messages %q", r.messages)
	}
}

// TestRefusedIsAcknowledged: [MQTT-4.4.0-2] after a PUBACK or PUBREC of 0x80 or more the
// session does not resend the message.
func TestRefusedIsAcknowledged(t *testing.T) {
	cfg := Config{Version: packet.V5, ClientID: "c", Session: NewSession()}
	c, peer := start(t, cfg, connack5)
	publish(t, c, 1, 1, 0)
	publish(t, c, 2, 1, 0)
	peer.ExpectType(packet.PUBLISH)
	peer.ExpectType(packet.PUBLISH)
	peer.Send("40 03 0001 97  50 03 0002 97  32 08 0001 61 0007 00 6869")
	peer.Expect("40 02 0007")
	cut(c, peer)
	c, peer = start(t, cfg, resumed5)
	if got := c.Resumed(); got.Resent != 0 || cfg.Session.InFlight() != 0 {
		t.Errorf("resumed %+v", got)
	}
	peer.Send("32 08 0001 61 0007 00 6869")
	peer.Expect("40 02 0007")
}

// TestByteOrderMark: [MQTT-1.5.4-3] a leading U+FEFF is sent and received unchanged.
func TestByteOrderMark(t *testing.T) {
	r := newRecorder()
	c, peer := start(t, Config{Version: packet.V311, CleanStart: true, Handler: r}, connack311)
	peer.Send("30 08 0004 efbbbf61 6869")
	<-r.end
	tmpl, err := c.Template(&packet.Publish{Topic: []byte("\ufeffa")})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.PublishN(tmpl, 1, 0, nil)
	_ = c.Flush()
	peer.Expect("30 06 0004 efbbbf61")
	cut(c, peer)
	if want := []string{"\ufeffa=hi"}; !slices.Equal(r.messages, want) {
		t.Errorf("messages %q", r.messages)
	}
}

// TestNewIsNotDup: [MQTT-4.3.2-2, MQTT-4.3.3-2]
func TestNewIsNotDup(t *testing.T) {
	c, _ := start(t, Config{Version: packet.V311, CleanStart: true}, connack311)
	var limit *LimitError
	if _, err := c.Template(&packet.Publish{QoS: 1, Dup: true, PacketID: 1, Topic: []byte("a")}); !errors.As(err, &limit) {
		t.Errorf("got %v", err)
	}
}

// TestQuotaDelaysNoPing: [MQTT-3.3.4-8, MQTT-4.9.0-3] an exhausted send quota delays
// neither PINGREQ nor acknowledgements.
func TestQuotaDelaysNoPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := start(t, Config{Version: packet.V311, ClientID: "c", Inflight: 1, KeepAlive: 10 * time.Second}, connack311)
		publish(t, c, 1, 1, 0)
		peer.Expect("32 07 0001 61 0001 6869")
		began := time.Now()
		peer.Expect("c0 00")
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("PINGREQ after %s", d)
		}
		peer.Send("d0 00  34 07 0001 61 0007 6869")
		peer.Expect("50 02 0007")
		if n, err := c.PublishN(mustQoS1(t, c), 1, 0, nil); n != 0 || err != nil {
			t.Errorf("sent %d, %v", n, err)
		}
	})
}

func mustQoS1(t *testing.T, c *Client) *packet.Template {
	t.Helper()
	tmpl, err := c.Template(&packet.Publish{QoS: 1, PacketID: 1, Topic: []byte("a")})
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// TestOurFault: OurFault is true for the codes with which a broker blames the client, and
// false for the others. Every error names its code.
func TestOurFault(t *testing.T) {
	for code, ours := range map[packet.ReasonCode]bool{
		0x81: true, 0x82: true, 0x93: true, 0x94: true, 0x95: true,
		0x00: false, 0x8b: false, 0x8d: false, 0x8e: false, 0x97: false, 0x98: false,
	} {
		c, peer := start(t, Config{Version: packet.V5, CleanStart: true}, connack5)
		p := packet.Disconnect{Code: code}
		b, err := p.Append(nil, packet.V5)
		if err != nil {
			t.Fatal(err)
		}
		peer.SendBytes(b)
		<-c.Done()
		var de *DisconnectedError
		if !errors.As(c.Err(), &de) || de.OurFault() != ours || EndOf(c.Err()) != de.Error() {
			t.Errorf("%s: %v", code, c.Err())
		}
	}
}
