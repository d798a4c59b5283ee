package mqtt

import (
	"testing"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestAnswerOfAnotherKind: an UNSUBACK with the identifier of a SUBSCRIBE does
// not end it, nor a SUBACK an UNSUBSCRIBE. [MQTT-2.2.1-6]
func TestAnswerOfAnotherKind(t *testing.T) {
	c, peer := start(t, Config{Version: packet.V5, ClientID: "c", CleanStart: true}, connack5)
	done := make(chan error, 1)
	go func() {
		_, err := c.Subscribe(t.Context(), []packet.Subscription{{Filter: "a"}}, packet.Properties{})
		done <- err
	}()
	peer.Expect("82 07 0001 00 0001 61 00")
	peer.Send("b0 04 0001 00 87")
	peer.Send("90 04 0001 00 00")
	if err := <-done; err != nil {
		t.Errorf("subscribe: %v", err)
	}
	go func() {
		codes, err := c.Unsubscribe(t.Context(), []string{"a"})
		if err == nil && (len(codes) != 1 || codes[0] != packet.ReasonNoSubscriptionExisted) {
			t.Errorf("UNSUBACK with %v", codes)
		}
		done <- err
	}()
	peer.Expect("a2 06 0002 00 0001 61")
	peer.Send("90 04 0002 00 87")
	peer.Send("b0 04 0002 00 11")
	if err := <-done; err != nil {
		t.Errorf("unsubscribe: %v", err)
	}
}
