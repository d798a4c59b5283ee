package packet

// Connect is a CONNECT packet. [MQTT5 3.1]
type Connect struct {
	Version    Version
	CleanStart bool
	KeepAlive  uint16 // seconds; 0 turns keep-alive off
	ClientID   string
	// Username is sent if HasUsername is set, and Password if HasPassword is.
	Username    string
	HasUsername bool
	Password    []byte
	HasPassword bool
	Will        *Will
	Properties  Properties // MQTT 5 only
}

// Will is the will message of CONNECT. [MQTT5 3.1.2.5, 3.1.3.2]
type Will struct {
	Topic      string
	Payload    []byte
	QoS        byte
	Retain     bool
	Properties Properties // MQTT 5 only: Will Delay Interval and the PUBLISH properties
}

// Connack is a CONNACK packet. [MQTT5 3.2]
type Connack struct {
	SessionPresent bool // not in 3.1
	// Code is the Connect Reason Code (MQTT 5) or the return code 0..5 (3.x).
	Code       ReasonCode
	Properties Properties
}

// Publish is a PUBLISH packet. [MQTT5 3.3]
//
// In a decoded packet Topic, Payload and RawProperties point into the frame.
type Publish struct {
	Dup      bool
	QoS      byte
	Retain   bool
	Topic    []byte
	PacketID uint16 // 0 at QoS 0
	Payload  []byte
	// RawProperties are the encoded properties without the property length. They are
	// empty in 3.x. The decoder checks them, the encoder copies them unchecked. Use
	// ParseProperties and SetProperties to read and to set them.
	RawProperties []byte
}

// Ack is a PUBACK, PUBREC, PUBREL or PUBCOMP packet. [MQTT5 3.4 to 3.7]
type Ack struct {
	Type       Type // PUBACK, PUBREC, PUBREL or PUBCOMP
	PacketID   uint16
	Code       ReasonCode // 0 in 3.x
	Properties Properties
}

// Subscription is one topic filter of SUBSCRIBE with its options. [MQTT5 3.8.3.1]
type Subscription struct {
	Filter            string
	QoS               byte
	NoLocal           bool
	RetainAsPublished bool
	RetainHandling    byte // 0, 1 or 2
}

// Subscribe is a SUBSCRIBE packet. [MQTT5 3.8]
type Subscribe struct {
	PacketID      uint16
	Subscriptions []Subscription
	Properties    Properties
}

// Suback is a SUBACK packet: one reason code per filter, in order. [MQTT5 3.9]
type Suback struct {
	PacketID   uint16
	Codes      []ReasonCode
	Properties Properties
}

// Unsubscribe is an UNSUBSCRIBE packet. [MQTT5 3.10]
type Unsubscribe struct {
	PacketID   uint16
	Filters    []string
	Properties Properties
}

// Unsuback is an UNSUBACK packet. Codes is empty in 3.x. [MQTT5 3.11]
type Unsuback struct {
	PacketID   uint16
	Codes      []ReasonCode
	Properties Properties
}

// Disconnect is a DISCONNECT packet. [MQTT5 3.14]
type Disconnect struct {
	Code       ReasonCode // MQTT 5 only
	Properties Properties
}

// Auth is an AUTH packet, MQTT 5 only. [MQTT5 3.15]
type Auth struct {
	Code       ReasonCode
	Properties Properties
}

// UserProperty is one pair of a name and a value. [MQTT5 3.1.2.11.8]
type UserProperty struct{ Name, Value string }

// Properties has a field for every property of MQTT 5. A property is absent if its
// pointer or slice is nil. Encoders and decoders check which properties a packet may
// have. [MQTT5 2.2.2.2]
type Properties struct {
	PayloadFormat        *byte
	MessageExpiry        *uint32 // seconds
	ContentType          *string
	ResponseTopic        *string
	CorrelationData      []byte   // nil when absent
	SubscriptionIDs      []uint32 // several in PUBLISH, one in SUBSCRIBE
	SessionExpiry        *uint32  // seconds
	AssignedClientID     *string
	ServerKeepAlive      *uint16 // seconds
	AuthMethod           *string
	AuthData             []byte // nil when absent
	RequestProblemInfo   *byte
	WillDelay            *uint32 // seconds
	RequestResponseInfo  *byte
	ResponseInfo         *string
	ServerReference      *string
	ReasonString         *string
	ReceiveMaximum       *uint16
	TopicAliasMaximum    *uint16
	TopicAlias           *uint16
	MaximumQoS           *byte
	RetainAvailable      *byte
	UserProperties       []UserProperty
	MaximumPacketSize    *uint32
	WildcardSubAvailable *byte
	SubIDAvailable       *byte
	SharedSubAvailable   *byte
}
