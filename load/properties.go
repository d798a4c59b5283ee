package load

import (
	"fmt"
	"strings"

	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// expectation is what a receiver must find in the messages of one publisher, or
// of any: what the subscriptions and the publisher asked for, and the broker
// must forward. It is read-only.
type expectation struct {
	owed *packet.Forwarded
	// retain is what the RETAIN flag must be, where checkRetain is set.
	checkRetain, retain bool
}

// newExpectation is for a publisher whose messages have the properties p, and
// for the case's subscriptions; nil where there is nothing to check. Of
// publishers elsewhere, where known is false, only the subscriptions' share is
// expected.
func newExpectation(spec *scenarios.Case, p packet.Properties, known bool) (*expectation, error) {
	if spec.Protocol != packet.V5 {
		return nil, nil
	}
	asked := &spec.Clients.Properties
	if id := asked.SubscriptionIdentifier; id > 0 {
		p.SubscriptionIDs = []uint32{uint32(id)}
	}
	checkRetain := known && asked.RetainAsPublished
	if p.IsZero() && !checkRetain {
		return nil, nil
	}
	owed, err := packet.NewForwarded(&p)
	if err != nil {
		return nil, err
	}
	return &expectation{owed: owed, checkRetain: checkRetain, retain: spec.Clients.Retain}, nil
}

// mayRetain reports whether messages keep their RETAIN flag, so that the flag
// does not identify those that the broker retained before.
func (p *expectation) mayRetain() bool { return p != nil && p.checkRetain && p.retain }

// violation is one way in which a message differs from its expectation: the
// property with this identifier is missing or has changed. 0 is the RETAIN
// flag.
type violation struct {
	property int
	changed  bool
}

// violations counts those of one receiver.
type violations map[violation]*violationCount

type violationCount struct {
	n       int64
	example string
}

func (b violation) String() string {
	if b.property == 0 {
		return "RETAIN was changed, though it was asked for as published [MQTT-3.3.1-13]"
	}
	what := "was dropped"
	if b.changed {
		what = "was changed"
	}
	return fmt.Sprintf("%s %s [%s]", packet.PropertyName(b.property), what, packet.ForwardStatement(b.property))
}

// checkProperties notes where m differs from the expectation p, which is nil
// where there is none. The lock of the shard is held.
func (in *inbox) checkProperties(p *expectation, m *packet.Publish) {
	if p == nil {
		return
	}
	missing, changed := p.owed.Compare(m.RawProperties)
	if missing|changed != 0 {
		in.violated(missing, false, p, m)
		in.violated(changed, true, p, m)
	}
	if p.checkRetain && m.Retain != p.retain {
		in.violated(1, true, p, m) // bit 0: no property has this identifier
	}
}

func (in *inbox) violated(which packet.PropertySet, changed bool, p *expectation, m *packet.Publish) {
	for ; which != 0; which &= which - 1 {
		id := 0
		for !which.Has(id) {
			id++
		}
		b := violation{id, changed}
		c := in.violations[b]
		if c == nil {
			if in.violations == nil {
				in.violations = violations{}
			}
			c = &violationCount{example: example(m, id, p)}
			in.violations[b] = c
		}
		c.n++
	}
}

// example says how a message came and how it should have come.
func example(m *packet.Publish, id int, p *expectation) string {
	if id == 0 {
		return fmt.Sprintf("a message to %.80q was published with RETAIN %t and came with %t", m.Topic, p.retain, m.Retain)
	}
	return fmt.Sprintf("a message to %.80q came with %s, and %s was asked for", m.Topic,
		packet.FormatProperty(m.RawProperties, id), p.owed.Format(id))
}

// report adds what the receiver has found to errs, once.
func (in *inbox) report(errs *errorSet) {
	in.shard.mu.Lock()
	defer in.shard.mu.Unlock()
	for b, c := range in.violations {
		errs.add(result.Error{Kind: result.ErrorProperty, Reason: b.String(), Count: c.n, Example: c.example})
	}
	in.violations = nil
}

// propertyWarning warns of a broker that does not forward what it must.
func propertyWarning(errs []result.Error) (w result.Warning) {
	var what []string
	for _, e := range errs {
		if e.Kind == result.ErrorProperty {
			what = append(what, fmt.Sprintf("%s (%s deliveries)", e.Reason, result.FormatInt(e.Count)))
		}
	}
	if what == nil {
		return w
	}
	return result.Warning{
		Code: result.CodeProperties, Message: "the broker does not forward what it must: " + strings.Join(what, "; "),
		Hint: "the errors have an example of each; the messages count as delivered",
	}
}

// subscription has the Subscription Options that the case asks for. [MQTT5 3.8.3.1]
func subscription(spec *scenarios.Case, filter string) packet.Subscription {
	sub := packet.Subscription{Filter: filter, QoS: spec.QoS}
	if p := &spec.Clients.Properties; spec.Protocol == packet.V5 {
		sub.NoLocal, sub.RetainAsPublished, sub.RetainHandling = p.NoLocal, p.RetainAsPublished, byte(p.RetainHandling)
	}
	return sub
}

// subscribeProperties are the properties of SUBSCRIBE.
func subscribeProperties(spec *scenarios.Case) (p packet.Properties) {
	if id := spec.Clients.Properties.SubscriptionIdentifier; id > 0 && spec.Protocol == packet.V5 {
		p.SubscriptionIDs = []uint32{uint32(id)}
	}
	return p
}
