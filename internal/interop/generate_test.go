package interop

import (
	"math/rand/v2"
	"strings"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// A generator makes random packets that the standard allows, of every type and
// version, with every property. The same seed makes the same packets.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 0))} }

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

func one[T any](g generator, list ...T) T { return list[g.IntN(len(list))] }

func (g generator) id() uint16 { return uint16(1 + g.IntN(65_535)) }

// length is mostly short, and sometimes at a boundary of the encoding of lengths.
func (g generator) length() int {
	switch n := g.IntN(1000); {
	case n < 1:
		return one(g, 65_535, 65_534, 16_384, 16_383)
	case n < 40:
		return one(g, 0, 127, 128, 100+g.IntN(60))
	}
	return g.IntN(30)
}

// runes are characters of one to four bytes, a byte order mark, which is an ordinary
// character here [MQTT-1.5.4-3], and characters that end a field in other formats.
var runes = []rune("abcxyzABC0189 -_.$\"'\\%,;:äßжλ漢字😀\ufeff\u00a0")

// text is a string of at most g.length bytes that is valid in a name.
func (g generator) text() string {
	var b strings.Builder
	for n := g.length(); ; {
		r := runes[g.IntN(len(runes))]
		if b.Len()+len(string(r)) > n {
			return b.String()
		}
		b.WriteRune(r)
	}
}

func (g generator) binary() []byte {
	b := make([]byte, g.length())
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

// clip shortens s so that there is room for a prefix and a suffix.
func clip(s string) string {
	if len(s) > 60_000 {
		return s[:strings.LastIndexFunc(s[:60_000], func(r rune) bool { return r < 0x80 })+1]
	}
	return s
}

func (g generator) topic() string {
	levels := []string{"t" + clip(g.text())}
	for g.chance(50) {
		levels = append(levels, one(g, "", "level", "$x", "é"))
	}
	return strings.Join(levels, "/")
}

func (g generator) filter() string {
	return one(g, "#", "+", "/", g.topic(), g.topic()+"/#", "+/"+g.topic(), g.topic()+"/+", "+/+/#", "$share/g/"+g.topic(), "$share/ä b/#")
}

// makers has each property with the packets that may contain it. [MQTT5 table 2-4]
var makers = []struct {
	where string
	set   func(g generator, p *packet.Properties)
}{
	{"publish will", func(g generator, p *packet.Properties) { p.PayloadFormat = new(byte(g.IntN(2))) }},
	{"publish will", func(g generator, p *packet.Properties) { p.MessageExpiry = new(g.Uint32()) }},
	{"publish will", func(g generator, p *packet.Properties) { p.ContentType = new(g.text()) }},
	{"publish will", func(g generator, p *packet.Properties) { p.ResponseTopic = new(g.topic()) }},
	{"publish will", func(g generator, p *packet.Properties) { p.CorrelationData = g.binary() }},
	{"publish", func(g generator, p *packet.Properties) { p.SubscriptionIDs = g.subscriptionIDs(1 + g.IntN(3)) }},
	{"subscribe", func(g generator, p *packet.Properties) { p.SubscriptionIDs = g.subscriptionIDs(1) }},
	{"connect connack disconnect", func(g generator, p *packet.Properties) { p.SessionExpiry = new(g.Uint32()) }},
	{"connack", func(g generator, p *packet.Properties) { p.AssignedClientID = new(g.text()) }},
	{"connack", func(g generator, p *packet.Properties) { p.ServerKeepAlive = new(uint16(g.Uint32())) }},
	{"connack", func(g generator, p *packet.Properties) { p.AuthMethod = new(g.text()) }},
	{"connack", func(g generator, p *packet.Properties) { p.AuthData = g.binary() }},
	{"connect", func(g generator, p *packet.Properties) { p.AuthMethod = new(g.text()) }},
	{"connect", func(g generator, p *packet.Properties) { p.AuthMethod, p.AuthData = new(g.text()), g.binary() }},
	{"connect", func(g generator, p *packet.Properties) { p.RequestProblemInfo = new(byte(g.IntN(2))) }},
	{"will", func(g generator, p *packet.Properties) { p.WillDelay = new(g.Uint32()) }},
	{"connect", func(g generator, p *packet.Properties) { p.RequestResponseInfo = new(byte(g.IntN(2))) }},
	{"connack", func(g generator, p *packet.Properties) { p.ResponseInfo = new(g.text()) }},
	{"connack disconnect", func(g generator, p *packet.Properties) { p.ServerReference = new(g.text()) }},
	{"connack puback pubrec pubrel pubcomp suback unsuback disconnect auth",
		func(g generator, p *packet.Properties) { p.ReasonString = new(g.text()) }},
	{"connect connack", func(g generator, p *packet.Properties) { p.ReceiveMaximum = new(g.id()) }},
	{"connect connack", func(g generator, p *packet.Properties) { p.TopicAliasMaximum = new(uint16(g.Uint32())) }},
	{"publish", func(g generator, p *packet.Properties) { p.TopicAlias = new(g.id()) }},
	{"connack", func(g generator, p *packet.Properties) { p.MaximumQoS = new(byte(g.IntN(2))) }},
	{"connack", func(g generator, p *packet.Properties) { p.RetainAvailable = new(byte(g.IntN(2))) }},
	{"connect connack publish will puback pubrec pubrel pubcomp subscribe suback unsubscribe unsuback disconnect auth",
		func(g generator, p *packet.Properties) { p.UserProperties = g.userProperties() }},
	{"connect connack", func(g generator, p *packet.Properties) { p.MaximumPacketSize = new(max(g.Uint32(), 1)) }},
	{"connack", func(g generator, p *packet.Properties) { p.WildcardSubAvailable = new(byte(g.IntN(2))) }},
	{"connack", func(g generator, p *packet.Properties) { p.SubIDAvailable = new(byte(g.IntN(2))) }},
	{"connack", func(g generator, p *packet.Properties) { p.SharedSubAvailable = new(byte(g.IntN(2))) }},
}

func (g generator) subscriptionIDs(n int) (ids []uint32) {
	for range n {
		ids = append(ids, 1+uint32(g.IntN(one(g, 127, 16_383, 2_097_151, packet.MaxRemainingLength))))
	}
	return ids
}

// userProperties makes only properties that mqtt-packet can represent, by a map from
// names to values: it moves names that are numbers, puts equal names together, and
// loses the first of two values if it is empty.
func (g generator) userProperties() (list []packet.UserProperty) {
	for i := range 1 + g.IntN(3) {
		name := string(rune('a'+i)) + clip(g.text())
		list = append(list, packet.UserProperty{Name: name, Value: "v" + clip(g.text())})
		if g.chance(20) {
			list = append(list, packet.UserProperty{Name: name, Value: clip(g.text())})
		}
	}
	return list
}

func (g generator) properties(where string, v packet.Version) (p packet.Properties) {
	if v != packet.V5 || g.chance(20) {
		return p
	}
	for _, m := range makers {
		for name := range strings.FieldsSeq(m.where) {
			if name == where && g.chance(30) {
				m.set(g, &p)
			}
		}
	}
	return p
}

// reasons are the reason codes of each packet in MQTT 5.
var reasons = map[packet.Type]string{
	packet.CONNACK:    "\x00\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8c\x90\x95\x97\x99\x9a\x9b\x9c\x9d\x9f",
	packet.PUBACK:     "\x00\x10\x80\x83\x87\x90\x91\x97\x99",
	packet.PUBREC:     "\x00\x10\x80\x83\x87\x90\x91\x97\x99",
	packet.PUBREL:     "\x00\x92",
	packet.PUBCOMP:    "\x00\x92",
	packet.SUBACK:     "\x00\x01\x02\x80\x83\x87\x8f\x91\x97\x9e\xa1\xa2",
	packet.UNSUBACK:   "\x00\x11\x80\x83\x87\x8f\x91",
	packet.DISCONNECT: "\x00\x04\x80\x81\x82\x83\x87\x89\x8b\x8d\x8e\x8f\x90\x93\x94\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f\xa0\xa1\xa2",
	packet.AUTH:       "\x00\x18\x19",
}

func (g generator) code(t packet.Type, v packet.Version) packet.ReasonCode {
	switch {
	case v == packet.V5:
		return packet.ReasonCode(one(g, []byte(reasons[t])...))
	case t == packet.CONNACK:
		return packet.ReasonCode(g.IntN(6))
	case t == packet.SUBACK:
		return one[packet.ReasonCode](g, 0, 1, 2, 0x80)
	}
	return 0
}

func (g generator) codes(t packet.Type, v packet.Version) (list []packet.ReasonCode) {
	for range 1 + g.IntN(4) {
		list = append(list, g.code(t, v))
	}
	return list
}

// next makes one packet and the version it is for.
func (g generator) next() (control, packet.Version) {
	v := one(g, packet.V31, packet.V311, packet.V5, packet.V5, packet.V5)
	t := packet.Type(1 + g.IntN(15))
	if t == packet.AUTH {
		v = packet.V5
	}
	return g.packet(t, v), v
}

func (g generator) packet(t packet.Type, v packet.Version) control {
	props := g.properties(commands[t], v)
	switch t {
	case packet.CONNECT:
		return g.connect(v, props)
	case packet.CONNACK:
		code := g.code(t, v)
		// The bit has no meaning in 3.1, but mqtt-packet reads it.
		return &packet.Connack{SessionPresent: code == 0 && g.chance(50) && v != packet.V31, Code: code, Properties: props}
	case packet.PUBLISH:
		return g.publish(v, props)
	case packet.SUBSCRIBE:
		return g.subscribe(v, props)
	case packet.SUBACK:
		return &packet.Suback{PacketID: g.id(), Codes: g.codes(t, v), Properties: props}
	case packet.UNSUBSCRIBE:
		p := &packet.Unsubscribe{PacketID: g.id(), Filters: []string{g.filter()}, Properties: props}
		for g.chance(50) {
			p.Filters = append(p.Filters, g.filter())
		}
		return p
	case packet.UNSUBACK:
		p := &packet.Unsuback{PacketID: g.id(), Properties: props}
		if v == packet.V5 {
			p.Codes = g.codes(t, v)
		}
		return p
	case packet.PINGREQ, packet.PINGRESP:
		return &ping{t}
	case packet.DISCONNECT:
		return &packet.Disconnect{Code: g.code(t, v), Properties: props}
	case packet.AUTH:
		if code := g.code(t, v); code != 0 || !props.IsZero() {
			props.AuthMethod = new(g.text())
			return &packet.Auth{Code: code, Properties: props}
		}
		return &packet.Auth{}
	}
	return &packet.Ack{Type: t, PacketID: g.id(), Code: g.code(t, v), Properties: props}
}

func (g generator) connect(v packet.Version, props packet.Properties) control {
	p := packet.Connect{Version: v, CleanStart: g.chance(50), KeepAlive: uint16(g.Uint32()), ClientID: g.text(), Properties: props}
	if v == packet.V31 || v == packet.V311 && !p.CleanStart {
		p.ClientID = "c" + clip(p.ClientID)
	}
	if g.chance(50) {
		p.HasUsername, p.Username = true, g.text()
	}
	if (p.HasUsername || v == packet.V5) && g.chance(50) {
		p.HasPassword, p.Password = true, g.binary()
	}
	if g.chance(50) {
		p.Will = &packet.Will{Topic: g.topic(), Payload: g.binary(), QoS: byte(g.IntN(3)), Retain: g.chance(50), Properties: g.properties("will", v)}
	}
	return &connect{p}
}

func (g generator) publish(v packet.Version, props packet.Properties) control {
	p := &packet.Publish{QoS: byte(g.IntN(3)), Retain: g.chance(30), Topic: []byte(g.topic()), Payload: g.binary()}
	if p.QoS > 0 {
		p.PacketID, p.Dup = g.id(), g.chance(30)
	}
	if v == packet.V5 && !props.IsZero() {
		if err := p.SetProperties(&props); err != nil {
			panic(err) // the generator is wrong
		}
		if props.TopicAlias != nil && g.chance(50) {
			p.Topic = nil
		}
	}
	return p
}

func (g generator) subscribe(v packet.Version, props packet.Properties) control {
	p := &packet.Subscribe{PacketID: g.id(), Properties: props}
	for {
		s := packet.Subscription{Filter: g.filter(), QoS: byte(g.IntN(3))}
		if v == packet.V5 {
			s.NoLocal = g.chance(50) && !strings.HasPrefix(s.Filter, "$share/")
			s.RetainAsPublished, s.RetainHandling = g.chance(50), byte(g.IntN(3))
		}
		if p.Subscriptions = append(p.Subscriptions, s); g.chance(50) {
			return p
		}
	}
}
