// Package scenarios turns what a user asks for into the cases that a run measures.
//
// A [Scenario] is a matrix, a load and a target. It comes from a built-in name or
// a YAML file ([Open], [Parse]), and settings from elsewhere override single keys
// ([Scenario.Set]). One table of fields is the schema of all of these, so that a
// flag and a line of a file are checked by the same code. [Scenario.Cases] expands
// the matrix and settles every default: a [Case] holds plain numbers, and the
// engine need not know how they were written. [Filler] makes the payloads of its
// messages, and [Expand] the topics and names of its clients.
//
// The package reads the files that a scenario names: payloads, traces, passwords,
// credentials. It opens no connection, prints nothing and does not read the
// environment. Faults are returned all at once, each with its line or flag and with a
// remedy ([Errors]). None repeats a password.
package scenarios

import (
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/tlsconf"
)

// Arrival is how the intended send times of an open loop are spread.
type Arrival string

// Arrivals.
const (
	Constant Arrival = "constant" // equal gaps
	Poisson  Arrival = "poisson"  // exponential gaps, from Load.Seed
)

// Stage is a part of an open loop in which the rate changes linearly from From to
// To, in messages per second over all publishers.
type Stage struct {
	Duration time.Duration
	From, To float64
}

// Case is one cell of the matrix with everything the engine needs to run it.
type Case struct {
	// ID is made from Params: "qos=1/payload=8192/protocol=5/transport=tls".
	ID     string
	Params []result.Param

	QoS       byte
	Payload   Payload
	Protocol  packet.Version
	Transport Transport
	Load      Load
	Clients   Clients
	TLS       tlsconf.Options
	Target    Target
}

// Load is the load and the measurement of one case.
type Load struct {
	// Shape is the row of the requested shape. The fields that follow, up to Idle,
	// are what it means in numbers, settled by Cases.
	Shape *Shape
	// Topics is the number of topics. Publishers and Subscribers are the
	// connections per group of topics: TopicsPerPublisher (TopicsPerSubscriber)
	// consecutive topics share their publishers (subscribers), so that there are
	// Topics/TopicsPerPublisher*Publishers publisher connections. Each publisher
	// takes its topics in turn.
	Topics, Publishers, Subscribers         int
	TopicsPerPublisher, TopicsPerSubscriber int
	// Share is the name of the shared subscription ($share/NAME/topic) that the
	// subscribers of a group form. "" is none: each gets every message.
	Share string
	// Filter, where not "", replaces the topics that subscribers subscribe to. It
	// may hold wildcards and the variables of [Vars].
	Filter string
	// Idle is the number of further connections that only send keep-alives.
	Idle int

	// Stages make an open loop: message n has its intended time no matter how fast
	// the broker is. Empty is a closed loop. Their durations add up to Duration.
	Stages   []Stage
	Arrival  Arrival
	Seed     uint64
	Duration time.Duration // of an open loop, warm-up included; the limit of a closed one, where not 0

	Pairs      int           // Topics of shape pairs, as requested; at least 1
	Inflight   int           // requested in-flight window per publisher, 1..65535
	Messages   int64         // messages per iteration over all publishers; 0 sizes the iteration by time
	MinTime    time.Duration // shortest time of an iteration that is sized by time
	Launches   int
	Warmup     int
	Iterations int
	Drain      time.Duration // how long an iteration waits for outstanding messages, without progress
	// FreshIterations opens new connections and a new topic for every iteration,
	// outside the measured time, as the source of the scenario turbomqtt does.
	FreshIterations bool
	// VerifyOff sends payloads without the ledger's stamp: messages are only counted.
	VerifyOff bool
	// OperationsPerMessage is 1, or 2 where a publish and a receive count separately.
	OperationsPerMessage int

	asked asked // as written; cleared by Cases
}

// Clients is what every client has in common. Topic, ClientID, Username and
// Password may hold the variables of [Vars]; so may the password of a URL.
type Clients struct {
	Topic       string
	ClientID    string
	Username    string
	HasUsername bool
	Password    string
	HasPassword bool
	// AuthMethod is the method of enhanced authentication, "" for none. It proves
	// the password instead of sending it. MQTT 5
	AuthMethod     string
	ReauthInterval time.Duration // between two authentications on one connection; 0 is never
	KeepAlive      time.Duration
	CleanStart     bool
	SessionExpiry  time.Duration // MQTT 5
	Retain         bool
	// Credentials is the path of a CSV file with one row per client, "" for none.
	Credentials    string
	credentialIDs  bool // the file has client ids
	credentialAuth bool // the file has user names and passwords
	StartNumber    int  // %i of the first client; 1 by default
	Will           *Will
	UserProperties []packet.UserProperty // MQTT 5, on PUBLISH, in the order written
	Properties     Properties            // MQTT 5
}

// Persistent reports whether the clients ask the broker to keep their sessions
// while they are disconnected.
func (c *Clients) Persistent(v packet.Version) bool {
	if v == packet.V5 {
		return c.SessionExpiry > 0
	}
	return !c.CleanStart
}

// Will is the Will Message of every client. Topic and Payload may hold variables.
type Will struct {
	Topic, Payload string
	QoS            byte
	Retain         bool
	Delay          time.Duration // MQTT 5
}

// Target is where to connect.
type Target struct {
	// URLs are shared out to the clients round-robin; empty means the embedded broker.
	URLs           []URL
	ConnectTimeout time.Duration
	ConnectRate    float64 // connections per second over all clients; 0 is as fast as possible
	SourceIPs      []string
	// Reconnect makes clients reconnect after a lost connection, with exponential
	// back-off and jitter.
	Reconnect bool
	// FollowServerReference makes clients connect to the server that a broker
	// refers them to. MQTT 5
	FollowServerReference bool
}

// PayloadKind is where payload bytes come from.
type PayloadKind int

// Payload kinds.
const (
	PayloadSize     PayloadKind = iota // Size bytes, byte i = i mod 256 after the stamp
	PayloadFile                        // the file's bytes
	PayloadText                        // the text's bytes
	PayloadTemplate                    // text with fields that differ in every message
	PayloadRange                       // sizes drawn between bounds, from Load.Seed
	PayloadTrace                       // sizes and times of a recorded trace
)

// Payload is one value of the payload axis.
type Payload struct {
	Kind PayloadKind
	Size int    // bytes, for every kind; the largest where sizes differ
	Data []byte // PayloadFile, PayloadText, and the fixed part of PayloadTemplate
	Name string // canonical, as in ids: "8192", "@file", "text:..."

	path     string  // of PayloadFile and PayloadTrace
	stages   []Stage // of PayloadTrace
	template []templateField
	sizes    *sizes
}
