package dial

import (
	"net"
	"testing"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

// TestTransports: what can be asked for can be dialled, and the broker of this
// program serves it.
func TestTransports(t *testing.T) {
	bundle, err := tlsconf.ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	b := broker.New(broker.Config{})
	defer b.Close()
	for _, transport := range scenarios.Transports() {
		l, err := broker.Listen(transport.Scheme(), "127.0.0.1:0", bundle.ServerConfig())
		if err != nil {
			t.Errorf("%s: %v", transport, err)
			continue
		}
		go func() { _ = b.Serve(l) }()
		u := scenarios.URL{Scheme: transport.Scheme(), Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}
		d := NewRoutes(&scenarios.Case{
			Transport: transport, TLS: bundle.ClientOptions(), Target: scenarios.Target{URLs: []scenarios.URL{u}},
		}, nil).Dialer(0)
		nc, err := d.Dial(t.Context())
		if err != nil {
			t.Errorf("%s: %v", transport, err)
			continue
		}
		_ = nc.Close()
		if d.Secure() != transport.Secure() || d.Steps.TCP <= 0 || transport.Secure() != (d.Steps.TLS > 0) {
			t.Errorf("%s: secure %v, steps %+v", transport, d.Secure(), d.Steps)
		}
	}
}
