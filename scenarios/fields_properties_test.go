package scenarios

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// properties has every key of Properties.
const properties = `matrix: {protocol: "5", payload: "text:hi"}
clients:
  topic_alias: 16
  topic_alias_maximum: 8
  receive_maximum: 20
  maximum_packet_size: 1000
  message_expiry: 60s
  content_type: text/plain; charset=utf-8
  response_topic: "re/%c/%i"
  correlation_data: "%u-%r"
  payload_format: utf-8
  subscription_identifier: 300
  request_problem_information: false
  request_response_information: true
  no_local: true
  retain_as_published: true
  retain_handling: 2
  user_properties: {TraceId: "%c-%i 100%%", "%i": "%u%r"}
`

func TestProperties(t *testing.T) {
	s := parse(t, properties)
	for _, f := range propertyFields() {
		if s.places[f.key] == (place{}) {
			t.Errorf("%s is not in the test", f.key)
		}
	}
	c := casesOf(t, s)[0]
	want := Properties{
		TopicAlias: 16, TopicAliasMaximum: 8, ReceiveMaximum: 20, MaximumPacketSize: 1000, NoProblemInformation: true, ResponseInformation: true,
		MessageExpiry: time.Minute, ContentType: "text/plain; charset=utf-8", ResponseTopic: "re/%c/%i", CorrelationData: "%u-%r", PayloadFormat: PayloadUTF8,
		SubscriptionIdentifier: 300, NoLocal: true, RetainAsPublished: true, RetainHandling: 2,
	}
	if got := c.Clients.Properties; got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	vars := Vars{I: 7, C: "dev7", U: "me", R: "abc"}
	if got, want := c.Clients.OfPublish(vars), (packet.Properties{
		PayloadFormat: new(byte(1)), MessageExpiry: new(uint32(60)), ContentType: new("text/plain; charset=utf-8"), ResponseTopic: new("re/dev7/7"),
		CorrelationData: []byte("me-abc"), UserProperties: []packet.UserProperty{{Name: "TraceId", Value: "dev7-7 100%"}, {Name: "%i", Value: "meabc"}},
	}); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	var hello, publisher packet.Properties
	c.Clients.Properties.OfConnect(&hello, false)
	c.Clients.Properties.OfConnect(&publisher, true)
	info := packet.Properties{RequestProblemInfo: new(byte), RequestResponseInfo: new(byte(1))}
	if !reflect.DeepEqual(publisher, info) {
		t.Errorf("CONNECT of a publisher: %+v", publisher)
	}
	info.TopicAliasMaximum, info.ReceiveMaximum, info.MaximumPacketSize = new(uint16(8)), new(uint16(20)), new(uint32(1000))
	if !reflect.DeepEqual(hello, info) {
		t.Errorf("CONNECT: %+v", hello)
	}
	if got := c.Clients.OfPublish(Vars{}); *got.ResponseTopic != "re//0" || got.TopicAlias != nil {
		t.Errorf("%+v", got)
	}
}

// TestPropertiesAbsent: nothing is sent, shown or hashed that nobody asked for.
func TestPropertiesAbsent(t *testing.T) {
	plain := parse(t, "matrix: {protocol: 5}")
	c := casesOf(t, plain)[0]
	if got := c.Clients.OfPublish(Vars{}); !got.IsZero() {
		t.Errorf("PUBLISH with %+v", got)
	}
	var hello packet.Properties
	if c.Clients.Properties.OfConnect(&hello, false); !hello.IsZero() {
		t.Errorf("CONNECT with %+v", hello)
	}
	if keys := c.MQTT5Keys(); keys != nil {
		t.Errorf("asked for %v", keys)
	}
	defaults := parse(t, "matrix: {protocol: 5}\nclients: {topic_alias: 0, topic_alias_maximum: 0, message_expiry: 0s, content_type: '', response_topic: '', correlation_data: '', request_problem_information: true, request_response_information: false, no_local: false, retain_as_published: false, retain_handling: 0}")
	if plain.Hash() != defaults.Hash() {
		t.Error("the defaults, written, have another hash")
	}
	if plain.Hash() == parse(t, "matrix: {protocol: 5}\nclients: {topic_alias: 1}").Hash() {
		t.Error("an alias has the hash of none")
	}
}

// TestPropertiesEffective: what is in force is a scenario file with the same meaning.
func TestPropertiesEffective(t *testing.T) {
	s := parse(t, properties)
	text, err := json.Marshal(s.Effective())
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("again.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	a, b := casesOf(t, s)[0], casesOf(t, again)[0]
	if !reflect.DeepEqual(a.Clients, b.Clients) || s.Hash() != again.Hash() {
		t.Errorf("got  %+v\nwant %+v", b.Clients, a.Clients)
	}
}

// TestPropertyAxes: numbers and switches may be axes; a flag's single value is
// one for every case.
func TestPropertyAxes(t *testing.T) {
	s := parse(t, "matrix: {protocol: 5, topic_alias: [0, 16], retain_as_published: [false, true]}")
	cases := casesOf(t, s)
	if len(cases) != 4 || cases[3].Clients.Properties.TopicAlias != 16 || !cases[3].Clients.Properties.RetainAsPublished || cases[0].MQTT5Keys() != nil ||
		!strings.Contains(cases[3].ID, "topic_alias=16/retain_as_published=true") {
		t.Errorf("%d cases, the last %s", len(cases), cases[len(cases)-1].ID)
	}
	s = parse(t, "matrix: {protocol: 5}")
	if err := s.Set("topic-alias", "0,4"); err != nil {
		t.Fatal(err)
	}
	if n := len(casesOf(t, s)); n != 2 {
		t.Errorf("%d cases of two values", n)
	}
	if err := s.Set("topic-alias", "4"); err != nil {
		t.Fatal(err)
	}
	if cases := casesOf(t, s); len(cases) != 1 || strings.Contains(cases[0].ID, "topic_alias") || cases[0].Clients.Properties.TopicAlias != 4 {
		t.Errorf("%+v", cases)
	}
}

func TestPropertyFaults(t *testing.T) {
	const five = "matrix: {protocol: 5}\nclients: "
	long := strings.Repeat("u", 40_000)
	for name, tt := range map[string]struct{ text, want string }{
		"alias":            {five + "{topic_alias: 65536}", "x.yaml:2: topic_alias 65536: topic_alias must be a whole number from 0 to 65535"},
		"receive":          {five + "{receive_maximum: 0}", "x.yaml:2: receive_maximum 0: receive_maximum must be a whole number from 1 to 65535"},
		"packet size":      {five + "{maximum_packet_size: 4294967296}", "x.yaml:2: maximum_packet_size 4294967296: maximum_packet_size must be a whole number from 5 to 4294967295"},
		"small packets":    {five + "{maximum_packet_size: 20}", "x.yaml:2: maximum_packet_size is 20, and the broker would not deliver the case's messages, packets of 34 bytes: raise it or choose a smaller payload"},
		"identifier":       {five + "{subscription_identifier: 268435456}", "x.yaml:2: subscription_identifier 268435456: subscription_identifier must be a whole number from 1 to 268435455"},
		"expiry":           {five + "{message_expiry: 1.5s}", "x.yaml:2: message_expiry 1.5s: message_expiry must be whole seconds: MQTT carries no fractions"},
		"wildcard":         {five + "{response_topic: a/+}", "x.yaml:2: response_topic a/+: response_topic must not contain a wildcard, + or # [MQTT-3.3.2-2]"},
		"client's":         {five + "{response_topic: re/%u, username: 'a#'}", "x.yaml:2: response_topic re/%u must not contain a wildcard, + or # [MQTT-3.3.2-2], with its client id and user name"},
		"variable":         {five + "{correlation_data: '%s'}", "x.yaml:2: correlation_data %s: correlation_data cannot use %s: it can use %i, %c, %u, %r"},
		"hexadecimal":      {five + "{correlation_data: 'hex:0'}", "x.yaml:2: correlation_data hex:0: correlation_data after hex: must be pairs of hexadecimal digits, such as hex:00ff"},
		"content type":     {five + "{content_type: \"a\\0\"}", `x.yaml:2: content_type "a\x00": content_type contains U+0000 [MQTT-1.5.4-2]`},
		"small CONNACK":    {five + "{maximum_packet_size: 4}", "x.yaml:2: maximum_packet_size 4: maximum_packet_size must be a whole number from 5 to 4294967295"},
		"message's":        {five + "{user_properties: {a: '%s'}}", "x.yaml:2: user_properties a=%s: user_properties cannot use %s: it can use %i, %c, %u, %r"},
		"long correlation": {five + "{correlation_data: '%u%u', username: " + long + "}", "x.yaml:2: correlation_data is over MQTT's limit of 65,535 bytes, with its client id and user name"},
		"long property":    {five + "{user_properties: {a: '%u%u'}, username: " + long + "}", "x.yaml:2: user_properties: a is over MQTT's limit of 65,535 bytes, with its client id and user name"},
		"format":           {five + "{payload_format: utf8}", "x.yaml:2: payload_format utf8: payload_format must be bytes or utf-8"},
		"retain":           {five + "{retain_handling: 3}", "x.yaml:2: retain_handling 3: retain_handling must be a whole number from 0 to 2"},
		"shared":           {five + "{no_local: true}\nload: {share: g}", "x.yaml:2: a shared subscription cannot have no_local [MQTT-3.8.3-4]: remove no_local or share"},
		"shared filter":    {five + "{no_local: true}\nload: {filter: $share/g/t}", "x.yaml:2: a shared subscription cannot have no_local [MQTT-3.8.3-4]: remove no_local or share"},
		"loopback":         {five + "{no_local: true}\nload: {shape: loopback}", "x.yaml:2: no_local with shape loopback leaves no receivers: every client would get only its own messages"},
		"stamped text":     {"matrix: {protocol: 5, payload: 10}\nclients: {payload_format: utf-8}", "x.yaml:2: payload_format utf-8 says that payloads are text, and the ledger's stamp in their first 8 bytes is not: --verify off (verify: off) sends payload 10 unchanged"},
		"no text":          {"matrix: {protocol: 5, payload: 129}\nclients: {payload_format: utf-8}\nload: {verify: off}", "x.yaml:2: payload_format utf-8 says that payloads are text, and payload 129 is not: write text:..., template:... or a file of UTF-8"},
		"list":             {five + "{retain_handling: [0, 1]}", "x.yaml:2: retain_handling takes one value in clients: list it in matrix to make it an axis"},
		"twice":            {"matrix: {protocol: 5, topic_alias: [0, 1]}\nclients: {topic_alias: 2}", "x.yaml:2: topic_alias is in matrix and in clients: keep one"},
		"before MQTT 5":    {"clients: {topic_alias: 2, content_type: a}", "x.yaml:1: topic_alias needs protocol 5, and the matrix has only 3.1.1: add 5 to protocol or remove topic_alias\nx.yaml:1: content_type needs protocol 5, and the matrix has only 3.1.1: add 5 to protocol or remove content_type"},
		"MQTT 5 left out":  {"matrix: {protocol: [3.1.1, 5]}\nclients: {topic_alias: 2}\nexclude: [protocol=5]", "x.yaml:2: topic_alias needs protocol 5, and the matrix has only 3.1.1: add 5 to protocol or remove topic_alias"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Parse("x.yaml", []byte(tt.text))
			if err == nil {
				_, err = s.Cases()
			}
			checkErrors(t, err, strings.Split(tt.want, "\n")...)
		})
	}
}

// TestWellFormed: payloads that may go with the promise that they are UTF-8.
func TestWellFormed(t *testing.T) {
	for payload, want := range map[string]bool{
		"0": true, "7": true, "128": true, "129": false, "text:grüße": true, "text:\xff": false, "uniform:1-7": true, "uniform:100-200": false,
		"template:ü %s %t %x": true, "template:\xc3%s": false,
	} {
		p, err := ParsePayload(payload)
		if err != nil {
			t.Fatal(err)
		}
		if p.wellFormed() != want {
			t.Errorf("%q: well-formed %v", payload, !want)
		}
	}
}

// TestUnsupportedKeys: in a matrix of several versions those before MQTT 5 leave them out,
// and that is said.
func TestUnsupportedKeys(t *testing.T) {
	s := parse(t, "matrix: {protocol: [3.1, 3.1.1, 5]}\nclients: {topic_alias: 2, content_type: a}\nexclude: [protocol=3.1]")
	cases := casesOf(t, s)
	if got := cases[0].Unsupported(); !slices.Equal(got, []string{"topic_alias", "content_type"}) || cases[1].Unsupported() != nil {
		t.Errorf("%v and %v", got, cases[1].Unsupported())
	}
	warnings := s.Warnings()
	if len(warnings) != 1 || warnings[0].Message != "the cases of MQTT 3.1.1 leave out topic_alias, content_type, which only MQTT 5 has" {
		t.Errorf("%+v", warnings)
	}
	if w := parse(t, properties).Warnings(); len(w) != 0 {
		t.Errorf("%+v", w)
	}
}
