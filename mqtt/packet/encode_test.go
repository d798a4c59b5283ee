package packet

import (
	"errors"
	"strings"
	"testing"
)

// An invalid packet is an error, and dst is returned unchanged.
func TestAppendRefuses(t *testing.T) {
	long := strings.Repeat("a", 65536)
	topic := []byte("t")
	one := []Subscription{{Filter: "a"}}
	every, five := []Version{V31, V311, V5}, []Version{V5}
	for name, c := range map[string]struct {
		p codec
		v []Version
	}{
		"connect version 6":         {&connectCodec{Connect{ClientID: "c"}}, []Version{6}},
		"connect password alone":    {&connectCodec{Connect{ClientID: "c", HasPassword: true}}, []Version{V311}},
		"connect no client id":      {&connectCodec{Connect{}}, []Version{V311}},
		"connect 3.1 no client id":  {&connectCodec{Connect{CleanStart: true}}, []Version{V31}},
		"connect long client id":    {&connectCodec{Connect{ClientID: long}}, every},
		"connect client id":         {&connectCodec{Connect{ClientID: "\xff"}}, every},
		"connect NUL in client id":  {&connectCodec{Connect{ClientID: "a\x00"}}, every},
		"connect NUL in user":       {&connectCodec{Connect{ClientID: "c", HasUsername: true, Username: "\x00"}}, every},
		"connect control in user":   {&connectCodec{Connect{ClientID: "c", HasUsername: true, Username: "a\n"}}, every},
		"connect long password":     {&connectCodec{Connect{ClientID: "c", HasUsername: true, HasPassword: true, Password: []byte(long)}}, every},
		"connect will QoS 3":        {&connectCodec{Connect{ClientID: "c", Will: &Will{Topic: "t", QoS: 3}}}, every},
		"connect user not UTF-8":    {&connectCodec{Connect{ClientID: "c", HasUsername: true, Username: "\xff"}}, every},
		"connect will not UTF-8":    {&connectCodec{Connect{ClientID: "c", Will: &Will{Topic: "\xff"}}}, every},
		"connect will wildcard":     {&connectCodec{Connect{ClientID: "c", Will: &Will{Topic: "#"}}}, every},
		"connect will no topic":     {&connectCodec{Connect{ClientID: "c", Will: &Will{}}}, every},
		"connect auth data alone":   {&connectCodec{Connect{ClientID: "c", Properties: Properties{AuthData: []byte{1}}}}, five},
		"connack session refused":   {&Connack{SessionPresent: true, Code: ReasonNotAuthorized}, five},
		"connack 3.1.1 code 6":      {&Connack{Code: 6}, []Version{V311}},
		"connack 5 code 1":          {&Connack{Code: 1}, five},
		"publish version 0":         {&Publish{Topic: topic}, []Version{0}},
		"publish QoS 3":             {&Publish{Topic: topic, QoS: 3, PacketID: 1}, every},
		"publish dup at QoS 0":      {&Publish{Topic: topic, Dup: true}, every},
		"publish no id":             {&Publish{Topic: topic, QoS: 1}, every},
		"publish no topic":          {&Publish{}, every},
		"publish 3.1.1 alias":       {&Publish{RawProperties: []byte{35, 0, 1}}, []Version{V311}},
		"publish wildcard":          {&Publish{Topic: []byte("a/+")}, every},
		"publish long topic":        {&Publish{Topic: []byte(long)}, every},
		"ack type":                  {&Ack{Type: SUBACK, PacketID: 1}, every},
		"ack no id":                 {&Ack{Type: PUBACK}, every},
		"ack code":                  {&Ack{Type: PUBREL, PacketID: 1, Code: ReasonNotAuthorized}, five},
		"subscribe nothing":         {&Subscribe{PacketID: 1}, every},
		"subscribe no id":           {&Subscribe{Subscriptions: one}, every},
		"subscribe QoS 3":           {&Subscribe{PacketID: 1, Subscriptions: []Subscription{{Filter: "a", QoS: 3}}}, every},
		"subscribe retain handling": {&Subscribe{PacketID: 1, Subscriptions: []Subscription{{Filter: "a", RetainHandling: 3}}}, five},
		"subscribe 3.1.1 options":   {&Subscribe{PacketID: 1, Subscriptions: []Subscription{{Filter: "a", NoLocal: true}}}, []Version{V311}},
		"subscribe no local share":  {&Subscribe{PacketID: 1, Subscriptions: []Subscription{{Filter: "$share/g/a", NoLocal: true}}}, five},
		"subscribe filter":          {&Subscribe{PacketID: 1, Subscriptions: []Subscription{{Filter: "a#"}}}, every},
		"subscribe long filter":     {&Subscribe{PacketID: 1, Subscriptions: []Subscription{{Filter: long}}}, every},
		"subscribe not UTF-8":       {&Subscribe{PacketID: 1, Subscriptions: []Subscription{{Filter: "\xff"}}}, every},
		"unsubscribe not UTF-8":     {&Unsubscribe{PacketID: 1, Filters: []string{"\xff"}}, every},
		"suback nothing":            {&Suback{PacketID: 1}, every},
		"suback 3.1.1 code":         {&Suback{PacketID: 1, Codes: []ReasonCode{0x87}}, []Version{V311}},
		"suback code":               {&Suback{PacketID: 1, Codes: []ReasonCode{3}}, five},
		"unsubscribe nothing":       {&Unsubscribe{PacketID: 1}, every},
		"unsubscribe filter":        {&Unsubscribe{PacketID: 1, Filters: []string{""}}, every},
		"unsuback nothing":          {&Unsuback{PacketID: 1}, five},
		"disconnect code":           {&Disconnect{Code: ReasonBanned}, five},
		"disconnect property":       {&Disconnect{Properties: Properties{ReceiveMaximum: new(uint16(1))}}, five},
		"auth 3.1.1":                {&Auth{}, []Version{V311}},
		"auth no method":            {&Auth{Code: ReasonContinueAuthentication}, five},
	} {
		for _, v := range c.v {
			if connect, ok := c.p.(*connectCodec); ok {
				connect.Version = v
			}
			got, err := c.p.Append([]byte("dst"), v)
			bad, ok := errors.AsType[*InvalidError](err)
			if !ok || string(got) != "dst" {
				t.Errorf("%s in %s: %q, %v", name, v, got, err)
				continue
			}
			if bad.Field == "" || bad.Rule == "" || !strings.Contains(bad.Error(), bad.Rule) {
				t.Errorf("%s in %s: %#v", name, v, bad)
			}
		}
	}
}

// Properties and codes that only MQTT 5 has are left out in 3.x.
func TestAppendLeavesOutOf3(t *testing.T) {
	props := Properties{UserProperties: []UserProperty{{"k", "v"}}}
	for want, p := range map[string]codec{
		"\x20\x02\x00\x00":          &Connack{Properties: props},
		"\x30\x03\x00\x01t":         &Publish{Topic: []byte("t"), RawProperties: []byte{1, 1}},
		"\x40\x02\x00\x01":          &Ack{Type: PUBACK, PacketID: 1, Code: ReasonNotAuthorized, Properties: props},
		"\x90\x03\x00\x01\x00":      &Suback{PacketID: 1, Codes: []ReasonCode{0}, Properties: props},
		"\xb0\x02\x00\x01":          &Unsuback{PacketID: 1, Codes: []ReasonCode{0}, Properties: props},
		"\xa2\x05\x00\x01\x00\x01a": &Unsubscribe{PacketID: 1, Filters: []string{"a"}, Properties: props},
		"\xe0\x00":                  &Disconnect{Code: ReasonServerBusy, Properties: props},
	} {
		if got, err := p.Append(nil, V311); err != nil || string(got) != want {
			t.Errorf("%T: % x, %v, want % x", p, got, err, want)
		}
	}
}

// The size is checked before anything is copied, so this test needs no 256 MB.
func TestAppendTooLarge(t *testing.T) {
	p := Publish{Topic: []byte("t")}
	if err := p.check(V311, MaxRemainingLength); err != nil {
		t.Error(err)
	}
	if _, ok := errors.AsType[*InvalidError](p.check(V311, MaxRemainingLength+1)); !ok {
		t.Error("a remaining length of 268435456 was let through")
	}
}

// Every error names the packet and the rule. After an error in CONNECT the version is
// still known.
func TestErrorTexts(t *testing.T) {
	_, err := decode([]byte("\x40\x02\x00\x00"), V5)
	if want := "decode PUBACK: byte 2: packet identifier must not be 0 [MQTT-2.2.1-3]"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = decode([]byte("\x40\x03\x00\x01\x95"), V5)
	if want := "decode PUBACK: byte 4: reason code is not allowed in this packet: 0x95, Packet too large"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = (&Publish{QoS: 1, Topic: []byte("t")}).Append(nil, V5)
	if want := "encode PUBLISH: packet identifier: must not be 0 [MQTT-2.2.1-3]"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := ValidateTopicName(""); err == nil || err.Error() != "topic name: must not be empty [MQTT-4.7.3-1]" {
		t.Errorf("got %v", err)
	}
	var c Connect
	f, _, _ := scan([]byte("\x10\x0d\x00\x04MQTT\x06\x02\x00\x3c\x00\x01c"), V5)
	if err := c.Decode(f); err == nil || c.Version != 6 {
		t.Errorf("version %d, %v", c.Version, err)
	}
}

// A decoder rejects a packet of another type.
func TestDecodeWrongType(t *testing.T) {
	for typ := CONNECT; typ <= AUTH; typ++ {
		f := Frame{First: firstByte(typ%15 + 1)}
		if typ >= PUBACK && typ < PUBCOMP {
			f.First = firstByte(CONNECT)
		}
		if typ == PINGREQ {
			f.First = firstByte(DISCONNECT)
		}
		err := newCodec(typ).Decode(f, V5)
		if bad, ok := errors.AsType[*MalformedError](err); !ok || !strings.Contains(bad.Rule, "packet is ") {
			t.Errorf("%s: %v", typ, err)
		}
	}
}

// TestDecodeFlags: [MQTT-2.1.3-1] a decoder checks the flags too, because the scanner of
// a broker does not know the version before CONNECT. 3.1 does not use them.
func TestDecodeFlags(t *testing.T) {
	for typ := CONNACK; typ <= DISCONNECT; typ++ {
		if typ == PUBLISH {
			continue
		}
		f := Frame{First: firstByte(typ) ^ 1, Body: []byte{0, 1, 0, 1, 'a', 0}}
		for _, v := range []Version{V31, V311, V5} {
			err := newCodec(typ).Decode(f, v)
			bad, ok := errors.AsType[*MalformedError](err)
			if got := ok && strings.Contains(bad.Rule, "MQTT-2.1.3-1"); got != (v != V31) {
				t.Errorf("%s in %s: %v", typ, v, err)
			}
		}
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		ReasonNotAuthorized.String():                    "Not authorized",
		ReasonCode(0x55).String():                       "ReasonCode(0x55)",
		ConnackReturnString(5):                          "Connection Refused, not authorized",
		ConnackReturnString(6):                          "ReturnCode(6)",
		Type(3).String():                                "PUBLISH",
		V311.String():                                   "3.1.1",
		Format(Frame{First: 0xc0, Body: []byte{0}}, V5): "PINGREQ malformed at byte 2: bytes follow the end of the packet",
		Format(Frame{First: 0x00, Body: nil}, V311):     "RESERVED malformed at byte 0: packet type 0 is reserved",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if ReasonCode(0x7f).IsError() || !ReasonUnspecifiedError.IsError() {
		t.Error("0x80 and above are errors")
	}
	named := 0
	for c := range 256 {
		if !strings.HasPrefix(ReasonCode(c).String(), "ReasonCode(") {
			named++
		}
	}
	if named != 43 {
		t.Errorf("%d named reason codes, table 2-6 has 43 values", named)
	}
}
