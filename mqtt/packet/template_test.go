package packet

import (
	"bytes"
	"errors"
	"testing"
)

// A template appends the same bytes as Append does with the same identifier.
func TestTemplate(t *testing.T) {
	for _, v := range versions {
		for qos := range byte(3) {
			for _, payload := range []int{0, 10, 200, 20000} {
				p := Publish{QoS: qos, Retain: payload == 10, Topic: []byte("a/b/c"), Payload: bytes.Repeat([]byte("x"), payload)}
				if v == V5 {
					props := Properties{UserProperties: []UserProperty{{"a", "b"}}}
					if err := p.SetProperties(&props); err != nil {
						t.Fatal(err)
					}
				}
				checkTemplate(t, &p, v)
			}
		}
	}
}

func checkTemplate(t *testing.T, p *Publish, v Version) {
	tmpl, err := NewTemplate(p, v)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []uint16{1, 255, 256, 65535} {
		p.PacketID = id
		want, err := p.Append([]byte("before"), v)
		if err != nil {
			t.Fatal(err)
		}
		got := tmpl.Append([]byte("before"), id)
		if !bytes.Equal(got, want) {
			t.Fatalf("version %s, QoS %d:\n got % x\nwant % x", v, p.QoS, got, want)
		}
		if tmpl.Size() != len(want)-6 || tmpl.QoS() != p.QoS || tmpl.PayloadLen() != len(p.Payload) {
			t.Errorf("size %d, QoS %d, payload %d", tmpl.Size(), tmpl.QoS(), tmpl.PayloadLen())
		}
		if !bytes.Equal(got[6+tmpl.PayloadOffset():], p.Payload) {
			t.Error("PayloadOffset does not point at the payload")
		}
	}
}

func TestTemplateInvalid(t *testing.T) {
	for name, p := range map[string]*Publish{
		"wildcard": {Topic: []byte("a/#")}, "QoS 3": {Topic: []byte("a"), QoS: 3}, "no topic": {},
	} {
		if _, err := NewTemplate(p, V311); err == nil {
			t.Errorf("%s: no error", name)
		} else if _, ok := errors.AsType[*InvalidError](err); !ok {
			t.Errorf("%s: %T", name, err)
		}
	}
}
