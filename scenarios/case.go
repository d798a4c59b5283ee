// Package scenarios holds what a run is asked to do: the scenario schema, its
// strict YAML form, the expansion of a matrix to cases, and the built-in
// scenarios. It is data: nothing here connects, prints or reads the environment.
package scenarios

import (
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/tlsconf"
)

// Arrival is how the intended times of an open loop lie within its rate.
type Arrival string

// Arrivals.
const (
	Constant Arrival = "constant" // equal gaps
	Poisson  Arrival = "poisson"  // exponential gaps, from Load.Seed
)

// Stage is a stretch of an open loop in which the rate moves in a straight
// line from From to To, in messages per second over all publishers.
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
	// Shape is the row of the shape that was asked for; what follows, up to Idle,
	// is what it means in numbers, settled by Cases.
	Shape *Shape
	// Topics is the number of topics. Publishers and Subscribers are the
	// connections per group of topics: TopicsPerPublisher (TopicsPerSubscriber)
	// consecutive topics share their publishers (subscribers), so that there are
	// Topics/TopicsPerPublisher*Publishers publisher connections. Each publisher
	// takes its topics in turn.
	Topics, Publishers, Subscribers         int
	TopicsPerPublisher, TopicsPerSubscriber int
	// Share is the name of the shared subscription that the subscribers of a
	// group form ($share/NAME/topic), "" for none: then each gets every message.
	Share string
	// Filter, where not "", is what subscribers subscribe to in place of their
	// topics: it may hold wildcards and the variables of [Vars].
	Filter string
	// Idle is how many more connections do nothing but keep alive.
	Idle int

	// Stages make an open loop: message n has its intended time whatever the
	// broker does. Empty is a closed loop. Their durations add up to Duration.
	Stages   []Stage
	Arrival  Arrival
	Seed     uint64
	Duration time.Duration // of an open loop, warm-up included; of a closed one, its end at the latest, where not 0

	Pairs      int           // Topics of shape pairs, as asked; at least 1
	Inflight   int           // asked in-flight window per publisher, 1..65535
	Messages   int64         // messages per iteration over all publishers; 0 sizes the iteration by time
	MinTime    time.Duration // least time of an auto-sized iteration; 250 ms
	Launches   int
	Warmup     int
	Iterations int
	Drain      time.Duration // how long an iteration waits for what is outstanding, without progress
	// FreshIterations opens new connections and a new topic for every
	// iteration, outside of the clock, as the turbomqtt scenario's source does.
	FreshIterations bool
	// VerifyOff is set where payloads carry no stamp though they could: then only
	// numbers are known.
	VerifyOff bool
	// OperationsPerMessage is 1, or 2 where a publish and a receive count apart.
	OperationsPerMessage int

	asked asked // until Cases has settled it
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
	// AuthMethod is the method of enhanced authentication, "" for none, by which
	// user and password are proved instead of sending the password. MQTT 5
	AuthMethod     string
	ReauthInterval time.Duration // between two authentications on a living connection; 0 is never
	KeepAlive      time.Duration
	CleanStart     bool
	SessionExpiry  time.Duration // MQTT 5
	Retain         bool
	// Credentials is the CSV file with an identity per client, "" for none.
	Credentials    string
	credentialIDs  bool // they have client ids
	credentialAuth bool // they have users and passwords
	StartNumber    int  // %i of the first client; 1 where not asked
	Will           *Will
	UserProperties []packet.UserProperty // MQTT 5, on PUBLISH, in the order written
	Properties     Properties            // MQTT 5
}

// Persistent reports whether the clients ask the broker to keep their sessions
// while they are away.
func (c *Clients) Persistent(v packet.Version) bool {
	if v == packet.V5 {
		return c.SessionExpiry > 0
	}
	return !c.CleanStart
}

// Will is the will of every client. Topic and Payload may hold variables.
type Will struct {
	Topic, Payload string
	QoS            byte
	Retain         bool
	Delay          time.Duration // MQTT 5
}

// Target is where to connect.
type Target struct {
	// URLs are tried round robin over the clients; empty means the embedded broker.
	URLs           []URL
	ConnectTimeout time.Duration
	ConnectRate    float64 // connections per second over all clients; 0 is as fast as they come
	SourceIPs      []string
	// Reconnect makes clients whose connection was lost come back, with
	// exponential back-off and jitter.
	Reconnect bool
	// FollowServerReference makes clients go where a broker refers them to. MQTT 5
	FollowServerReference bool
}

// PayloadKind is where payload bytes come from.
type PayloadKind int

// Payload kinds.
const (
	PayloadSize     PayloadKind = iota // Size bytes, byte i = i mod 256 behind the stamp
	PayloadFile                        // the file's bytes
	PayloadText                        // the text's bytes
	PayloadTemplate                    // text with fields that change from message to message
	PayloadRange                       // sizes drawn between bounds, from Load.Seed
	PayloadTrace                       // sizes or bytes, and times, of a recorded trace
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
