package packet

// Property identifiers. [MQTT5 table 2-4]
const (
	idPayloadFormat        = 1
	idMessageExpiry        = 2
	idContentType          = 3
	idResponseTopic        = 8
	idCorrelationData      = 9
	idSubscriptionID       = 11
	idSessionExpiry        = 17
	idAssignedClientID     = 18
	idServerKeepAlive      = 19
	idAuthMethod           = 21
	idAuthData             = 22
	idRequestProblemInfo   = 23
	idWillDelay            = 24
	idRequestResponseInfo  = 25
	idResponseInfo         = 26
	idServerReference      = 28
	idReasonString         = 31
	idReceiveMaximum       = 33
	idTopicAliasMaximum    = 34
	idTopicAlias           = 35
	idMaximumQoS           = 36
	idRetainAvailable      = 37
	idUserProperty         = 38
	idMaximumPacketSize    = 39
	idWildcardSubAvailable = 40
	idSubIDAvailable       = 41
	idSharedSubAvailable   = 42
)

// WillProperties stands for the Will Properties of CONNECT, where a function takes a
// packet type to know which properties are allowed.
const WillProperties Type = 0

type propertyKind byte

const (
	kindBool propertyKind = iota // a byte that is 0 or 1
	kindUint16
	kindUint32
	kindVarint
	kindBinary
	kindText
	kindPair
)

// propertyInfo is one row of table 2-4.
type propertyInfo struct {
	name    string
	kind    propertyKind
	nonzero bool   // the value 0 is a Protocol Error
	where   uint16 // bit t: allowed in packet type t; bit 0: in the Will Properties
}

func in(types ...Type) (mask uint16) {
	for _, t := range types {
		mask |= 1 << t
	}
	return mask
}

var (
	inMessage = in(PUBLISH, WillProperties)
	inReply   = in(CONNACK, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, UNSUBACK, DISCONNECT, AUTH)
)

var propertyTable = [...]propertyInfo{
	idPayloadFormat:        {"Payload Format Indicator", kindBool, false, inMessage},
	idMessageExpiry:        {"Message Expiry Interval", kindUint32, false, inMessage},
	idContentType:          {"Content Type", kindText, false, inMessage},
	idResponseTopic:        {"Response Topic", kindText, false, inMessage},
	idCorrelationData:      {"Correlation Data", kindBinary, false, inMessage},
	idSubscriptionID:       {"Subscription Identifier", kindVarint, true, in(PUBLISH, SUBSCRIBE)},
	idSessionExpiry:        {"Session Expiry Interval", kindUint32, false, in(CONNECT, CONNACK, DISCONNECT)},
	idAssignedClientID:     {"Assigned Client Identifier", kindText, false, in(CONNACK)},
	idServerKeepAlive:      {"Server Keep Alive", kindUint16, false, in(CONNACK)},
	idAuthMethod:           {"Authentication Method", kindText, false, in(CONNECT, CONNACK, AUTH)},
	idAuthData:             {"Authentication Data", kindBinary, false, in(CONNECT, CONNACK, AUTH)},
	idRequestProblemInfo:   {"Request Problem Information", kindBool, false, in(CONNECT)},
	idWillDelay:            {"Will Delay Interval", kindUint32, false, in(WillProperties)},
	idRequestResponseInfo:  {"Request Response Information", kindBool, false, in(CONNECT)},
	idResponseInfo:         {"Response Information", kindText, false, in(CONNACK)},
	idServerReference:      {"Server Reference", kindText, false, in(CONNACK, DISCONNECT)},
	idReasonString:         {"Reason String", kindText, false, inReply},
	idReceiveMaximum:       {"Receive Maximum", kindUint16, true, in(CONNECT, CONNACK)},
	idTopicAliasMaximum:    {"Topic Alias Maximum", kindUint16, false, in(CONNECT, CONNACK)},
	idTopicAlias:           {"Topic Alias", kindUint16, true, in(PUBLISH)},
	idMaximumQoS:           {"Maximum QoS", kindBool, false, in(CONNACK)},
	idRetainAvailable:      {"Retain Available", kindBool, false, in(CONNACK)},
	idUserProperty:         {"User Property", kindPair, false, inReply | inMessage | in(CONNECT, SUBSCRIBE, UNSUBSCRIBE)},
	idMaximumPacketSize:    {"Maximum Packet Size", kindUint32, true, in(CONNECT, CONNACK)},
	idWildcardSubAvailable: {"Wildcard Subscription Available", kindBool, false, in(CONNACK)},
	idSubIDAvailable:       {"Subscription Identifier Available", kindBool, false, in(CONNACK)},
	idSharedSubAvailable:   {"Shared Subscription Available", kindBool, false, in(CONNACK)},
}

// repeatable reports whether property id may occur more than once in packet type t.
func repeatable(id int, t Type) bool {
	return id == idUserProperty || id == idSubscriptionID && t == PUBLISH
}

// A property is one decoded property. Its kind tells whether num or text is used.
type property struct {
	id    int
	num   uint32
	text  []byte // points into the body
	value []byte // of a User Property; text is its name
}

// property reads one property.
func (r *reader) property() (p property) {
	start := r.off
	p.id = r.varint("property identifier")
	if r.err != nil {
		return p
	}
	if p.id >= len(propertyTable) || propertyTable[p.id].name == "" {
		r.failAt(start, ReasonMalformedPacket, "unknown property identifier")
		return p
	}
	name := propertyTable[p.id].name
	switch propertyTable[p.id].kind {
	case kindBool:
		p.num = uint32(r.byte(name))
	case kindUint16:
		p.num = uint32(r.uint16(name))
	case kindUint32:
		p.num = r.uint32(name)
	case kindVarint:
		p.num = uint32(r.varint(name))
	case kindBinary:
		p.text = r.binary(name)
	case kindText:
		p.text = r.text(name)
	case kindPair:
		p.text, p.value = r.text(name), r.text(name)
	}
	return p
}

// propertyFault returns the rule that p breaks in a packet of type t after the
// properties in seen, or "".
func propertyFault(p property, t Type, seen uint64) (rule string, code ReasonCode) {
	info := &propertyTable[p.id]
	switch {
	case info.where>>t&1 == 0:
		return " is not allowed in this packet", ReasonMalformedPacket
	case seen>>p.id&1 != 0 && !repeatable(p.id, t):
		return " occurs more than once", ReasonProtocolError
	case info.kind == kindBool && p.num > 1:
		return " must be 0 or 1", ReasonProtocolError
	// [MQTT-3.3.2-8]
	case p.id == idTopicAlias && p.num == 0:
		return " must not be 0 [MQTT-3.3.2-8]", ReasonTopicAliasInvalid
	case info.nonzero && p.num == 0:
		return " must not be 0", ReasonProtocolError
	// [MQTT-3.3.2-14]
	case p.id == idResponseTopic && topicNameRule(p.text) != "":
		return " " + topicNameRule(p.text), ReasonProtocolError
	}
	return "", ReasonSuccess
}

// propertyList reads properties up to the end of the body into dst, and returns the
// set of their identifiers. If dst is nil it only checks them.
func (r *reader) propertyList(t Type, dst *Properties) (seen uint64) {
	for r.left() > 0 {
		start := r.off
		p := r.property()
		if r.err != nil {
			return seen
		}
		if rule, code := propertyFault(p, t, seen); rule != "" {
			r.failAt(start, code, propertyTable[p.id].name+rule)
			return seen
		}
		seen |= 1 << p.id
		if dst != nil {
			dst.set(p)
		}
	}
	if t == CONNECT && seen>>idAuthData&1 != 0 && seen>>idAuthMethod&1 == 0 {
		r.fail(ReasonProtocolError, "Authentication Data without an Authentication Method [MQTT5 3.1.2.11.10]")
	}
	return seen
}

// properties reads a property length and the properties that follow.
func (r *reader) properties(t Type, dst *Properties) (seen uint64) {
	n := r.varint("property length")
	if r.err != nil || n == 0 {
		return 0
	}
	if n > r.left() {
		r.fail(ReasonMalformedPacket, "property length is beyond the end of the packet")
		return 0
	}
	whole := r.body
	r.body = whole[:r.off+n]
	seen = r.propertyList(t, dst)
	r.body = whole
	if r.err != nil {
		r.off = len(whole)
	}
	return seen
}

// set stores a copy of p in d.
func (d *Properties) set(p property) {
	switch p.id {
	case idPayloadFormat:
		d.PayloadFormat = new(byte(p.num))
	case idMessageExpiry:
		d.MessageExpiry = new(p.num)
	case idContentType:
		d.ContentType = new(string(p.text))
	case idResponseTopic:
		d.ResponseTopic = new(string(p.text))
	case idCorrelationData:
		d.CorrelationData = cloneBinary(p.text)
	case idSubscriptionID:
		d.SubscriptionIDs = append(d.SubscriptionIDs, p.num)
	case idSessionExpiry:
		d.SessionExpiry = new(p.num)
	case idAssignedClientID:
		d.AssignedClientID = new(string(p.text))
	case idServerKeepAlive:
		d.ServerKeepAlive = new(uint16(p.num))
	case idAuthMethod:
		d.AuthMethod = new(string(p.text))
	case idAuthData:
		d.AuthData = cloneBinary(p.text)
	case idRequestProblemInfo:
		d.RequestProblemInfo = new(byte(p.num))
	case idWillDelay:
		d.WillDelay = new(p.num)
	case idRequestResponseInfo:
		d.RequestResponseInfo = new(byte(p.num))
	case idResponseInfo:
		d.ResponseInfo = new(string(p.text))
	case idServerReference:
		d.ServerReference = new(string(p.text))
	case idReasonString:
		d.ReasonString = new(string(p.text))
	case idReceiveMaximum:
		d.ReceiveMaximum = new(uint16(p.num))
	case idTopicAliasMaximum:
		d.TopicAliasMaximum = new(uint16(p.num))
	case idTopicAlias:
		d.TopicAlias = new(uint16(p.num))
	case idMaximumQoS:
		d.MaximumQoS = new(byte(p.num))
	case idRetainAvailable:
		d.RetainAvailable = new(byte(p.num))
	case idUserProperty:
		d.UserProperties = append(d.UserProperties, UserProperty{string(p.text), string(p.value)})
	case idMaximumPacketSize:
		d.MaximumPacketSize = new(p.num)
	case idWildcardSubAvailable:
		d.WildcardSubAvailable = new(byte(p.num))
	case idSubIDAvailable:
		d.SubIDAvailable = new(byte(p.num))
	case idSharedSubAvailable:
		d.SharedSubAvailable = new(byte(p.num))
	}
}

// cloneBinary copies b. The copy is never nil, because nil means an absent property.
func cloneBinary(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

func (w *writer) optByte(id byte, p *byte) {
	if p != nil {
		w.dst = append(w.dst, id, *p)
	}
}

func (w *writer) optUint16(id byte, p *uint16) {
	if p != nil {
		w.byte(id)
		w.uint16(*p)
	}
}

func (w *writer) optUint32(id byte, p *uint32) {
	if p != nil {
		w.byte(id)
		w.uint32(*p)
	}
}

func (w *writer) optText(id byte, p *string) {
	if p != nil {
		w.byte(id)
		w.text(propertyTable[id].name, *p)
	}
}

func (w *writer) optBinary(id byte, p []byte) {
	if p != nil {
		w.byte(id)
		w.binary(propertyTable[id].name, p)
	}
}

// propertyList appends all properties of p in the order of their identifiers. Then it
// checks them by decoding, so that encoder and decoder share one table of rules.
func (w *writer) propertyList(t Type, p *Properties) {
	start := len(w.dst)
	w.optByte(idPayloadFormat, p.PayloadFormat)
	w.optUint32(idMessageExpiry, p.MessageExpiry)
	w.optText(idContentType, p.ContentType)
	w.optText(idResponseTopic, p.ResponseTopic)
	w.optBinary(idCorrelationData, p.CorrelationData)
	for _, n := range p.SubscriptionIDs {
		w.subscriptionID(n)
	}
	w.optUint32(idSessionExpiry, p.SessionExpiry)
	w.optText(idAssignedClientID, p.AssignedClientID)
	w.optUint16(idServerKeepAlive, p.ServerKeepAlive)
	w.optText(idAuthMethod, p.AuthMethod)
	w.optBinary(idAuthData, p.AuthData)
	w.optByte(idRequestProblemInfo, p.RequestProblemInfo)
	w.optUint32(idWillDelay, p.WillDelay)
	w.optByte(idRequestResponseInfo, p.RequestResponseInfo)
	w.optText(idResponseInfo, p.ResponseInfo)
	w.optText(idServerReference, p.ServerReference)
	w.optText(idReasonString, p.ReasonString)
	w.optUint16(idReceiveMaximum, p.ReceiveMaximum)
	w.optUint16(idTopicAliasMaximum, p.TopicAliasMaximum)
	w.optUint16(idTopicAlias, p.TopicAlias)
	w.optByte(idMaximumQoS, p.MaximumQoS)
	w.optByte(idRetainAvailable, p.RetainAvailable)
	for i := range p.UserProperties {
		w.byte(idUserProperty)
		w.text("User Property", p.UserProperties[i].Name)
		w.text("User Property", p.UserProperties[i].Value)
	}
	w.optUint32(idMaximumPacketSize, p.MaximumPacketSize)
	w.optByte(idWildcardSubAvailable, p.WildcardSubAvailable)
	w.optByte(idSubIDAvailable, p.SubIDAvailable)
	w.optByte(idSharedSubAvailable, p.SharedSubAvailable)
	w.checkProperties(t, start)
}

func (w *writer) subscriptionID(n uint32) {
	if n > MaxRemainingLength {
		w.fail("Subscription Identifier", "is larger than 268435455")
		return
	}
	w.byte(idSubscriptionID)
	w.dst = AppendVarint(w.dst, int(n))
}

func (w *writer) checkProperties(t Type, start int) {
	if w.err != nil || start == len(w.dst) {
		return
	}
	r := reader{body: w.dst[start:], pkt: w.pkt}
	if r.propertyList(t, nil); r.err != nil {
		w.fail("properties", r.err.Rule)
	}
}

// properties appends the property length and the properties of p.
func (w *writer) properties(t Type, p *Properties) {
	at := len(w.dst)
	w.byte(0) // [MQTT-2.2.2-1] The property length is sent even if it is 0.
	w.propertyList(t, p)
	if len(w.dst)-at-1 > MaxRemainingLength {
		w.fail("property length", "is larger than 268435455")
	}
	if w.err == nil {
		w.patchLength(at)
	}
}

// AppendProperties appends p to dst, without the property length. t is the type of the
// packet that they are for, or [WillProperties]. On error, which is an *InvalidError,
// it returns dst unchanged.
func AppendProperties(dst []byte, t Type, p *Properties) ([]byte, error) {
	w := writer{dst: dst, start: len(dst), pkt: t}
	w.propertyList(t, p)
	if w.err != nil {
		return dst, w.err
	}
	return w.dst, nil
}

// ParseProperties decodes raw, properties without the property length, into dst, which
// it resets first and which does not point into raw afterwards. t is the type of the
// packet that they are from, or [WillProperties]. The error is a *MalformedError.
func ParseProperties(dst *Properties, t Type, raw []byte) error {
	*dst = Properties{}
	r := reader{body: raw, pkt: t}
	r.propertyList(t, dst)
	return r.close()
}

// IsZero reports whether p has no property.
func (p *Properties) IsZero() bool {
	return p.PayloadFormat == nil && p.MessageExpiry == nil && p.ContentType == nil &&
		p.ResponseTopic == nil && p.CorrelationData == nil && len(p.SubscriptionIDs) == 0 &&
		p.SessionExpiry == nil && p.AssignedClientID == nil && p.ServerKeepAlive == nil &&
		p.AuthMethod == nil && p.AuthData == nil && p.RequestProblemInfo == nil &&
		p.WillDelay == nil && p.RequestResponseInfo == nil && p.ResponseInfo == nil &&
		p.ServerReference == nil && p.ReasonString == nil && p.ReceiveMaximum == nil &&
		p.TopicAliasMaximum == nil && p.TopicAlias == nil && p.MaximumQoS == nil &&
		p.RetainAvailable == nil && len(p.UserProperties) == 0 && p.MaximumPacketSize == nil &&
		p.WildcardSubAvailable == nil && p.SubIDAvailable == nil && p.SharedSubAvailable == nil
}
