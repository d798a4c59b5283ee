package packet

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// table24 is table 2-4 of MQTT 5, written out: identifier, type, packets.
const table24 = `
1  byte   PUBLISH WILL
2  four   PUBLISH WILL
3  text   PUBLISH WILL
8  text   PUBLISH WILL
9  binary PUBLISH WILL
11 var    PUBLISH SUBSCRIBE
17 four   CONNECT CONNACK DISCONNECT
18 text   CONNACK
19 two    CONNACK
21 text   CONNECT CONNACK AUTH
22 binary CONNECT CONNACK AUTH
23 byte   CONNECT
24 four   WILL
25 byte   CONNECT
26 text   CONNACK
28 text   CONNACK DISCONNECT
31 text   CONNACK PUBACK PUBREC PUBREL PUBCOMP SUBACK UNSUBACK DISCONNECT AUTH
33 two    CONNECT CONNACK
34 two    CONNECT CONNACK
35 two    PUBLISH
36 byte   CONNACK
37 byte   CONNACK
38 pair   CONNECT CONNACK PUBLISH WILL PUBACK PUBREC PUBREL PUBCOMP SUBSCRIBE SUBACK UNSUBSCRIBE UNSUBACK DISCONNECT AUTH
39 four   CONNECT CONNACK
40 byte   CONNACK
41 byte   CONNACK
42 byte   CONNACK`

var sampleValue = map[string]string{
	"byte": "\x01", "two": "\x00\x01", "four": "\x00\x00\x00\x01", "var": "\x01",
	"text": "\x00\x01t", "binary": "\x00\x01b", "pair": "\x00\x01k\x00\x01v",
}

// Every property in every packet, allowed or not, alone, twice and truncated.
func TestPropertyTable(t *testing.T) {
	rows := map[int][]string{}
	for _, line := range strings.Split(strings.TrimSpace(table24), "\n") {
		words := strings.Fields(line)
		var id int
		if _, err := fmt.Sscan(words[0], &id); err != nil {
			t.Fatal(err)
		}
		rows[id] = words[1:]
	}
	if len(rows) != 27 {
		t.Fatalf("%d properties", len(rows))
	}
	for typ := WillProperties; typ <= AUTH; typ++ {
		name := typ.String()
		if typ == WillProperties {
			name = "WILL"
		}
		for id := range 128 {
			row := rows[id]
			if row == nil {
				checkProperty(t, typ, []byte{byte(id), 1}, false)
				continue
			}
			raw := append([]byte{byte(id)}, sampleValue[row[0]]...)
			allowed := slices.Contains(row[1:], name)
			alone := id != 22 || typ != CONNECT // Authentication Data needs a method
			checkProperty(t, typ, raw, allowed && alone)
			checkProperty(t, typ, raw[:len(raw)-1], false)
			twice := id == 38 || id == 11 && typ == PUBLISH
			checkProperty(t, typ, append(raw, raw...), allowed && twice)
		}
	}
}

// checkProperty decodes raw and encodes the result.
func checkProperty(t *testing.T, typ Type, raw []byte, want bool) {
	t.Helper()
	var p Properties
	err := ParseProperties(&p, typ, raw)
	if (err == nil) != want {
		t.Errorf("%s: % x: %v, want legal=%v", typ, raw, err, want)
		return
	}
	if err != nil {
		if _, ok := errors.AsType[*MalformedError](err); !ok {
			t.Errorf("%s: % x: %T", typ, raw, err)
		}
		return
	}
	if p.IsZero() {
		t.Errorf("% x: IsZero", raw)
	}
	got, err := AppendProperties([]byte("x"), typ, &p)
	if err != nil || !bytes.Equal(got[1:], raw) {
		t.Errorf("%s: % x encoded as % x, %v", typ, raw, got, err)
	}
}

// The encoder rejects a property that the packet must not have.
func TestAppendPropertiesRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		t Type
		p Properties
	}{
		"wrong packet":         {PUBACK, Properties{TopicAlias: new(uint16(1))}},
		"alias 0":              {PUBLISH, Properties{TopicAlias: new(uint16(0))}},
		"identifier 0":         {SUBSCRIBE, Properties{SubscriptionIDs: []uint32{0}}},
		"identifier too large": {PUBLISH, Properties{SubscriptionIDs: []uint32{MaxRemainingLength + 1}}},
		"two identifiers":      {SUBSCRIBE, Properties{SubscriptionIDs: []uint32{1, 2}}},
		"receive maximum 0":    {CONNECT, Properties{ReceiveMaximum: new(uint16(0))}},
		"packet size 0":        {CONNECT, Properties{MaximumPacketSize: new(uint32(0))}},
		"maximum QoS 2":        {CONNACK, Properties{MaximumQoS: new(byte(2))}},
		"boolean 2":            {CONNACK, Properties{RetainAvailable: new(byte(2))}},
		"bad text":             {CONNACK, Properties{ReasonString: new("\xff")}},
		"long text":            {CONNACK, Properties{ReasonString: new(strings.Repeat("a", 65536))}},
		"long data":            {PUBLISH, Properties{CorrelationData: make([]byte, 65536)}},
		"NUL in a name":        {PUBLISH, Properties{UserProperties: []UserProperty{{"\x00", ""}}}},
		"wildcard":             {PUBLISH, Properties{ResponseTopic: new("a/#")}},
		"data without method":  {CONNECT, Properties{AuthData: []byte{1}}},
	} {
		got, err := AppendProperties([]byte("dst"), c.t, &c.p)
		if _, ok := errors.AsType[*InvalidError](err); !ok || string(got) != "dst" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Every field of Properties is encoded and decoded.
func TestPropertiesFields(t *testing.T) {
	for _, typ := range []Type{WillProperties, CONNECT, CONNACK, PUBLISH, SUBSCRIBE} {
		typ := typ
		t.Run(typ.String(), func(t *testing.T) {
			var p, q Properties
			fields := fill(t, typ, &p)
			raw, err := AppendProperties(nil, typ, &p)
			if err != nil {
				t.Fatal(err)
			}
			if err := ParseProperties(&q, typ, raw); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(p, q) || fields == 0 {
				t.Errorf("%d fields:\n got %+v\nwant %+v", fields, q, p)
			}
		})
	}
	if n := reflect.TypeFor[Properties]().NumField(); n != 27 {
		t.Errorf("%d fields for 27 properties", n)
	}
}

// fill sets every field that typ may have, by trying one at a time.
func fill(t *testing.T, typ Type, p *Properties) (fields int) {
	for i := range reflect.TypeFor[Properties]().NumField() {
		var one Properties
		setField(reflect.ValueOf(&one).Elem().Field(i))
		if one.IsZero() {
			t.Fatalf("field %d is not looked at by IsZero", i)
		}
		if _, err := AppendProperties(nil, typ, &one); err == nil || typ == CONNECT && one.AuthData != nil {
			setField(reflect.ValueOf(p).Elem().Field(i))
			fields++
		}
	}
	return fields
}

func setField(f reflect.Value) {
	switch f.Interface().(type) {
	case *string:
		f.Set(reflect.ValueOf(new("text")))
	case *byte:
		f.Set(reflect.ValueOf(new(byte(1))))
	case *uint16:
		f.Set(reflect.ValueOf(new(uint16(513))))
	case *uint32:
		f.Set(reflect.ValueOf(new(uint32(16909060))))
	case []byte:
		f.SetBytes([]byte{0, 1, 255})
	case []uint32:
		f.Set(reflect.ValueOf([]uint32{300}))
	case []UserProperty:
		f.Set(reflect.ValueOf([]UserProperty{{"a", "1"}, {"a", "2"}}))
	}
}

// Decoded properties must not point into the buffer.
func TestPropertiesOwnTheirMemory(t *testing.T) {
	raw := []byte("\x03\x00\x01c\x09\x00\x01d\x26\x00\x01k\x00\x01v")
	var p Properties
	if err := ParseProperties(&p, PUBLISH, raw); err != nil {
		t.Fatal(err)
	}
	clear(raw)
	if *p.ContentType != "c" || string(p.CorrelationData) != "d" || p.UserProperties[0] != (UserProperty{"k", "v"}) {
		t.Errorf("%+v", p)
	}
}

// A broker that forwards a message decodes its properties, changes them and sets them.
func TestPublishProperties(t *testing.T) {
	p := Publish{Topic: []byte("t"), RawProperties: []byte{idTopicAlias, 0, 7}}
	var props Properties
	if err := p.ParseProperties(&props); err != nil || *props.TopicAlias != 7 {
		t.Fatalf("%+v, %v", props, err)
	}
	props = Properties{SubscriptionIDs: []uint32{5}}
	if err := p.SetProperties(&props); err != nil || !bytes.Equal(p.RawProperties, []byte{idSubscriptionID, 5}) {
		t.Errorf("% x, %v", p.RawProperties, err)
	}
	if err := p.SetProperties(&Properties{TopicAlias: new(uint16(0))}); err == nil || len(p.RawProperties) != 2 {
		t.Errorf("% x, %v", p.RawProperties, err)
	}
}
