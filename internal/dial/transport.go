package dial

import (
	"context"
	"net"

	"github.com/mqttload/mqttload/scenarios"
)

// An opener opens a connection of its transport and notes in d's Steps how long
// the parts of that took.
type opener func(ctx context.Context, d *Dialer) (net.Conn, error)

// openers has a row for every transport of package scenarios.
var openers = map[scenarios.Transport]opener{
	scenarios.TCP: openTCP,
	scenarios.TLS: openTLS,
}
