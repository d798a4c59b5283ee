package packet

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
)

// PropertySize returns the length in bytes of the first property in raw, which
// are properties of a PUBLISH that a decoder has checked.
func PropertySize(raw []byte) int {
	switch propertyTable[raw[0]].kind {
	case kindBool:
		return 2
	case kindUint16:
		return 3
	case kindUint32:
		return 5
	case kindVarint:
		n := 1
		for raw[n] >= 0x80 {
			n++
		}
		return n + 1
	case kindPair:
		name := 3 + int(binary.BigEndian.Uint16(raw[1:]))
		return name + 2 + int(binary.BigEndian.Uint16(raw[name:]))
	}
	return 3 + int(binary.BigEndian.Uint16(raw[1:]))
}

// TopicAlias returns the Topic Alias of a decoded p, 0 for none; nothing is
// allocated. [MQTT5 3.3.2.3.4]
func (p *Publish) TopicAlias() uint16 {
	for raw := p.RawProperties; len(raw) > 0; raw = raw[PropertySize(raw):] {
		if raw[0] == idTopicAlias {
			return binary.BigEndian.Uint16(raw[1:])
		}
	}
	return 0
}

// A PropertySet is a set of properties: bit n stands for the property with
// identifier n. [MQTT5 table 2-4]
type PropertySet uint64

// Has reports whether the property with this identifier is in s.
func (s PropertySet) Has(id int) bool { return s>>id&1 != 0 }

// IDs lists the identifiers in s.
func (s PropertySet) IDs() []int {
	var list []int
	for ; s != 0; s &= s - 1 {
		list = append(list, bits.TrailingZeros64(uint64(s)))
	}
	return list
}

// PropertyName is what the specification calls the property with identifier
// id, which is one that there is: "Content Type".
func PropertyName(id int) string { return propertyTable[id].name }

// forwardStatements are those that oblige a server to forward a property.
var forwardStatements = map[int]string{
	idPayloadFormat: "MQTT-3.3.2-4", idMessageExpiry: "MQTT-3.3.2-6", idContentType: "MQTT-3.3.2-20",
	idResponseTopic: "MQTT-3.3.2-15", idCorrelationData: "MQTT-3.3.2-16", idSubscriptionID: "MQTT-3.3.4-3",
	idUserProperty: "MQTT-3.3.2-17, MQTT-3.3.2-18",
}

// ForwardStatement is the statement of the specification by which a server owes
// its subscribers the property with identifier id, "" where there is none.
func ForwardStatement(id int) string { return forwardStatements[id] }

// Forwarded is what a subscriber must find among the properties of a PUBLISH,
// whatever server it comes from and in whatever order they lie. It is read-only
// and may be shared.
type Forwarded struct {
	raw    []byte // as they were encoded, which is how most servers pass them on
	single [len(propertyTable)][]byte
	users  []byte // User Properties, in their order
	expiry uint32
	want   PropertySet
}

// NewForwarded returns what is owed to the subscribers of a message that was
// published with p; SubscriptionIDs are those of their subscriptions. The
// error is an *InvalidError.
func NewForwarded(p *Properties) (*Forwarded, error) {
	raw, err := AppendProperties(nil, PUBLISH, p)
	if err != nil {
		return nil, err
	}
	f := &Forwarded{raw: raw}
	for rest := raw; len(rest) > 0; rest = rest[PropertySize(rest):] {
		one := rest[:PropertySize(rest)]
		switch id := one[0]; id {
		case idTopicAlias: // it is between two ends of one connection
			continue
		case idUserProperty:
			f.users = append(f.users, one...)
		case idMessageExpiry:
			f.expiry = binary.BigEndian.Uint32(one[1:])
		default:
			f.single[id] = one
		}
		f.want |= 1 << one[0]
	}
	return f, nil
}

// Format shows the property with identifier id, for people; User Properties all
// of them.
func (f *Forwarded) Format(id int) string { return FormatProperty(f.raw, id) }

// FormatProperty shows the property with identifier id in raw, properties that a
// decoder has checked, for people; "no Content Type" where it is not there.
func FormatProperty(raw []byte, id int) string {
	var words []string
	for r := (reader{body: raw, pkt: PUBLISH}); r.left() > 0; {
		if p := r.property(); p.id == id {
			words = append(words, p.String())
		}
	}
	if words == nil {
		return "no " + PropertyName(id)
	}
	return strings.Join(words, ", ")
}

// Compare returns which properties raw, those of a PUBLISH that a decoder has
// checked, lacks, and which it has with another value. User Properties must
// come unaltered and in their order [MQTT-3.3.2-17, MQTT-3.3.2-18]; those that a
// server adds are no difference. A Message Expiry Interval may be lower than
// what was sent [MQTT-3.3.2-6]. Nothing is allocated.
func (f *Forwarded) Compare(raw []byte) (missing, changed PropertySet) {
	if bytes.Equal(raw, f.raw) {
		return 0, 0
	}
	var seen PropertySet
	users := f.users
	for len(raw) > 0 {
		one := raw[:PropertySize(raw)]
		raw = raw[len(one):]
		id := one[0]
		seen |= 1 << id
		switch {
		case !f.want.Has(int(id)):
		case id == idUserProperty:
			users = bytes.TrimPrefix(users, one)
		case id == idMessageExpiry:
			if binary.BigEndian.Uint32(one[1:]) > f.expiry {
				changed |= 1 << id
			}
		case !bytes.Equal(one, f.single[id]):
			changed |= 1 << id
		}
	}
	missing = f.want &^ seen
	if len(users) > 0 && seen.Has(idUserProperty) {
		changed |= 1 << idUserProperty
	}
	return missing, changed
}
