package mqtt

import (
	"errors"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestAnswerOfAnotherKind: a SUBSCRIBE is not answered by an UNSUBACK with its
// identifier, nor an UNSUBSCRIBE by a SUBACK, nor either by the answer to another
// request. [MQTT-2.2.1-6], [MQTT-2.3.1-7] of 3.1.1
func TestAnswerOfAnotherKind(t *testing.T) {
	for _, tt := range []struct {
		v                           packet.Version
		subscribe, others, suback   string
		unsubscribe, more, unsuback string
		code                        string // of the UNSUBACK
	}{
		{
			packet.V311, "82 06 0001 0001 61 00", "b0 02 0001  90 03 0002 80", "90 03 0001 00",
			"a2 05 0002 0001 61", "90 03 0002 80  b0 02 0001", "b0 02 0002", "",
		},
		{
			packet.V5, "82 07 0001 00 0001 61 00", "b0 04 0001 00 87  90 04 0002 00 87", "90 04 0001 00 00",
			"a2 06 0002 00 0001 61", "90 04 0002 00 87  b0 04 0001 00 87", "b0 04 0002 00 11", "\x11",
		},
	} {
		t.Run(tt.v.String(), func(t *testing.T) {
			c, peer := start(t, Config{Version: tt.v, ClientID: "c", CleanStart: true}, connackOf(tt.v))
			done := make(chan error, 1)
			go func() {
				_, err := c.Subscribe(t.Context(), []packet.Subscription{{Filter: "a"}}, packet.Properties{})
				done <- err
			}()
			peer.Expect(tt.subscribe)
			peer.Send(tt.others + tt.suback)
			if err := <-done; err != nil || c.Unexpected() != 2 {
				t.Errorf("subscribe: %v, %d answers to nothing", err, c.Unexpected())
			}
			go func() {
				codes, err := c.Unsubscribe(t.Context(), []string{"a"})
				if err == nil && string(bytesOf(codes)) != tt.code {
					t.Errorf("UNSUBACK with %v", codes)
				}
				done <- err
			}()
			peer.Expect(tt.unsubscribe)
			peer.Send(tt.more + tt.unsuback)
			if err := <-done; err != nil || c.Unexpected() != 4 {
				t.Errorf("unsubscribe: %v, %d answers to nothing", err, c.Unexpected())
			}
		})
	}
}

// TestUnsubackCount: [MQTT-3.11.3-1] the codes are those of the filters, in order.
// Another number of codes is an error, but none at all is not. [MQTT5 3.11.3]
func TestUnsubackCount(t *testing.T) {
	for send, want := range map[string]string{
		"b0 05 0001 00 0011":   "\x00\x11",
		"b0 03 0001 00":        "",
		"b0 04 0001 00 00":     "UNSUBACK with 1 codes for 2 filters",
		"b0 06 0001 00 001100": "UNSUBACK with 3 codes for 2 filters",
	} {
		c, peer := start(t, Config{Version: packet.V5, CleanStart: true}, connack5)
		done := make(chan error, 1)
		var codes []packet.ReasonCode
		go func() {
			var err error
			codes, err = c.Unsubscribe(t.Context(), []string{"a", "b"})
			done <- err
		}()
		peer.ExpectType(packet.UNSUBSCRIBE)
		peer.Send(send)
		if !strings.HasPrefix(want, "UNSUBACK") {
			if err := <-done; err != nil || string(bytesOf(codes)) != want {
				t.Errorf("%s: %v, %v", send, codes, err)
			}
			alive(t, peer)
			continue
		}
		peer.Expect("e0 01 82")
		peer.ExpectEnd()
		var pe *ProtocolError
		if err := <-done; !errors.As(err, &pe) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", send, err)
		}
	}
}

// TestServerSessionExpiry: [MQTT-3.14.2-2] a broker's DISCONNECT must not have a
// Session Expiry Interval. The error still names the broker's reason.
func TestServerSessionExpiry(t *testing.T) {
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true}, connack5)
	peer.Send("e0 07 8b 05 11 00000000")
	peer.Expect("e0 01 82")
	peer.ExpectEnd()
	<-c.Done()
	var pe *ProtocolError
	if !errors.As(c.Err(), &pe) || pe.Code != packet.ReasonProtocolError || !strings.Contains(pe.Error(), "Server shutting down") {
		t.Errorf("got %v", c.Err())
	}
}

// TestOneDisconnect: [MQTT-3.14.4-1] a protocol error after DISCONNECT causes no
// second DISCONNECT.
func TestOneDisconnect(t *testing.T) {
	l := &leaver{}
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true, Handler: l}, connack5)
	l.c = c
	peer.Send("32 08 0001 61 0007 00 6831  f7 00")
	peer.Expect("e0 00")
	peer.ExpectEnd()
}
