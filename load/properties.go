package load

import (
	"fmt"
	"strings"

	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// promise is what a receiver must find in the messages of one publisher, or of
// anybody: what subscribers and publisher have asked for, and a broker owes
// them. It is read-only.
type expectation struct {
	owed *packet.Forwarded
	// retain is what the RETAIN flag must be, where checkRetain is set.
	checkRetain, retain bool
}

// newPromise is for a publisher whose messages have the properties p, with
// the subscriptions' own; nil where there is nothing to check. Of who publishes
// elsewhere, known is false, only those are known.
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

// mayRetain reports whether messages keep their RETAIN flag, so that it does not
// tell those that the broker has kept from earlier.
func (p *expectation) mayRetain() bool { return p != nil && p.checkRetain && p.retain }

// breach is one way in which messages come otherwise than they must: the
// property with this identifier, 0 being the RETAIN flag, is not there or has
// changed.
type violation struct {
	property int
	changed  bool
}

// breaches counts those of one receiver.
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

// keep notes what of the promise to the receiver m does not keep. A nil promise
// has nothing in it. The lock of the shard is held.
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

// example says how a message came and what it should have had.
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

// propertyWarning tells of a broker that does not pass on what it must.
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
		Code: result.CodeProperties, Message: "the broker does not pass on what it must: " + strings.Join(what, "; "),
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
