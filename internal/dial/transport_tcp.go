package dial

import (
	"context"
	"net"
	"time"
)

// openTCP resolves the host and opens a socket.
func openTCP(ctx context.Context, d *Dialer) (net.Conn, error) {
	if d.routes.open != nil {
		start := time.Now()
		nc, err := d.routes.open(ctx, "tcp", d.URL.Addr(), d.Source)
		d.Steps.TCP = time.Since(start)
		return nc, err
	}
	n, took, err := d.routes.resolve(ctx, d.URL.Host)
	d.Steps.DNS = took
	if err != nil {
		return nil, err
	}
	start := time.Now()
	nc, err := n.connect(ctx, uint16(d.URL.Port), d.Source)
	d.Steps.TCP = time.Since(start)
	return nc, err
}
