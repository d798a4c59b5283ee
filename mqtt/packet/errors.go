package packet

import "fmt"

// MalformedError reports bytes that no conforming peer sends. The connection
// they came from has to be closed; in MQTT 5 a DISCONNECT (a server before
// CONNACK: a CONNACK) with Code may go first. [MQTT5 4.13]
type MalformedError struct {
	// Packet is the control packet at fault; 0 when its type is the fault.
	Packet Type
	// Offset counts bytes from the start of the packet to the field at fault.
	Offset int
	// Rule says what was found wrong, with the statement number where there is one.
	Rule string
	// Code is the reason code to close with: ReasonMalformedPacket,
	// ReasonProtocolError or a more exact one such as ReasonPacketTooLarge.
	Code ReasonCode
}

// Error names the packet, the offset and the rule.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("decode %s: byte %d: %s", e.Packet, e.Offset, e.Rule)
}

// InvalidError reports a packet that may not be sent as it stands; nothing was
// encoded.
type InvalidError struct {
	// Packet is the control packet refused; 0 for a topic checked on its own.
	Packet Type
	// Field names the field at fault as the specification does.
	Field string
	// Rule says what the field must be.
	Rule string
}

// Error names the packet, the field and the rule.
func (e *InvalidError) Error() string {
	if e.Packet == 0 {
		return fmt.Sprintf("%s: %s", e.Field, e.Rule)
	}
	return fmt.Sprintf("encode %s: %s: %s", e.Packet, e.Field, e.Rule)
}
