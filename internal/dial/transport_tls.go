package dial

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/mqttload/mqttload/mqtt"
)

// openTLS makes a handshake over a TCP connection.
func openTLS(ctx context.Context, d *Dialer) (net.Conn, error) {
	nc, err := openTCP(ctx, d)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	tc := tls.Client(mqtt.NonBlocking(nc), d.conf)
	if err := tc.HandshakeContext(ctx); err != nil {
		_ = nc.Close()
		return nil, &tlsError{err}
	}
	d.Steps.TLS = time.Since(start)
	d.Steps.Resumed = tc.ConnectionState().DidResume
	return tc, nil
}
