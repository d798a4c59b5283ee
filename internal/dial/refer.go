package dial

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/scenarios"
)

// A referralError is a Server Reference that the client does not follow.
type referralError struct {
	way []string // the servers that have referred the client, in their order
	err error
}

// Error returns the cause, followed by the servers of the referrals.
func (e *referralError) Error() string {
	return fmt.Sprintf("%v (referred by %s)", e.err, strings.Join(e.way, ", then by "))
}

// Unwrap returns the cause.
func (e *referralError) Unwrap() error { return e.err }

// Follow calls connect. If the broker refuses with a Server Reference, it changes d
// to that server and calls connect again. [MQTT5 4.11]
func (d *Dialer) Follow(connect func() error) error {
	for {
		err := connect()
		var refused *mqtt.RefusedError
		if !d.routes.c.Target.FollowServerReference || !errors.As(err, &refused) || refused.ServerReference == "" {
			return err
		}
		if err := d.refer(refused.ServerReference); err != nil {
			return d.Fault(err)
		}
	}
}

// refer changes d to a server of a reference. Of several, the client's number chooses
// one. A server that has referred the client since its last connection is an error.
func (d *Dialer) refer(reference string) error {
	from := d.URL
	from.Scheme = d.transport.Scheme() // whatever was written: this is how d connects
	way := append(slices.Clip(d.way), d.URL.String())
	list, err := scenarios.ParseReferences(reference, from)
	if err != nil {
		return &referralError{way, err}
	}
	to := list[d.number%len(list)]
	switch {
	case slices.Contains(way, to.String()):
		return &referralError{way, fmt.Errorf("the brokers refer to each other: the last to %s again", to)}
	case len(way) > mqtt.MaxReferences:
		return &referralError{way, fmt.Errorf("%d brokers in a row refer to another one, the last to %s", len(way), to)}
	}
	d.mu.Lock()
	d.URL, d.way = to, way
	d.mu.Unlock()
	return d.aim()
}

// ByReference returns the function by which a [mqtt.Link] follows references, or nil
// if the case does not follow them.
func (d *Dialer) ByReference() func(string) (mqtt.Dialer, error) {
	if !d.routes.c.Target.FollowServerReference {
		return nil
	}
	return func(reference string) (mqtt.Dialer, error) { return d.Dial, d.refer(reference) }
}

// Arrived returns the servers that led to the connection, joined by " to ", or "" if
// no reference did. It forgets them: a later reference may lead back.
func (d *Dialer) Arrived() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.way == nil {
		return ""
	}
	way := strings.Join(append(d.way, d.URL.String()), " to ")
	d.way = nil
	return way
}

// Where returns the URL of the server, and the servers that have referred the client
// to it.
func (d *Dialer) Where() (url string, way []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.URL.String(), d.way
}
