package broker

import (
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/internal/pace"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// A Fault is one thing that a [Broker] does wrong on purpose: an effect, and
// the messages that suffer it. Only Effect is required; without anything else
// every message received from a publisher suffers.
//
//	Fault{Effect: Delay(10 * time.Millisecond)}             // every message
//	Fault{Every: 500, Effect: Lose{}}                       // the 500th, 1000th, ...
//	Fault{From: 1000, Times: 1, Effect: Repeat{Copies: 1}}  // the 1000th only
//	Fault{Direction: Outbound, Client: "s1", Effect: Cut{}} // instead of any delivery to s1
//
// Faults act on messages as they are routed. What a session gets later, retained
// messages at SUBSCRIBE and resends after a reconnect, has no faults of its own.
type Fault struct {
	// Effect is what happens: [Delay], [Lose], [Repeat], [Stall] or [Cut].
	Effect Effect
	// Direction says whether the fault acts on messages from publishers, the
	// default, or on deliveries to subscribers.
	Direction Direction
	// Topic is a topic filter; "" matches every topic.
	Topic string
	// Client is the client identifier of the publisher (Inbound) or of the
	// subscriber (Outbound); "" matches every client.
	Client string
	// QoS is that of the PUBLISH packet received or to be sent; nil matches all.
	QoS *byte
	// From, Every and Times choose among the messages that match, numbered from 1
	// in the order in which the broker handles them: the first to suffer is From,
	// then every Every-th after it, and Times messages in all. Every defaults to 1, From
	// to Every, and Times to no limit. A fault counts over all topics and clients:
	// use one fault per topic to count for each.
	From, Every, Times int64
}

// Direction is the side of the broker on which a [Fault] acts.
type Direction uint8

const (
	// Inbound is a PUBLISH that the broker has received, before it is routed.
	// Every packet counts, a resent one too.
	Inbound Direction = iota
	// Outbound is the delivery of one message to one subscriber.
	Outbound
)

// An Effect is what a [Fault] does to a message. A message may suffer several;
// then it is lost if any of them loses it. A new effect is a type with an apply
// method, here or in a file of its own; it needs another field of fate, and code
// in fault_route.go, only if it does what no effect does yet.
type Effect interface{ apply(f *fate) }

// Delay holds a message back. An inbound message is acknowledged late, too; the
// broker continues to read from the publisher. A message that is not held back
// can overtake one that is. Delays add up.
type Delay time.Duration

// Lose drops a message. An inbound one is acknowledged, and neither retained
// nor delivered to any subscriber.
type Lose struct{}

// Repeat delivers a message again, at once, with packet identifiers of its own.
type Repeat struct {
	// Copies is how many are delivered besides the message itself.
	Copies int
	// DUP sets the DUP flag of the copies at QoS 1 and 2.
	DUP bool
}

// Stall stops all traffic of one direction on one connection for a time.
// Inbound, nothing more is read from the publisher, the message included.
// Outbound, messages to the subscriber wait in its session; acknowledgements do
// not. Publishers wait as they do for any slow subscriber, and StallTimeout of
// [Config] applies.
type Stall time.Duration

// Cut ends a connection without a DISCONNECT. Inbound it is the publisher's,
// and the message is neither routed nor acknowledged. Outbound it is the
// subscriber's: the message is lost unless the session outlives its connection.
type Cut struct{}

func (d Delay) apply(f *fate) { f.delay += time.Duration(d) }
func (Lose) apply(f *fate)    { f.lost = true }
func (r Repeat) apply(f *fate) {
	f.copies += r.Copies
	f.dup = f.dup || r.DUP
}
func (s Stall) apply(f *fate) { f.stall = max(f.stall, time.Duration(s)) }
func (Cut) apply(f *fate)     { f.cut = true }

// fate is what all faults together do to one message.
type fate struct {
	cut    bool
	stall  time.Duration
	delay  time.Duration
	lost   bool
	copies int // besides the message itself
	dup    bool
}

// times is how often the message is delivered.
func (f *fate) times() int {
	if f.lost {
		return 0
	}
	return 1 + max(f.copies, 0)
}

// faults are the faults of one broker. It is nil if there are none.
type faults struct {
	list [Outbound + 1][]*countedFault
	// queue runs delayed actions; router belongs to its goroutine.
	queue  pace.Queue
	router router
}

type countedFault struct {
	Fault
	seen atomic.Int64 // messages that have matched
}

func newFaults(b *Broker, list []Fault) *faults {
	if len(list) == 0 {
		return nil
	}
	fs := &faults{router: router{b: b}}
	for _, f := range list {
		if f.Every <= 0 {
			f.Every = 1
		}
		if f.From <= 0 {
			f.From = f.Every
		}
		fs.list[f.Direction] = append(fs.list[f.Direction], &countedFault{Fault: f})
	}
	return fs
}

// judge counts a message and returns what happens to it.
func (fs *faults) judge(d Direction, topic, client string, qos byte) (f fate) {
	for _, c := range fs.list[d] {
		if c.matches(topic, client, qos) && c.strikes(c.seen.Add(1)) {
			c.Effect.apply(&f)
		}
	}
	return f
}

func (c *Fault) matches(topic, client string, qos byte) bool {
	return (c.Client == "" || c.Client == client) && (c.QoS == nil || *c.QoS == qos) &&
		(c.Topic == "" || packet.MatchTopic(c.Topic, topic))
}

// strikes reports whether the nth message that matches suffers.
func (c *Fault) strikes(n int64) bool {
	after := n - c.From
	return after >= 0 && after%c.Every == 0 && (c.Times <= 0 || after/c.Every < c.Times)
}
