package packet

import (
	"bytes"
	"slices"
	"testing"
)

// everything has all properties that a client may publish, and a Subscription
// Identifier.
func everything() *Properties {
	return &Properties{
		PayloadFormat: new(byte(1)), MessageExpiry: new(uint32(60)), ContentType: new("text/plain"), ResponseTopic: new("re/1"),
		CorrelationData: []byte{0, 0xff}, SubscriptionIDs: []uint32{300},
		UserProperties: []UserProperty{{"TraceId", "x"}, {"b", "1"}, {"b", "1"}, {"b", "2"}},
	}
}

func rawOf(t testing.TB, change func(*Properties)) []byte {
	t.Helper()
	p := everything()
	change(p)
	raw, err := AppendProperties(nil, PUBLISH, p)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestForwarded: Compare reports every change to properties that a server must not make,
// and none that it may make.
func TestForwarded(t *testing.T) {
	f, err := NewForwarded(everything())
	if err != nil {
		t.Fatal(err)
	}
	set := func(ids ...int) (s PropertySet) {
		for _, id := range ids {
			s |= 1 << id
		}
		return s
	}
	for name, tt := range map[string]struct {
		change           func(*Properties)
		missing, changed PropertySet
	}{
		"as it was":               {func(*Properties) {}, 0, 0},
		"an alias":                {func(p *Properties) { p.TopicAlias = new(uint16(3)) }, 0, 0},
		"waited":                  {func(p *Properties) { p.MessageExpiry = new(uint32(1)) }, 0, 0},
		"a property of its own":   {func(p *Properties) { p.UserProperties = append(p.UserProperties, UserProperty{"server", "s"}) }, 0, 0},
		"longer expiry":           {func(p *Properties) { p.MessageExpiry = new(uint32(61)) }, 0, set(idMessageExpiry)},
		"no expiry":               {func(p *Properties) { p.MessageExpiry = nil }, set(idMessageExpiry), 0},
		"content type":            {func(p *Properties) { p.ContentType = new("text/Plain") }, 0, set(idContentType)},
		"no content type":         {func(p *Properties) { p.ContentType = nil }, set(idContentType), 0},
		"response topic":          {func(p *Properties) { p.ResponseTopic = new("re/2") }, 0, set(idResponseTopic)},
		"no response topic":       {func(p *Properties) { p.ResponseTopic = nil }, set(idResponseTopic), 0},
		"correlation data":        {func(p *Properties) { p.CorrelationData = []byte{0} }, 0, set(idCorrelationData)},
		"no correlation data":     {func(p *Properties) { p.CorrelationData = nil }, set(idCorrelationData), 0},
		"payload format":          {func(p *Properties) { p.PayloadFormat = new(byte) }, 0, set(idPayloadFormat)},
		"no payload format":       {func(p *Properties) { p.PayloadFormat = nil }, set(idPayloadFormat), 0},
		"another subscription":    {func(p *Properties) { p.SubscriptionIDs = []uint32{300, 7} }, 0, set(idSubscriptionID)},
		"no subscription":         {func(p *Properties) { p.SubscriptionIDs = nil }, set(idSubscriptionID), 0},
		"no user property":        {func(p *Properties) { p.UserProperties = nil }, set(idUserProperty), 0},
		"another case of a name":  {func(p *Properties) { p.UserProperties[0].Name = "traceid" }, 0, set(idUserProperty)},
		"another case of a value": {func(p *Properties) { p.UserProperties[0].Value = "X" }, 0, set(idUserProperty)},
		"one of two like it":      {func(p *Properties) { p.UserProperties = slices.Delete(p.UserProperties, 1, 2) }, 0, set(idUserProperty)},
		"another order":           {func(p *Properties) { slices.Reverse(p.UserProperties) }, 0, set(idUserProperty)},
		"nothing": {func(p *Properties) { *p = Properties{} }, set(idPayloadFormat, idMessageExpiry, idContentType, idResponseTopic,
			idCorrelationData, idSubscriptionID, idUserProperty), 0},
	} {
		missing, changed := f.Compare(rawOf(t, tt.change))
		if missing != tt.missing || changed != tt.changed {
			t.Errorf("%s: missing %v, changed %v; want %v, %v", name, missing.IDs(), changed.IDs(), tt.missing.IDs(), tt.changed.IDs())
		}
	}
	// Properties that were not published are not compared.
	if f, err := NewForwarded(&Properties{ContentType: new("a")}); err != nil {
		t.Error(err)
	} else if missing, changed := f.Compare(rawOf(t, func(p *Properties) { p.ContentType = new("a") })); missing|changed != 0 {
		t.Errorf("missing %v, changed %v", missing.IDs(), changed.IDs())
	}
	if _, err := NewForwarded(&Properties{ResponseTopic: new("+")}); err == nil {
		t.Error("a response topic with a wildcard")
	}
}

// TestForwardedOrder: properties with different names may come in any order.
func TestForwardedOrder(t *testing.T) {
	raw := rawOf(t, func(*Properties) {})
	f, err := NewForwarded(everything())
	if err != nil {
		t.Fatal(err)
	}
	var each [][]byte
	for rest := raw; len(rest) > 0; rest = rest[PropertySize(rest):] {
		each = append(each, rest[:PropertySize(rest)])
	}
	users := len(each) - 4
	slices.Reverse(each[:users])
	turned := bytes.Join(slices.Concat(each[users:users+2], each[:users], each[users+2:]), nil)
	if missing, changed := f.Compare(turned); missing|changed != 0 {
		t.Errorf("missing %v, changed %v", missing.IDs(), changed.IDs())
	}
	if n := testing.AllocsPerRun(100, func() { f.Compare(turned); f.Compare(raw) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzPropertySize: for any properties that the decoder accepts, the sizes add up and
// agree with the decoder.
func FuzzPropertySize(f *testing.F) {
	f.Add(rawOf(f, func(p *Properties) { p.TopicAlias = new(uint16(9)); p.SubscriptionIDs = []uint32{1, 1 << 20} }))
	f.Add([]byte{0x26, 0, 0, 0, 0, 0x0b, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var p Properties
		if ParseProperties(&p, PUBLISH, raw) != nil {
			return
		}
		n := 0
		for rest := raw; len(rest) > 0; rest = rest[PropertySize(rest):] {
			n++
		}
		want := len(p.UserProperties) + len(p.SubscriptionIDs)
		for _, there := range []bool{p.PayloadFormat != nil, p.MessageExpiry != nil, p.ContentType != nil, p.ResponseTopic != nil, p.CorrelationData != nil, p.TopicAlias != nil} {
			if there {
				want++
			}
		}
		alias := uint16(0)
		if p.TopicAlias != nil {
			alias = *p.TopicAlias
		}
		if got := (&Publish{RawProperties: raw}).TopicAlias(); n != want || got != alias {
			t.Errorf("%d properties and alias %d, want %d and %d", n, got, want, alias)
		}
		same, err := NewForwarded(&p)
		if err != nil {
			t.Fatal(err)
		}
		if missing, _ := same.Compare(raw); missing != 0 {
			t.Errorf("missing %v of itself", missing.IDs())
		}
	})
}
