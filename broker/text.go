package broker

import "github.com/mqttload/mqttload/mqtt/packet"

// hasControl reports whether s, which is well-formed UTF-8, holds one of the
// code points U+0001 to U+001F and U+007F to U+009F. A receiver may treat them
// as malformed; this broker does where they would end up in logs and on
// terminals. [MQTT5 1.5.4]
func hasControl(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x20, c == 0x7f:
			return true
		case c == 0xc2 && i+1 < len(s) && s[i+1] < 0xa0:
			return true
		}
	}
	return false
}

// refuseControl is the error of a text with control characters, or nil.
func refuseControl(what string, texts ...string) error {
	for _, s := range texts {
		if hasControl(s) {
			return &closeError{packet.ReasonMalformedPacket, what + " with control characters"}
		}
	}
	return nil
}
