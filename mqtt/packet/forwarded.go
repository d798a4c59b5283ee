package packet

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
)

// PropertySize returns the size in bytes of the first property in raw. raw must hold
// the properties of a decoded PUBLISH.
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

// TopicAlias returns the Topic Alias of p, or 0 if there is none. p must have been
// decoded. It does not allocate. [MQTT5 3.3.2.3.4]
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

// IDs returns the identifiers in s, in ascending order.
func (s PropertySet) IDs() []int {
	var list []int
	for ; s != 0; s &= s - 1 {
		list = append(list, bits.TrailingZeros64(uint64(s)))
	}
	return list
}

// PropertyName returns the specification's name of the property with this identifier,
// which must exist: "Content Type".
func PropertyName(id int) string { return propertyTable[id].name }

// forwardStatements are the statements that oblige a server to forward a property.
var forwardStatements = map[int]string{
	idPayloadFormat: "MQTT-3.3.2-4", idMessageExpiry: "MQTT-3.3.2-6", idContentType: "MQTT-3.3.2-20",
	idResponseTopic: "MQTT-3.3.2-15", idCorrelationData: "MQTT-3.3.2-16", idSubscriptionID: "MQTT-3.3.4-3",
	idUserProperty: "MQTT-3.3.2-17, MQTT-3.3.2-18",
}

// ForwardStatement returns the number of the statement that obliges a server to
// forward the property with this identifier, or "" if there is none.
func ForwardStatement(id int) string { return forwardStatements[id] }

// Forwarded holds the properties that a server must forward to the subscribers of a
// message, in any order. It is read-only and may be shared.
type Forwarded struct {
	raw    []byte // in the order in which most servers forward them: as published
	single [len(propertyTable)][]byte
	users  []byte // User Properties, in their order
	expiry uint32
	want   PropertySet
}

// NewForwarded returns the properties that subscribers must receive with a message
// that is published with p. p.SubscriptionIDs are those of their subscriptions. The
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
		case idTopicAlias: // concerns one connection only
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

// Format returns the property with this identifier as text for people.
func (f *Forwarded) Format(id int) string { return FormatProperty(f.raw, id) }

// FormatProperty returns the property with this identifier in raw as text for people:
// all of them if there are several User Properties, "no Content Type" if there is
// none. raw must hold the properties of a decoded PUBLISH.
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

// Compare returns which properties are missing in raw, and which have another value
// there. raw must hold the properties of a decoded PUBLISH. User Properties must be
// unaltered and in order [MQTT-3.3.2-17, MQTT-3.3.2-18], but a server may add some. A
// Message Expiry Interval may be lower than published [MQTT-3.3.2-6]. Compare does not
// allocate.
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
