package packet

import "fmt"

// A MalformedError reports received bytes that break the standard. The receiver must
// close the connection. In MQTT 5 it may first send a DISCONNECT with Code, or a
// CONNACK if it is a server that has not sent one. [MQTT5 4.13]
type MalformedError struct {
	// Packet is the type of the packet; 0 if the type itself is at fault.
	Packet Type
	// Offset is the position of the field at fault, in bytes from the start of the
	// packet.
	Offset int
	// Rule says what is wrong, with the number of the statement if there is one.
	Rule string
	// Code is the reason code to close with: ReasonMalformedPacket,
	// ReasonProtocolError, or a more specific one such as ReasonPacketTooLarge.
	Code ReasonCode
}

// Error names the packet, the offset and the rule.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("decode %s: byte %d: %s", e.Packet, e.Offset, e.Rule)
}

// An InvalidError reports a packet that must not be sent. Nothing was encoded.
type InvalidError struct {
	// Packet is the type of the packet; 0 for a text checked on its own.
	Packet Type
	// Field is the specification's name of the field at fault.
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
