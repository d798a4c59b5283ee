package scenarios

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
)

// Properties are the MQTT 5 properties that clients send in CONNECT, SUBSCRIBE and
// PUBLISH, apart from [Clients.UserProperties]. A zero value is not sent. Cases of
// earlier versions send none: see [Case.Unsupported].
type Properties struct {
	// TopicAlias is how many topics of a publisher get an alias, as far as the
	// broker allows. [MQTT5 3.3.2.3.4]
	TopicAlias int

	// Of CONNECT. The first three are sent by clients that receive: 0..65,535,
	// 1..65,535 and bytes.
	TopicAliasMaximum, ReceiveMaximum, MaximumPacketSize int
	NoProblemInformation, ResponseInformation            bool

	// Of PUBLISH. ResponseTopic and CorrelationData may hold the variables of
	// [Vars], with the values of the publisher.
	MessageExpiry              time.Duration // whole seconds
	ContentType, ResponseTopic string
	CorrelationData            string // text, or "hex:" and bytes
	PayloadFormat              string // "", PayloadBytes or PayloadUTF8

	// Of SUBSCRIBE.
	SubscriptionIdentifier     int // 1..268,435,455
	NoLocal, RetainAsPublished bool
	RetainHandling             int // 0, 1 or 2 [MQTT5 3.8.3.1]
}

// Values of the Payload Format Indicator. [MQTT5 3.3.2.3.2]
const (
	PayloadBytes = "bytes"
	PayloadUTF8  = "utf-8"
)

// leastConnack is the size in bytes of the smallest CONNACK. A client with a smaller
// Maximum Packet Size could not connect. [MQTT5 3.2]
const leastConnack = 5

func propertyFields() []field {
	number := func(key string, least, most int64, at func(*Properties) *int) field {
		return omitDefault(0, intField(key, least, most, func(c *Case) *int { return at(&c.Clients.Properties) }))
	}
	flag := func(key string, at func(*Properties) *bool) field {
		return omitDefault(false, boolField(key, func(c *Case) *bool { return at(&c.Clients.Properties) }))
	}
	word := func(key string, check func(string) error, at func(*Properties) *string) field {
		return stringField(key, check, func(c *Case) *string { return at(&c.Clients.Properties) })
	}
	axes := []field{
		number("topic_alias", 0, math.MaxUint16, func(p *Properties) *int { return &p.TopicAlias }),
		number("topic_alias_maximum", 0, math.MaxUint16, func(p *Properties) *int { return &p.TopicAliasMaximum }),
		number("receive_maximum", 1, math.MaxUint16, func(p *Properties) *int { return &p.ReceiveMaximum }),
		number("maximum_packet_size", leastConnack, math.MaxUint32, func(p *Properties) *int { return &p.MaximumPacketSize }),
		problemField(),
		flag("request_response_information", func(p *Properties) *bool { return &p.ResponseInformation }),
		omitDefault("0s", secondsField("message_expiry", math.MaxUint32, func(c *Case) *time.Duration { return &c.Clients.Properties.MessageExpiry })),
		word("payload_format", checkPayloadFormat, func(p *Properties) *string { return &p.PayloadFormat }),
		number("subscription_identifier", 1, packet.MaxRemainingLength, func(p *Properties) *int { return &p.SubscriptionIdentifier }),
		flag("no_local", func(p *Properties) *bool { return &p.NoLocal }),
		flag("retain_as_published", func(p *Properties) *bool { return &p.RetainAsPublished }),
		number("retain_handling", 0, 2, func(p *Properties) *int { return &p.RetainHandling }),
	}
	for i := range axes {
		axes[i].axis = true
	}
	return append(axes,
		// [MQTT-3.3.2-19]
		word("content_type", func(s string) error { return checkUTF8("content_type", s) }, func(p *Properties) *string { return &p.ContentType }),
		word("response_topic", checkResponseTopic, func(p *Properties) *string { return &p.ResponseTopic }),
		word("correlation_data", checkCorrelation, func(p *Properties) *string { return &p.CorrelationData }),
	)
}

// problemField is on by default, as in the standard: only false is sent.
// [MQTT5 3.1.2.11.7]
func problemField() field {
	return omitDefault(true, field{key: "request_problem_information", parse: func(_, text string) (value, error) {
		on, err := parseFlag("request_problem_information", text)
		return plain(text, func(c *Case) { c.Clients.Properties.NoProblemInformation = !on }), err
	}, get: func(s *Scenario) any { return !s.base.Clients.Properties.NoProblemInformation }})
}

func checkPayloadFormat(text string) error {
	if text != PayloadBytes && text != PayloadUTF8 {
		return errors.New("payload_format must be bytes or utf-8")
	}
	return nil
}

func checkUTF8(key, text string) error {
	if err := packet.ValidateUTF8([]byte(text)); err != nil {
		return errors.New(key + " " + ruleOf(err))
	}
	if len(text) > maxBinary {
		return errors.New(key + " is over MQTT's limit of 65,535 bytes")
	}
	return nil
}

func checkResponseTopic(pattern string) error {
	if err := checkVars("response_topic", pattern, "icur"); err != nil || pattern == "" {
		return err
	}
	// [MQTT-3.3.2-14]
	if err := packet.ValidateTopicName(Expand(pattern, sampleVars(1))); err != nil {
		return errors.New("response_topic " + ruleOf(err))
	}
	return nil
}

const hexPrefix = "hex:"

func checkCorrelation(pattern string) error {
	if digits, ok := strings.CutPrefix(pattern, hexPrefix); ok {
		if _, err := hex.DecodeString(digits); err != nil {
			return errors.New("correlation_data after hex: must be pairs of hexadecimal digits, such as hex:00ff")
		}
	} else if err := checkVars("correlation_data", pattern, "icur"); err != nil {
		return err
	}
	if len(correlation(pattern, sampleVars(1))) > maxBinary {
		return errors.New("correlation_data is over MQTT's limit of 65,535 bytes")
	}
	return nil
}

// correlation returns the bytes of the pattern, nil for none.
func correlation(pattern string, v Vars) []byte {
	if digits, ok := strings.CutPrefix(pattern, hexPrefix); ok {
		b, _ := hex.DecodeString(digits) // it has been checked
		return b
	}
	if pattern == "" {
		return nil
	}
	return []byte(Expand(pattern, v))
}

// OfPublish returns the properties of the messages of a client with the variables
// v. They include the user properties and leave out the Topic Alias.
func (c *Clients) OfPublish(v Vars) packet.Properties {
	p := &c.Properties
	out := packet.Properties{CorrelationData: correlation(p.CorrelationData, v)}
	for _, u := range c.UserProperties {
		u.Value = Expand(u.Value, v)
		out.UserProperties = append(out.UserProperties, u)
	}
	if p.PayloadFormat != "" {
		out.PayloadFormat = new(byte)
		if p.PayloadFormat == PayloadUTF8 {
			*out.PayloadFormat = 1
		}
	}
	if p.MessageExpiry > 0 {
		out.MessageExpiry = new(uint32(p.MessageExpiry / time.Second))
	}
	if p.ContentType != "" {
		out.ContentType = &p.ContentType
	}
	if p.ResponseTopic != "" {
		out.ResponseTopic = new(Expand(p.ResponseTopic, v))
	}
	return out
}

// OfConnect adds to out the properties of CONNECT. publisher says that the client
// only publishes.
func (p *Properties) OfConnect(out *packet.Properties, publisher bool) {
	if p.NoProblemInformation {
		out.RequestProblemInfo = new(byte)
	}
	if p.ResponseInformation {
		out.RequestResponseInfo = new(byte(1))
	}
	if publisher {
		return
	}
	if p.TopicAliasMaximum > 0 {
		out.TopicAliasMaximum = new(uint16(p.TopicAliasMaximum))
	}
	if p.ReceiveMaximum > 0 {
		out.ReceiveMaximum = new(uint16(p.ReceiveMaximum))
	}
	if p.MaximumPacketSize > 0 {
		out.MaximumPacketSize = new(uint32(p.MaximumPacketSize))
	}
}

// MQTT5Keys lists the keys of the case's options that only MQTT 5 has, and that
// cases of earlier versions leave out.
func (c *Case) MQTT5Keys() (keys []string) {
	if c.Clients.SessionExpiry > 0 {
		keys = append(keys, "session_expiry")
	}
	if len(c.Clients.UserProperties) > 0 {
		keys = append(keys, "user_properties")
	}
	if w := c.Clients.Will; w != nil && w.Delay > 0 {
		keys = append(keys, "will_delay")
	}
	s := &Scenario{base: *c}
	for _, f := range propertyFields() {
		if f.get(s) != nil {
			keys = append(keys, f.key)
		}
	}
	return keys
}

// Unsupported lists the keys of [Case.MQTT5Keys] that the case's protocol version
// does not have.
func (c *Case) Unsupported() []string {
	if c.Protocol == packet.V5 {
		return nil
	}
	return c.MQTT5Keys()
}

// checkProtocols rejects options that only MQTT 5 has if no case uses MQTT 5. In a
// matrix of several versions the others leave them out.
func (s *Scenario) checkProtocols(cases []Case) Errors {
	var bad Errors
	if slices.ContainsFunc(cases, func(c Case) bool { return c.Protocol == packet.V5 }) {
		return nil
	}
	for i := range cases {
		for _, key := range cases[i].Unsupported() {
			verb := "needs"
			if key == "user_properties" {
				verb = "need"
			}
			bad = append(bad, s.at(key, fmt.Sprintf("%s %s protocol 5, and the matrix has only %s: add 5 to protocol or remove %s", key, verb, cases[i].Protocol, key)))
		}
	}
	return bad
}

// unsupportedKeys warns of options that the cases of earlier versions leave out.
func (s *Scenario) unsupportedKeys() []result.Warning {
	var versions, keys []string
	axes, n := s.allAxes(), 1
	for _, a := range axes {
		n *= len(a.values)
	}
	patterns, _ := s.excludes(axes)
	for i := range min(n, maxCases) {
		c := caseAt(s.base, axes, i)
		if slices.ContainsFunc(patterns, func(p *pattern) bool { return p.match(c.Params) }) {
			continue
		}
		for _, key := range c.Unsupported() {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
			if v := c.Protocol.String(); !slices.Contains(versions, v) {
				versions = append(versions, v)
			}
		}
	}
	if keys == nil {
		return nil
	}
	return []result.Warning{{
		Code: result.CodeMQTT5Only, Message: fmt.Sprintf("the cases of MQTT %s leave out %s, which only MQTT 5 has", strings.Join(versions, " and "), strings.Join(keys, ", ")),
		Hint: "measure only MQTT 5 with --protocol 5",
	}}
}

// checkProperties rejects properties that break a rule of the standard, or leave
// nothing to receive.
func checkProperties(c *Case, fail failer) {
	p := &c.Clients.Properties
	if c.Protocol != packet.V5 {
		return
	}
	if p.PayloadFormat == PayloadUTF8 && c.Load.PublisherClients() > 0 {
		checkWellFormed(c, fail)
	}
	switch {
	case p.NoLocal && c.Load.Share != "":
		fail("no_local", "a shared subscription cannot have no_local [MQTT-3.8.3-4]: remove no_local or share")
	case p.NoLocal && c.Load.Shape.Combined:
		fail("no_local", "no_local with shape loopback leaves no receivers: every client would get only its own messages")
	}
	if err := checkResponseTopic(p.ResponseTopic); err == nil && p.ResponseTopic != "" {
		// Its variables may hold characters that a topic cannot. [MQTT-3.3.2-14]
		if err := packet.ValidateTopicName(Expand(p.ResponseTopic, clientVars(c, maxClientNumber))); err != nil {
			fail("response_topic", "response_topic %s %s, with its client id and user name", text.Quote(p.ResponseTopic), ruleOf(err))
		}
	}
	// The limit is that of the expanded text. [MQTT5 1.5.6, 1.5.7]
	longest := c.Clients.OfPublish(clientVars(c, maxClientNumber))
	if len(longest.CorrelationData) > maxBinary {
		fail("correlation_data", "correlation_data is over MQTT's limit of 65,535 bytes, with its client id and user name")
	}
	for _, u := range longest.UserProperties {
		if len(u.Value) > maxBinary {
			fail("user_properties", "user_properties: %s is over MQTT's limit of 65,535 bytes, with its client id and user name", text.Quote(u.Name))
		}
	}
	if size := deliveredSize(c); p.MaximumPacketSize > 0 && c.Load.Publishers > 0 && c.Load.Subscribers > 0 && size > p.MaximumPacketSize {
		// [MQTT-3.1.2-25]
		fail("maximum_packet_size", "maximum_packet_size is %d, and the broker would not deliver the case's messages, packets of %d bytes: raise it or choose a smaller payload",
			p.MaximumPacketSize, size)
	}
}

// checkWellFormed rejects payloads that are not well-formed UTF-8 although the
// Payload Format Indicator says so. [MQTT5 3.3.2.3.2]
func checkWellFormed(c *Case, fail failer) {
	const says = "payload_format utf-8 says that payloads are text"
	switch {
	case !c.Payload.wellFormed():
		fail("payload_format", says+", and payload %s is not: write text:..., template:... or a file of UTF-8", text.Quote(c.Payload.Name))
	case c.Stamped():
		fail("payload_format", says+", and the ledger's stamp in their first %d bytes is not: --verify off (verify: off) sends payload %s unchanged", StampSize, text.Quote(c.Payload.Name))
	}
}

// StampSize is how many bytes of a payload the ledger's stamp takes. It replaces
// the first ones; a shorter payload has none and is only counted.
const StampSize = 8

// Stamped reports whether the messages of c carry the ledger's stamp.
func (c *Case) Stamped() bool { return c.Payload.min() >= StampSize && !c.Load.VerifyOff }

// wellFormed reports whether every message without its stamp is well-formed UTF-8.
func (p *Payload) wellFormed() bool {
	switch p.Kind {
	case PayloadFile, PayloadText, PayloadTemplate: // the fields of a template are ASCII
		return utf8.Valid(p.Data)
	}
	return p.Max() <= utf8.RuneSelf // of bytes 0, 1, 2, ...
}

// deliveredSize is the size in bytes of the longest PUBLISH that subscribers of the
// case get, without a Topic Alias.
func deliveredSize(c *Case) int {
	one := *c
	one.Clients.Properties.TopicAlias = 0
	n := remainingLength(&one)
	return 1 + packet.VarintSize(n) + n
}

// propertyLength is the Property Length of the case's longest PUBLISH.
func propertyLength(c *Case) int {
	p := c.Clients.OfPublish(clientVars(c, maxClientNumber))
	if id := c.Clients.Properties.SubscriptionIdentifier; id > 0 {
		p.SubscriptionIDs = []uint32{uint32(id)} // added by the broker
	}
	raw, err := packet.AppendProperties(nil, packet.PUBLISH, &p)
	if err != nil {
		return 0 // another check reports the cause
	}
	if c.Clients.Properties.TopicAlias > 0 {
		return len(raw) + 3
	}
	return len(raw)
}
