package dial

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

// layer is a connection over another one, as a WebSocket is.
type layer struct{ net.Conn }

func (l layer) NetConn() net.Conn { return l.Conn }

type layerListener struct{ net.Listener }

func (l layerListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return layer{nc}, nil
}

// TestLayerOverTLS: where something lies over TLS at both ends, the broker makes
// its handshake, the state of TLS is known, messages pass, and both ends close.
func TestLayerOverTLS(t *testing.T) {
	bundle, err := tlsconf.ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	l, err := broker.Listen("mqtts", "127.0.0.1:0", bundle.ServerConfig())
	if err != nil {
		t.Fatal(err)
	}
	b := broker.New(broker.Config{ConnectTimeout: time.Minute})
	go func() { _ = b.Serve(layerListener{l}) }()
	silent, err := net.Dial("tcp", l.Addr().String()) // its handshake never ends
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()

	u := scenarios.URL{Scheme: "mqtts", Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}
	d := NewRoutes(&scenarios.Case{
		Transport: scenarios.TLS, TLS: bundle.ClientOptions(), Target: scenarios.Target{URLs: []scenarios.URL{u}},
	}, nil).Dialer(0)
	got := make(chan string, 1)
	c, err := mqtt.Connect(t.Context(), mqtt.Config{
		Dial: func(ctx context.Context) (net.Conn, error) {
			nc, err := d.Dial(ctx)
			return layer{nc}, err
		},
		Version: packet.V5, ClientID: "c", CleanStart: true, Handler: first{got: got},
	})
	if err != nil {
		t.Fatal(err)
	}
	if state := mqtt.TLSState(c.NetConn()); state == nil || !state.HandshakeComplete || state.CipherSuite == 0 {
		t.Errorf("TLS state %+v", state)
	}
	if _, err := c.Subscribe(t.Context(), []packet.Subscription{{Filter: "a"}}, packet.Properties{}); err != nil {
		t.Fatal(err)
	}
	m, err := c.Template(&packet.Publish{Topic: []byte("a"), Payload: []byte("hello")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.PublishN(m, 1, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s != "hello" {
		t.Errorf("received %q", s)
	}
	began := time.Now()
	c.Close()
	if err := b.Close(); err != nil || time.Since(began) > time.Second {
		t.Errorf("the ends closed after %v: %v", time.Since(began), err)
	}
}

// first tells of the first message.
type first struct {
	mqtt.NopHandler
	got chan string
}

func (f first) Message(p *packet.Publish) { f.got <- string(p.Payload) }
