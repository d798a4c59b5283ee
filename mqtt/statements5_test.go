package mqtt

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestTopicAliasLimit: [MQTT-3.1.2-26, MQTT-3.2.2-17] each side's Topic Alias Maximum is
// the largest alias that the other may use.
func TestTopicAliasLimit(t *testing.T) {
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true, Properties: packet.Properties{TopicAliasMaximum: new(uint16(2))}}, twoAliases)
	for alias, ok := range map[byte]bool{1: true, 2: true, 3: false} {
		_, err := c.Template(&packet.Publish{Topic: []byte("a"), RawProperties: []byte{0x23, 0, alias}})
		var limit *LimitError
		if errors.As(err, &limit) == ok || (err == nil) != ok {
			t.Errorf("alias %d: %v", alias, err)
		}
	}
	peer.Send("32 0b 0001 61 0001 03 230002 6869")
	peer.Expect("40 02 0001")
	peer.Send("32 0b 0001 61 0002 03 230003 6869")
	peer.Expect("e0 01 94")
	peer.ExpectEnd()
}

// TestPublishWaits: [MQTT-3.3.4-7] Publish does not exceed the quota either.
func TestPublishWaits(t *testing.T) {
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true}, "20 06 00 00 03 210001")
	publish(t, c, 1, 1, 0)
	peer.ExpectType(packet.PUBLISH)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Publish(ctx, &packet.Publish{QoS: 1, PacketID: 1, Topic: []byte("a")})
	if !errors.Is(err, ErrWindowFull) {
		t.Errorf("got %v", err)
	}
}

// TestReceiveMaximumIn: [MQTT-3.3.4-9] a broker that exceeds the Receive Maximum gets a
// DISCONNECT with that reason. [MQTT5 4.9]
func TestReceiveMaximumIn(t *testing.T) {
	r := newRecorder()
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true, Handler: r, Properties: packet.Properties{ReceiveMaximum: new(uint16(2))}}, connack5)
	peer.Send("34 08 0001 61 0007 00 6831  34 08 0001 61 0008 00 6832")
	peer.Expect("50 02 0007")
	peer.Expect("50 02 0008")
	peer.Send("34 08 0001 61 0009 00 6833")
	peer.Expect("e0 01 93")
	peer.ExpectEnd()
	<-c.Done()
	if got := strings.Join(r.messages, " "); got != "a=h1 a=h2" {
		t.Errorf("messages %q", got)
	}
}

// TestSubacks: [MQTT-2.2.1-6] an answer belongs to the request with its id,
// whichever comes first; [MQTT-3.9.3-1] its codes to the filters in their order.
func TestSubacks(t *testing.T) {
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true}, connack5)
	type outcome struct {
		codes []packet.ReasonCode
		err   error
	}
	subscribe := func(filters ...string) chan outcome {
		ch := make(chan outcome, 1)
		var subs []packet.Subscription
		for _, f := range filters {
			subs = append(subs, packet.Subscription{Filter: f, QoS: 2})
		}
		go func() {
			codes, err := c.Subscribe(t.Context(), subs, packet.Properties{})
			ch <- outcome{codes, err}
		}()
		return ch
	}
	first := subscribe("a", "b", "c")
	peer.Expect("82 0f 0001 00 0001 61 02 0001 62 02 0001 63 02")
	second := subscribe("d")
	peer.Expect("82 07 0002 00 0001 64 02")
	peer.Send("90 04 0002 00 01  90 06 0001 00 02 87 00")
	if got := <-second; got.err != nil || string(bytesOf(got.codes)) != "\x01" {
		t.Errorf("the second: %v, %v", got.codes, got.err)
	}
	var refused *SubscribeError
	if got := <-first; !errors.As(got.err, &refused) || refused.Filter != "b" || string(bytesOf(got.codes)) != "\x02\x87\x00" {
		t.Errorf("the first: %v, %v", got.codes, got.err)
	}
	third := subscribe("e", "f")
	peer.ExpectType(packet.SUBSCRIBE)
	peer.Send("90 04 0003 00 01")
	peer.Expect("e0 01 82")
	peer.ExpectEnd()
	var pe *ProtocolError
	if got := <-third; !errors.As(got.err, &pe) {
		t.Errorf("one code for two filters: %v", got.err)
	}
}

func bytesOf(codes []packet.ReasonCode) (b []byte) {
	for _, c := range codes {
		b = append(b, byte(c))
	}
	return b
}

// TestPubrelInOrder: [MQTT-4.6.0-4] PUBREL follows the order of the PUBRECs,
// with their ids. [MQTT-4.3.3-4]
func TestPubrelInOrder(t *testing.T) {
	c, peer := start(t, Config{Version: packet.V311, CleanStart: true}, connack311)
	publish(t, c, 2, 3, 0)
	for range 3 {
		peer.ExpectType(packet.PUBLISH)
	}
	peer.Send("50 02 0002  50 02 0003  50 02 0001")
	for _, want := range []string{"62 02 0002", "62 02 0003", "62 02 0001"} {
		peer.Expect(want)
	}
}

// leaver disconnects while a batch is handled, so that the batch's acknowledgements come
// too late.
type leaver struct {
	NopHandler
	c *Client
}

func (l *leaver) Message(*packet.Publish) {
	out := l.c.conn.Begin()
	l.c.closing = true
	l.c.conn.End(append(out, 0xe0, 0))
}

// TestNothingAfterDisconnect: [MQTT-3.14.4-1] not even acknowledgements follow
// DISCONNECT.
func TestNothingAfterDisconnect(t *testing.T) {
	l := &leaver{}
	c, peer := start(t, Config{Version: packet.V311, CleanStart: true, Handler: l}, connack311)
	l.c = c
	peer.Send("32 07 0001 61 0007 6831")
	peer.Expect("e0 00")
	go c.Disconnect(t.Context(), 0)
	peer.Expect("e0 00")
	peer.ExpectEnd()
}

// TestAckOfAnotherKind: [MQTT-4.3.2-3, MQTT-4.3.3-3] a message waits for the
// acknowledgement of its QoS, and no other ends it.
func TestAckOfAnotherKind(t *testing.T) {
	r := newRecorder()
	c, peer := start(t, Config{Version: packet.V311, CleanStart: true, Handler: r}, connack311)
	publish(t, c, 1, 1, 0)
	publish(t, c, 2, 1, 0)
	peer.ExpectType(packet.PUBLISH)
	peer.ExpectType(packet.PUBLISH)
	peer.Send("50 02 0001  70 02 0001  40 02 0002  70 02 0002")
	<-r.end
	if len(r.acks) != 0 || c.Unexpected() != 4 {
		t.Errorf("%+v, %d unexpected", r.acks, c.Unexpected())
	}
	peer.Send("40 02 0001  50 02 0002")
	peer.Expect("62 02 0002")
	<-r.end
	if len(r.acks) != 2 || !r.acks[0].Done || r.acks[1].Done {
		t.Errorf("%+v", r.acks)
	}
}

// TestResponseInformation: [MQTT-3.1.2-28] is a rule for the server only. The client
// ignores Response Information that it did not request.
func TestResponseInformation(t *testing.T) {
	_, peer := start(t, Config{Version: packet.V5, CleanStart: true}, "20 07 00 00 04 1a 0001 72")
	alive(t, peer)
}

// TestReauthenticationFails: [MQTT-4.12.1-2] if the broker's proof is wrong, the client
// sends DISCONNECT and closes.
func TestReauthenticationFails(t *testing.T) {
	peer, nc := mqtttest.Pipe(t, packet.V5)
	cfg := Config{Dial: func(context.Context) (net.Conn, error) { return nc, nil }, Version: packet.V5, CleanStart: true, Auth: pencil(t)}
	go authenticate(t, peer)
	c, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	failed := make(chan error, 1)
	go func() { failed <- c.Reauthenticate(t.Context()) }()
	peer.ExpectType(packet.AUTH)
	peer.Send(auth(t, packet.AUTH, 0x18, scram, "r=x,s=W22Z,i=4096") + "32 08 0001 61 0001 00 6869")
	peer.Expect("e0 01 80")
	peer.ExpectEnd()
	var pe *ProtocolError
	if err := <-failed; !errors.As(err, &pe) || !strings.Contains(err.Error(), "nonce") {
		t.Errorf("got %v", err)
	}
}
