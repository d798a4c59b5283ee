package dial

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/scenarios"
)

// A referralError is a reference of the broker that is not followed.
type referralError struct {
	way []string // the servers that have referred the client, in their order
	err error
}

func (e *referralError) Error() string {
	return fmt.Sprintf("%v (referred by %s)", e.err, strings.Join(e.way, ", then by "))
}
func (e *referralError) Unwrap() error { return e.err }

// Follow calls connect, and again at the server to which its refusal refers.
// [MQTT5 4.11]
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

// refer turns d to a server of a reference, by the client's number where there
// are several. Whoever has referred the client since it was connected last is
// not gone to again.
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

// ByReference is what a link follows references by; nil follows none.
func (d *Dialer) ByReference() func(string) (mqtt.Dialer, error) {
	if !d.routes.c.Target.FollowServerReference {
		return nil
	}
	return func(reference string) (mqtt.Dialer, error) { return d.Dial, d.refer(reference) }
}

// Arrived returns the way that the connection has taken, with its end, "" for
// one that stands where the client was already. A later reference may lead back.
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

// Where returns the server, and who has referred the client to it.
func (d *Dialer) Where() (url string, way []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.URL.String(), d.way
}
