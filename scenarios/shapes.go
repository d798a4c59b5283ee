package scenarios

import (
	"math"

	"github.com/mqttload/mqttload/result"
)

// Shape says which clients a case has for each of its topics, and what they do.
// The shapes are the rows of one table: compare pointers to tell them apart.
// Other packages read the fields and methods of a row and never ask which row it is.
// A new shape is therefore a row here and, if none of the workloads of package load
// fits, a workload there.
type Shape struct {
	// Name is what --shape and the key shape of a scenario take.
	Name string
	// Noun is the singular name of the clients that share a rate: "publisher".
	Noun string
	// Doing says what those clients do if a topic has no other clients:
	// "publishing and subscribing". It is "" if publishers and subscribers differ.
	Doing string
	// Unit is that of a rate.
	Unit string
	// Counts is what the lines of progress count: "received".
	Counts string

	// Kind is what a report says that requests are.
	Kind result.Kind

	// Combined is set where one connection is a topic's publisher and its subscriber.
	Combined bool
	// Cycles is set where the subscribers connect, subscribe and disconnect over
	// and over: they are not connected when the load begins.
	Cycles bool
	// Queues is how many messages per topic wait for subscribers that are away,
	// where a scenario does not say; 0 where subscribers are there while messages
	// are published.
	Queues int
	// Listens is set where clients only receive what others publish: a case
	// without a duration then runs until it is stopped.
	Listens bool

	publishers, subscribers bounds   // per topic
	share                   string   // name of the shared subscription where none is given, "" where there need be none
	named                   bool     // never what numbers of clients imply
	oneTopic                bool     // a client has one topic
	unusedAxes              []string // implied axes that mean nothing to it
	noRate                  string   // why it cannot keep a rate, "" where it can
	request                 string   // see Request
	requestQoS0             string   // the same at QoS 0, where that differs
	count                   func(result.Iteration) int64
}

// Shapes.
var (
	// Pairs gives every topic one publisher and one subscriber, each on a
	// connection of its own.
	Pairs = &Shape{
		Name: "pairs", Kind: result.KindMessages, publishers: one, subscribers: one,
		Noun: "publisher", Unit: messageRate, Counts: "received", count: received,
	}
	// Loopback gives every topic one connection that both publishes and subscribes.
	Loopback = &Shape{
		Name: "loopback", Kind: result.KindMessages, publishers: one, subscribers: one, Combined: true, named: true, oneTopic: true,
		Noun: "client", Doing: "publishing and subscribing", Unit: messageRate, Counts: "received", count: received,
	}
	// FanOut gives every topic one publisher and many subscribers.
	FanOut = &Shape{
		Name: "fan-out", Kind: result.KindMessages, publishers: one, subscribers: manyUp,
		Noun: "publisher", Unit: messageRate, Counts: "received", count: received,
	}
	// FanIn gives every topic many publishers and one subscriber.
	FanIn = &Shape{
		Name: "fan-in", Kind: result.KindMessages, publishers: manyUp, subscribers: one,
		Noun: "publisher", Unit: messageRate, Counts: "received", count: received,
	}
	// ManyToMany gives every topic many publishers and many subscribers.
	ManyToMany = &Shape{
		Name: "many-to-many", Kind: result.KindMessages, publishers: manyUp, subscribers: manyUp,
		Noun: "publisher", Unit: messageRate, Counts: "received", count: received,
	}
	// Shared gives every topic publishers and one shared subscription of many members.
	Shared = &Shape{
		Name: "shared", Kind: result.KindMessages, publishers: oneUp, subscribers: manyUp, share: "mqttload",
		Noun: "publisher", Unit: messageRate, Counts: "received", count: received,
	}
	// Publish has publishers only: a request ends written (QoS 0) or acknowledged.
	Publish = &Shape{
		Name: "publish", Kind: result.KindMessages, publishers: oneUp, subscribers: none,
		request: "one message acknowledged", requestQoS0: "one message written",
		Noun: "publisher", Unit: messageRate, Counts: "sent", count: func(it result.Iteration) int64 { return it.Sent },
	}
	// Subscribe has subscribers only: they count what others publish.
	Subscribe = &Shape{
		Name: "subscribe", Kind: result.KindReceived, publishers: none, subscribers: oneUp, Listens: true,
		unusedAxes: []string{"payload"}, noRate: "publishes nothing", request: "one message received",
		Noun: "publisher", Unit: messageRate, Counts: "received", count: received,
	}
	// Connect has connections only, which stay idle.
	Connect = &Shape{
		Name: "connect", Kind: result.KindConnections, publishers: none, subscribers: none, named: true, oneTopic: true,
		unusedAxes: []string{"qos", "payload"}, noRate: "publishes nothing", request: "one connection made",
		Noun: "publisher", Unit: messageRate, Counts: "connected", count: requests,
	}
	// Churn connects, subscribes and disconnects at a rate; a request is one such cycle.
	Churn = &Shape{
		Name: "churn", Kind: result.KindCycles, publishers: none, subscribers: oneUp, Cycles: true, named: true, oneTopic: true,
		unusedAxes: []string{"payload"}, request: "one client connected, subscribed and disconnected",
		Noun: "client", Doing: "connecting and disconnecting", Unit: "connects/s", Counts: "cycles", count: requests,
	}
	// Offline publishes to persistent sessions whose subscribers are away, and
	// measures how fast their queues drain once they are back. Queues holds what
	// brokers queue by default.
	Offline = &Shape{
		Name: "offline", Kind: result.KindMessages, publishers: oneUp, subscribers: oneUp, Queues: 1000, named: true,
		noRate:  "measures how fast queues drain, whatever they were filled at",
		request: "one message delivered that had waited for its subscriber's return",
		Noun:    "publisher", Unit: messageRate, Counts: "received", count: received,
	}
)

// shapes in the order in which messages list them. Of those that numbers of
// clients imply the first one that fits is taken.
var shapes = []*Shape{Pairs, Loopback, FanOut, FanIn, ManyToMany, Shared, Publish, Subscribe, Connect, Churn, Offline}

// messageRate is the unit of what publishers send.
const messageRate = "msg/s"

// bounds of the publishers and subscribers of a topic, and what they are where
// they are open.
type bounds struct{ open, least, most int }

// many is how many clients the wide side of a shape has by default.
const many = 10

var (
	none   = bounds{0, 0, 0}
	one    = bounds{1, 1, 1}
	oneUp  = bounds{1, 1, math.MaxInt}
	manyUp = bounds{many, 1, math.MaxInt}
)

func (b bounds) orOpen(n int) int {
	if n == unset {
		return b.open
	}
	return n
}

func (b bounds) hold(n int) bool { return b.least <= n && n <= b.most }

func received(it result.Iteration) int64 { return it.Received }
func requests(it result.Iteration) int64 { return it.Requests }

// ShapeNames lists the names of all shapes.
func ShapeNames() []string {
	names := make([]string, len(shapes))
	for i, sh := range shapes {
		names[i] = sh.Name
	}
	return names
}

// String returns the shape's name.
func (sh *Shape) String() string { return sh.Name }

// Publishes reports whether the shape has publishers.
func (sh *Shape) Publishes() bool { return sh.publishers.most > 0 }

// subscribes reports whether the shape has subscribers.
func (sh *Shape) subscribes() bool { return sh.subscribers.most > 0 }

// Request says what a request is, "" where it is a message that is published
// and delivered.
func (sh *Shape) Request(qos byte) string {
	if qos == 0 && sh.requestQoS0 != "" {
		return sh.requestQoS0
	}
	return sh.request
}

// Count is how much of what Counts names an iteration has brought.
func (sh *Shape) Count(it result.Iteration) int64 { return sh.count(it) }

// RateClients is how many clients share the rate of a case.
func (l *Load) RateClients() int {
	if l.Shape.Cycles {
		return l.SubscriberClients()
	}
	return l.PublisherClients()
}

// Speaker is the number, from 0, of the client that gives topic t (from 0) its
// client id and user name: the first of its publishers, or else of its
// subscribers. Clients are numbered topic by topic, subscribers first, each with
// the first topic that it has.
func (l *Load) Speaker(t int) int {
	if l.Shape.Combined {
		return t
	}
	if l.Publishers == 0 {
		return t / l.TopicsPerSubscriber * l.Subscribers
	}
	group := t / l.TopicsPerPublisher
	subscribing := group*l.TopicsPerPublisher/l.TopicsPerSubscriber + 1 // groups of subscribers that come before
	return group*l.Publishers + subscribing*l.Subscribers
}
