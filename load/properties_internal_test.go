package load

import (
	"testing"

	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
)

// planned is a launch of one case that is not connected.
func planned(t *testing.T, c *scenarios.Case) *launch {
	t.Helper()
	l := newCaseRun(New(Config{RunID: "r"}), 0, c).newLaunch()
	if err := l.plan(); err != nil {
		t.Fatal(err)
	}
	return l
}

func askingCase() *scenarios.Case {
	return &scenarios.Case{
		Protocol: packet.V5, Payload: scenarios.Payload{Size: 20},
		Load: scenarios.Load{Shape: scenarios.Pairs, Topics: 1, Publishers: 1, Subscribers: 1, TopicsPerPublisher: 1, TopicsPerSubscriber: 1, Inflight: 100},
		Clients: scenarios.Clients{
			Topic: "t", ClientID: "c%i", StartNumber: 1, UserProperties: []packet.UserProperty{{Name: "a", Value: "b"}},
			Properties: scenarios.Properties{ContentType: "x", ResponseTopic: "re/%c", SubscriptionIdentifier: 5},
		},
	}
}

// TestExpectationAllocations: checking what was asked for allocates nothing, nor
// does a broker that breaks it, but for the first example.
func TestExpectationAllocations(t *testing.T) {
	l := planned(t, askingCase())
	in, p := l.inboxes[0], l.publishers[0]
	seq := uint64(0)
	payload := make([]byte, 20)
	copy(payload, l.connector.payload)
	for name, props := range map[string]packet.Properties{
		"kept":   {UserProperties: l.spec.Clients.UserProperties, ContentType: new("x"), ResponseTopic: new("re/c2"), SubscriptionIDs: []uint32{5}},
		"broken": {ContentType: new("y"), SubscriptionIDs: []uint32{5, 6}},
	} {
		m := packet.Publish{Topic: []byte("t"), Payload: payload}
		if err := m.SetProperties(&props); err != nil {
			t.Fatal(err)
		}
		in.violations = nil
		n := testing.AllocsPerRun(1000, func() {
			p.sent.Store(seq + 1)
			p.flows[0].stamp.put(payload, seq)
			seq++
			in.deliver(&m, 0)
		})
		if n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if broken := len(in.violations); (broken > 0) != (name == "broken") {
			t.Errorf("%s: %d breaches", name, broken)
		}
	}
	if d := in.receipts[0].ledger.delivered; d != int64(seq) {
		t.Errorf("%d of %d delivered", d, seq)
	}
}

// TestExpectationOfNobody: the messages of a case that asks for nothing take the short path, and
// so does a protocol that knows no properties.
func TestExpectationOfNobody(t *testing.T) {
	plain, old := askingCase(), askingCase()
	plain.Clients.UserProperties, plain.Clients.Properties = nil, scenarios.Properties{}
	old.Protocol = packet.V311
	for _, c := range []*scenarios.Case{plain, old} {
		l := planned(t, c)
		if l.publishers[0].expected != nil || l.inboxes[0].expected != nil {
			t.Errorf("%s: promises %+v and %+v", c.Protocol, l.publishers[0].expected, l.inboxes[0].expected)
		}
	}
}

// TestExpectationToListener: of what others publish a listener knows nothing but
// its own subscription's identifier.
func TestExpectationToListener(t *testing.T) {
	c := askingCase()
	c.Load.Shape, c.Load.Publishers = scenarios.Subscribe, 0
	in := planned(t, c).inboxes[0]
	m := packet.Publish{Topic: []byte("t"), Payload: []byte("x"), RawProperties: []byte{0x0b, 5, 0x03, 0, 1, 'z'}}
	if in.deliver(&m, 0); len(in.violations) > 0 {
		t.Errorf("%v", in.violations)
	}
	m.RawProperties = nil
	in.deliver(&m, 0)
	if b := in.violations[violation{11, false}]; b == nil || b.n != 1 || len(in.violations) != 1 || in.received != 2 {
		t.Errorf("%v, %d received", in.violations, in.received)
	}
}

// TestKeptIsNobodys: what a broker has kept from earlier comes before anything
// was sent, and is neither delivered nor a duplicate, nor held to what was asked
// for, though messages keep their RETAIN flag and carry no stamp.
func TestKeptIsNobodys(t *testing.T) {
	c := askingCase()
	c.Load.VerifyOff, c.Clients.Retain, c.Clients.Properties.RetainAsPublished = true, true, true
	l := planned(t, c)
	in, p := l.inboxes[0], l.publishers[0]
	m := packet.Publish{Topic: []byte("t"), Payload: l.connector.payload, Retain: true}
	in.deliver(&m, 0)
	if l := in.receipts[0].ledger; in.foreign != 1 || l.delivered+l.duplicated != 0 || len(in.violations) > 0 {
		t.Errorf("%d foreign, %+v, %v", in.foreign, l.counts, in.violations)
	}
	props := p.properties
	props.SubscriptionIDs = []uint32{5}
	if err := m.SetProperties(&props); err != nil {
		t.Fatal(err)
	}
	p.sent.Store(1)
	in.deliver(&m, 0)
	in.deliver(&m, 0)
	if l := in.receipts[0].ledger; in.foreign != 1 || l.delivered != 1 || l.duplicated != 1 || len(in.violations) > 0 {
		t.Errorf("%d foreign, %+v, %v", in.foreign, l.counts, in.violations)
	}
}

// TestProbeMessage: a message that is sent before a run to see whether it passes
// has what those of the run have.
func TestProbeMessage(t *testing.T) {
	c := askingCase()
	c.Clients.UserProperties[0].Value = "%c"
	c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "localhost"}}
	m, err := NewProbe(c, nil, 0, "r").Message(c)
	if err != nil {
		t.Fatal(err)
	}
	var got packet.Properties
	if err := m.ParseProperties(&got); err != nil || got.ContentType == nil || *got.ResponseTopic != "re/c1" || got.UserProperties[0].Value != "c1" {
		t.Errorf("%+v, %v", got, err)
	}
	old := *c
	old.Protocol = packet.V311
	if m, err = NewProbe(c, nil, 0, "r").Message(&old); err != nil || len(m.RawProperties) > 0 {
		t.Errorf("MQTT 3.1.1: %x, %v", m.RawProperties, err)
	}
}
