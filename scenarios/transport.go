package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/result"
)

// Transport is how bytes reach a broker, by its name in cases and reports: the
// name of a row of transports. The zero value is [TCP].
//
// A new transport is a row here, its name in package result where it encrypts,
// a file in internal/dial for its connections, and a listener in package broker.
type Transport string

// Transports.
const (
	TCP Transport = result.TransportTCP
	TLS Transport = result.TransportTLS
)

// transport is what is known of a transport before anything is dialled.
type transport struct {
	name      Transport
	scheme    string    // of its URLs
	spellings []string  // further schemes that mean the same
	port      int       // registered with IANA
	secured   Transport // the same over TLS; its own name where it is over TLS
	path      bool      // its URLs may have a path
	memory    int       // of one idle connection with its session, in bytes
}

// transports has the default first.
var transports = []transport{
	{name: TCP, scheme: "mqtt", spellings: []string{"tcp"}, port: 1883, secured: TLS, memory: 8 << 10},
	{name: TLS, scheme: "mqtts", spellings: []string{"ssl", "tls", "tcps"}, port: 8883, secured: TLS, memory: 28 << 10},
}

// planned are names of transports, and schemes, that will be rows one day.
var planned = []string{"ws", "wss", "unix", "quic"}

// Transports lists the names, the default first.
func Transports() []Transport {
	names := make([]Transport, len(transports))
	for i := range transports {
		names[i] = transports[i].name
	}
	return names
}

// TransportNames lists the transports as texts.
func TransportNames() []string {
	var names []string
	for _, t := range Transports() {
		names = append(names, string(t))
	}
	return names
}

// row returns the transport's row, the default one where it has none.
func (t Transport) row() *transport {
	i := slices.IndexFunc(transports, func(row transport) bool { return row.name == t })
	return &transports[max(i, 0)]
}

// Scheme is the scheme of the transport's URLs, "mqtt" for TCP.
func (t Transport) Scheme() string { return t.row().scheme }

// Port is the port of a URL that names none.
func (t Transport) Port() int { return t.row().port }

// Secure reports whether the transport encrypts with TLS.
func (t Transport) Secure() bool { return result.OverTLS(string(t)) }

// Secured is the same transport over TLS, t itself where it is over TLS.
func (t Transport) Secured() Transport { return t.row().secured }

// HasPath reports whether the transport's URLs may have a path.
func (t Transport) HasPath() bool { return t.row().path }

// Memory is what one idle connection takes, its session included, in bytes.
func (t Transport) Memory() int { return t.row().memory }

func parseTransport(s string) (Transport, error) {
	names := TransportNames()
	switch {
	case slices.Contains(names, s):
		return Transport(s), nil
	case slices.Contains(planned, s):
		return "", fmt.Errorf("transport %s is not supported yet: %s are", s, listed(names, "and"))
	}
	return "", errors.New("transport must be " + listed(names, "or"))
}

// ofScheme returns the transport of any spelling of a scheme, in lower case, and
// the default one for an unknown scheme.
func ofScheme(scheme string) (t Transport, known bool) {
	for _, row := range transports {
		if row.scheme == scheme || slices.Contains(row.spellings, scheme) {
			return row.name, true
		}
	}
	return transports[0].name, false
}

// KnownSchemes lists every spelling of every scheme, for messages.
func KnownSchemes() string {
	var list []string
	for _, row := range transports {
		list = append(append(list, row.scheme), row.spellings...)
	}
	return listed(list, "and")
}

// listed is "a, b and c".
func listed(words []string, last string) string {
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}
