package packet

import "fmt"

// Type is an MQTT control packet type, the high nibble of the first byte.
// [MQTT5 2.1.2]
type Type byte

// Control packet types. [MQTT5 table 2-1]
const (
	CONNECT Type = iota + 1
	CONNACK
	PUBLISH
	PUBACK
	PUBREC
	PUBREL
	PUBCOMP
	SUBSCRIBE
	SUBACK
	UNSUBSCRIBE
	UNSUBACK
	PINGREQ
	PINGRESP
	DISCONNECT
	AUTH
)

var typeNames = [16]string{
	"RESERVED", "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP",
	"SUBSCRIBE", "SUBACK", "UNSUBSCRIBE", "UNSUBACK", "PINGREQ", "PINGRESP", "DISCONNECT", "AUTH",
}

// String returns the specification's spelling of t.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", byte(t))
}

// Version is the Protocol Version byte of CONNECT. [MQTT5 3.1.2.2]
type Version byte

// Protocol versions.
const (
	V31  Version = 3
	V311 Version = 4
	V5   Version = 5
)

// String returns "3.1", "3.1.1" or "5".
func (v Version) String() string {
	switch v {
	case V31:
		return "3.1"
	case V311:
		return "3.1.1"
	case V5:
		return "5"
	}
	return fmt.Sprintf("Version(%d)", byte(v))
}

// MaxRemainingLength is the largest Remaining Length. [MQTT5 1.5.5]
const MaxRemainingLength = 268_435_455

// MaxPacketSize is the largest control packet: one byte of type and flags,
// four of remaining length, and [MaxRemainingLength].
const MaxPacketSize = 1 + 4 + MaxRemainingLength

// A Frame is one whole control packet in the read buffer. It must not exceed four
// words: a larger struct would be passed in memory instead of registers, which costs
// several ns for each call that gets a packet.
type Frame struct {
	// First is the first byte of the fixed header: type and flags.
	First byte
	// Body is the packet after the remaining length. It points into the read buffer.
	Body []byte
}

// Size returns the size of the whole packet in bytes, fixed header included.
func (f Frame) Size() int { return f.header() + len(f.Body) }

// header returns the size of the fixed header in bytes. [MQTT-1.5.5-1]
func (f Frame) header() int { return 1 + VarintSize(len(f.Body)) }

// Type returns the control packet type of f.
func (f Frame) Type() Type { return Type(f.First >> 4) }

// Flags returns the low nibble of the first byte.
func (f Frame) Flags() byte { return f.First & 0x0f }
