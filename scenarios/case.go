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

// Transport is how bytes reach the broker.
type Transport string

// Transports.
const (
	TCP Transport = "tcp"
	TLS Transport = "tls"
)

// Shape is who talks to whom.
type Shape string

// Shapes.
const (
	// Pairs gives every topic one publisher and one subscriber, each on a
	// connection of its own.
	Pairs Shape = "pairs"
	// Loopback gives every topic one connection that both publishes and subscribes.
	Loopback Shape = "loopback"
)

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
	Shape      Shape
	Pairs      int           // topics, each with its publisher and subscriber; at least 1
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
	// OperationsPerMessage is 1, or 2 where a publish and a receive count apart.
	OperationsPerMessage int
}

// Clients is what every client has in common. Topic, ClientID and Username may
// hold the variables of [Vars]; the password is sent as it is.
type Clients struct {
	Topic          string
	ClientID       string
	Username       string
	HasUsername    bool
	Password       string
	HasPassword    bool
	KeepAlive      time.Duration
	CleanStart     bool
	SessionExpiry  time.Duration // MQTT 5
	Retain         bool
	UserProperties []packet.UserProperty // MQTT 5, on PUBLISH, in the order written
}

// Target is where to connect.
type Target struct {
	// URLs are tried round robin over the clients; empty means the embedded broker.
	URLs           []URL
	ConnectTimeout time.Duration
	ConnectRate    float64 // connections per second over all clients; 0 is as fast as they come
	SourceIPs      []string
}

// PayloadKind is where payload bytes come from.
type PayloadKind int

// Payload kinds.
const (
	PayloadSize PayloadKind = iota // Size bytes, byte i = i mod 256 behind the stamp
	PayloadFile                    // the file's bytes
	PayloadText                    // the text's bytes
)

// Payload is one value of the payload axis.
type Payload struct {
	Kind PayloadKind
	Size int    // bytes, for every kind
	Data []byte // PayloadFile and PayloadText
	Name string // canonical, as in ids: "8192", "@file", "text:..."
}
