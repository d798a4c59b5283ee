package result

import (
	"cmp"
	"slices"
)

// Error is one class of faults, added up over the clients of a case.
type Error struct {
	Kind    ErrorKind  `json:"kind"`
	Cause   ErrorCause `json:"cause,omitempty"`
	Reason  string     `json:"reason"`
	Count   int64      `json:"count"`
	Example string     `json:"example"`
}

// AddErrors adds more to sum: those of the same kind and reason become one.
func AddErrors(sum, more []Error) []Error {
	for _, e := range more {
		i := slices.IndexFunc(sum, func(s Error) bool { return s.Kind == e.Kind && s.Reason == e.Reason })
		if i < 0 {
			sum = append(sum, e)
			continue
		}
		sum[i].Count += e.Count
	}
	return sum
}

// ErrorKind says in which step of a client's life a fault occurred.
type ErrorKind string

// Kinds of errors.
const (
	ErrorConnect        ErrorKind = "connect"         // no connection could be opened
	ErrorTLS            ErrorKind = "tls"             // the TLS handshake failed
	ErrorConnack        ErrorKind = "connack"         // the broker refused the client
	ErrorConnackTimeout ErrorKind = "connack timeout" // the broker did not answer CONNECT in time
	ErrorSubscribe      ErrorKind = "subscribe"       // the broker refused a subscription
	ErrorLimit          ErrorKind = "limit"           // the scenario exceeds a limit of the CONNACK
	ErrorPublish        ErrorKind = "publish"         // the broker rejected a message
	ErrorProperty       ErrorKind = "property"        // a message was delivered with other properties
	ErrorReauth         ErrorKind = "reauth"          // authentication on a living connection failed
	ErrorDisconnect     ErrorKind = "disconnect"      // a connection was lost
	ErrorProtocol       ErrorKind = "protocol"        // the broker broke the protocol
	ErrorTimeout        ErrorKind = "timeout"         // nothing was received in time
)

// ErrorCause tells apart faults of one kind that need different remedies. It is
// "" if the kind alone decides.
type ErrorCause string

// Causes of errors.
const (
	CauseNotListening   ErrorCause = "not listening"    // nothing listens at the address
	CauseNoLocalPort    ErrorCause = "no local port"    // the local ports are used up
	CauseOpenFiles      ErrorCause = "open files"       // the limit of open files is reached
	CauseName           ErrorCause = "name"             // the name cannot be resolved
	CauseBusy           ErrorCause = "busy"             // the broker is busy, or limits connections
	CauseAuthMethod     ErrorCause = "auth method"      // the broker does not know the authentication method
	CauseReferred       ErrorCause = "referred"         // the broker named another server to use
	CauseSentAway       ErrorCause = "sent away"        // the broker named no server and wants another one used
	CauseReference      ErrorCause = "reference"        // a Server Reference leads nowhere
	CauseNotAuthorized  ErrorCause = "not authorized"   // the client may not publish to this topic
	CauseQuota          ErrorCause = "quota"            // the client has used up a quota of the broker
	CauseTopicName      ErrorCause = "topic name"       // the broker does not accept this topic
	CauseReceiveMaximum ErrorCause = "receive maximum"  // the broker exceeded the client's Receive Maximum
	CauseClosed         ErrorCause = "closed"           // the broker closed the connection without a reason
	CauseClosedBefore5  ErrorCause = "closed before v5" // the same, and before MQTT 5 it cannot give one
)

// Remedy is what to try against e, in one line; "" if there is no advice.
func (e *Error) Remedy() string {
	if e.Cause == CauseReferred && e.Kind == ErrorDisconnect {
		return "with --reconnect and --follow-server-reference clients go there, with user and password; or give that server as --url"
	}
	return cmp.Or(causeRemedies[e.Cause], kindRemedies[e.Kind])
}

var causeRemedies = map[ErrorCause]string{
	CauseNotListening:  "nothing listens there: check --url, start the broker, or leave --url out to measure the embedded broker",
	CauseNoLocalPort:   "the local ports towards the broker are used up: add addresses with --source-ip, or widen net.ipv4.ip_local_port_range",
	CauseOpenFiles:     "raise the limit with ulimit -n, or ask for fewer clients",
	CauseName:          "check the name after --url or --host",
	CauseBusy:          "the broker is busy or limits connections: try again later",
	CauseAuthMethod:    "the broker does not know this authentication method: leave --auth-method out, or set up the broker's authenticator for it",
	CauseReferred:      "--follow-server-reference goes there, with user and password; or give that server as --url",
	CauseSentAway:      "the broker sends its clients away and does not say where: its configuration may",
	CauseReference:     "the brokers' configuration holds their Server References; give the server that works as --url",
	CauseNotAuthorized: "the broker must let these clients publish to --topic: check its access control list for the user and the topic",
	CauseQuota:         "a quota of the broker is used up: try a lower --rate or a smaller --inflight, or raise the quota",
	CauseTopicName:     "the broker does not accept this topic: check --topic against its rules",
	// [MQTT-3.3.4-9]
	CauseReceiveMaximum: "the broker sends more than the client's Receive Maximum allows (Mosquitto 2.0.11 does at QoS 2): leave --receive-maximum out, or make it no less than --inflight",
	CauseClosed:         "the broker's log says why",
	CauseClosedBefore5: "the broker's log says why; before MQTT 5 a broker cannot tell how many messages it accepts in flight (Mosquitto: max_inflight_messages, 20): " +
		"try a smaller --inflight, or --protocol 5",
}

var kindRemedies = map[ErrorKind]string{
	ErrorConnect:        "check --url and the network; --connect-timeout sets how long to wait",
	ErrorConnack:        "check --username, --password-file, --client-id and --protocol against what the broker allows",
	ErrorConnackTimeout: "the broker accepts connections and does not answer CONNECT: it may be overloaded; --connect-timeout sets how long to wait",
	ErrorSubscribe:      "the broker must let these clients subscribe to --topic",
	ErrorLimit:          "ask for less, or raise the broker's limit",
	ErrorPublish:        "the broker's log says why it rejected these messages",
	ErrorReauth:         "the broker's log says why it refused a client that it had accepted before; its authenticator must support re-authentication",
	ErrorTimeout:        "the broker must route --topic back to its subscribers; --drain sets how long to wait",
}
