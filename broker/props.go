package broker

import (
	"encoding/binary"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// Identifiers of the properties of PUBLISH that the broker looks at. [MQTT5 table 2-4]
const (
	idMessageExpiry  = 2
	idSubscriptionID = 11
	idTopicAlias     = 35
)

// propertyScan has those properties of a PUBLISH that the broker itself uses.
type propertyScan struct {
	alias             uint16 // 0 means none
	expiry            int64  // seconds; -1 means none
	hasSubscriptionID bool
}

func scanProperties(raw []byte) propertyScan {
	scan := propertyScan{expiry: -1}
	for len(raw) > 0 {
		n := packet.PropertySize(raw)
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

// appendWithout appends all properties of raw except those with identifier drop.
func appendWithout(dst, raw []byte, drop byte) []byte {
	for len(raw) > 0 {
		n := packet.PropertySize(raw)
		if raw[0] != drop {
			dst = append(dst, raw[:n]...)
		}
		raw = raw[n:]
	}
	return dst
}

// appendSubscriptionID appends the property unless id is 0.
func appendSubscriptionID(dst []byte, id uint32) []byte {
	if id == 0 {
		return dst
	}
	return packet.AppendVarint(append(dst, idSubscriptionID), int(id))
}
