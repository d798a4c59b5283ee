package load

import "github.com/mqttload/mqttload/scenarios"

// payloadBytes makes the payload that every message of a case carries. Its
// first bytes are the stamp's where it is long enough for one.
func payloadBytes(p scenarios.Payload) []byte {
	if p.Kind != scenarios.PayloadSize {
		return p.Data
	}
	b := make([]byte, p.Size)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}
