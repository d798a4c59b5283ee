package broker

import (
	"encoding/binary"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// A message is a publication kept in memory: retained, queued, or in flight to a
// session that outlives its connection. It is never changed, and all sessions
// that keep it share it.
type message struct {
	topic   string
	payload []byte
	// props are the properties to forward, without Message Expiry Interval,
	// Topic Alias and Subscription Identifier.
	props []byte
	qos   byte
	// expires is the broker's time, in nanoseconds, from which the message must
	// not be delivered any more; 0 means never.
	expires int64
}

// overhead is roughly how much memory a message needs besides its bytes.
const overhead = 128

func (m *message) size() int { return len(m.topic) + len(m.payload) + len(m.props) + overhead }

func (m *message) expired(now int64) bool { return m.expires != 0 && now >= m.expires }

// remaining is the Message Expiry Interval to send, in seconds, or -1.
// [MQTT-3.3.2-6]
func (m *message) remaining(now int64) int64 {
	if m.expires == 0 {
		return -1
	}
	const second = int64(1e9)
	return max((m.expires-now+second-1)/second, 0)
}

// A delivery is a message on its way to one session.
type delivery struct {
	msg    *message
	ids    []byte // Subscription Identifiers, encoded as properties
	seq    uint64 // order of the first sending
	share  *group // set when it came through a shared subscription
	cost   int    // bytes charged to the session
	id     uint16 // of the earlier sending that this one repeats; else 0
	qos    byte
	retain bool
	dup    bool // has the DUP flag at its first sending, by a fault
	pubrel bool // repeat the PUBREL, not the PUBLISH
}

// outgoing is one PUBLISH to be encoded.
type outgoing struct {
	topic               string
	payload, props, ids []byte
	expiry              int64 // Message Expiry Interval; -1 means none
	id                  uint16
	alias               uint16 // Topic Alias; 0 means none. It replaces an empty topic
	qos                 byte
	dup, retain, v5     bool
}

// remaining returns the remaining length, and that of the properties.
func (o *outgoing) remaining() (length, props int) {
	length = 2 + len(o.topic) + len(o.payload)
	if o.qos > 0 {
		length += 2
	}
	if o.v5 {
		props = len(o.props) + len(o.ids)
		if o.expiry >= 0 {
			props += 5
		}
		if o.alias > 0 {
			props += 3
		}
		length += packet.VarintSize(props) + props
	}
	return length, props
}

// size returns the bytes of the packet. They may be more than the protocol
// allows, because the broker adds properties.
func (o *outgoing) size() int {
	n, _ := o.remaining()
	return 1 + packet.VarintSize(n) + n
}

// append encodes o. All its parts come from validated packets.
func (o *outgoing) append(dst []byte) []byte {
	n, props := o.remaining()
	dst = packet.AppendVarint(append(dst, publishByte(o.dup, o.qos, o.retain)), n)
	dst = append(binary.BigEndian.AppendUint16(dst, uint16(len(o.topic))), o.topic...)
	if o.qos > 0 {
		dst = binary.BigEndian.AppendUint16(dst, o.id)
	}
	if o.v5 {
		dst = packet.AppendVarint(dst, props)
		if o.expiry >= 0 {
			dst = binary.BigEndian.AppendUint32(append(dst, idMessageExpiry), uint32(o.expiry))
		}
		if o.alias > 0 {
			dst = binary.BigEndian.AppendUint16(append(dst, idTopicAlias), o.alias)
		}
		dst = append(append(dst, o.props...), o.ids...)
	}
	return append(dst, o.payload...)
}

func publishByte(dup bool, qos byte, retain bool) byte {
	first := byte(packet.PUBLISH)<<4 | qos<<1
	if dup {
		first |= 8
	}
	if retain {
		first |= 1
	}
	return first
}
