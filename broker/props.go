package broker

import "encoding/binary"

// Identifiers of the properties of PUBLISH. [MQTT5 table 2-4]
const (
	idPayloadFormat   = 1
	idMessageExpiry   = 2
	idContentType     = 3
	idResponseTopic   = 8
	idCorrelationData = 9
	idSubscriptionID  = 11
	idTopicAlias      = 35
	idUserProperty    = 38
)

// propertySize returns the length of the property at the start of raw, which a
// decoder has validated as properties of PUBLISH.
func propertySize(raw []byte) int {
	switch raw[0] {
	case idPayloadFormat:
		return 2
	case idTopicAlias:
		return 3
	case idMessageExpiry:
		return 5
	case idSubscriptionID:
		n := 1
		for raw[n] >= 0x80 {
			n++
		}
		return n + 1
	case idUserProperty:
		name := 2 + int(binary.BigEndian.Uint16(raw[1:]))
		return 1 + name + 2 + int(binary.BigEndian.Uint16(raw[1+name:]))
	}
	// Content Type, Response Topic, Correlation Data.
	return 3 + int(binary.BigEndian.Uint16(raw[1:]))
}

// propertyScan is what the broker itself wants to know of a PUBLISH's properties.
type propertyScan struct {
	alias             uint16 // 0 is none
	expiry            int64  // seconds; -1 is none
	hasSubscriptionID bool
}

func scanProperties(raw []byte) propertyScan {
	scan := propertyScan{expiry: -1}
	for len(raw) > 0 {
		n := propertySize(raw)
		switch raw[0] {
		case idTopicAlias:
			scan.alias = binary.BigEndian.Uint16(raw[1:])
		case idMessageExpiry:
			scan.expiry = int64(binary.BigEndian.Uint32(raw[1:]))
		case idSubscriptionID:
			scan.hasSubscriptionID = true
		}
		raw = raw[n:]
	}
	return scan
}

// appendWithout appends the properties of raw but those with identifier drop.
func appendWithout(dst, raw []byte, drop byte) []byte {
	for len(raw) > 0 {
		n := propertySize(raw)
		if raw[0] != drop {
			dst = append(dst, raw[:n]...)
		}
		raw = raw[n:]
	}
	return dst
}

// appendSubscriptionID appends the property; id 0 is none.
func appendSubscriptionID(dst []byte, id uint32) []byte {
	if id == 0 {
		return dst
	}
	return appendVarint(append(dst, idSubscriptionID), int(id))
}
