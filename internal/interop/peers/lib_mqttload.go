package main

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// ours is a connection of package mqtt. As in the load engine, the reader sends the
// next messages when acknowledgements make room for them.
type ours struct {
	mqtt.NopHandler
	c    *mqtt.Client
	got  func([]byte)
	tmpl *packet.Template
	room chan struct{}

	mu    sync.Mutex
	left  int // to be sent, at QoS 1 and 2
	open  int // to be acknowledged
	ended chan error
}

// sweeper serves all clients of the process.
var sweeper = sync.OnceValue(mqtt.NewSweeper)

func connectOurs(c *conf, id string, got func([]byte)) (session, error) {
	tc, err := c.tlsConfig()
	if err != nil {
		return nil, err
	}
	s := &ours{got: got, room: make(chan struct{}, 1), ended: make(chan error, 1)}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.c, err = mqtt.Connect(ctx, mqtt.Config{
		Dial:    func(ctx context.Context) (net.Conn, error) { return dialOurs(ctx, c.addr, tc) },
		Version: packet.V311, ClientID: id, CleanStart: true, KeepAlive: keepAlive * time.Second,
		Inflight: c.window, Handler: s, Sweeper: sweeper(),
	})
	if err != nil || c.work == "receive" || c.work == "connect" {
		return s, err
	}
	p := packet.Publish{Topic: []byte(topic), QoS: c.qos, Payload: make([]byte, c.payload), PacketID: uint16(min(c.qos, 1))}
	s.tmpl, err = s.c.Template(&p)
	return s, err
}

func dialOurs(ctx context.Context, addr string, tc *tls.Config) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil || tc == nil {
		return nc, err
	}
	t := tls.Client(mqtt.NonBlocking(nc), tc)
	return t, t.HandshakeContext(ctx)
}

func (s *ours) subscribe(filter string, qos byte) error {
	_, err := s.c.Subscribe(context.Background(), []packet.Subscription{{Filter: filter, QoS: qos}}, packet.Properties{})
	return err
}

func (s *ours) publish(n int, g gate) error {
	if s.tmpl.QoS() == 0 {
		return s.publish0(n, g)
	}
	s.mu.Lock()
	s.left, s.open = n, n
	s.mu.Unlock()
	s.more()
	if err := s.c.Flush(); err != nil {
		return err
	}
	return <-s.ended
}

// publish0 writes as fast as the connection allows.
func (s *ours) publish0(n int, g gate) error {
	for n > 0 {
		k := n
		if g != nil {
			g.enter()
			k = 1 + g.enterMore(n-1)
		}
		n -= k
		for k > 0 {
			sent, err := s.c.PublishN(s.tmpl, k, 0, nil)
			if err == nil {
				err = s.c.Flush()
			}
			if err != nil {
				return err
			}
			if k -= sent; sent == 0 {
				<-s.room
			}
		}
	}
	return nil
}

// more appends as many messages as the window has room for.
func (s *ours) more() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left > 0 {
		sent, _ := s.c.PublishN(s.tmpl, s.left, 0, nil)
		s.left -= sent
	}
}

func (s *ours) Message(m *packet.Publish) { s.got(m.Payload) }

func (s *ours) Acks(acks []mqtt.Ack) {
	done := 0
	for i := range acks {
		if acks[i].Done {
			done++
		}
	}
	s.mu.Lock()
	s.open -= done
	if done > 0 && s.open == 0 {
		s.ended <- nil
	}
	s.mu.Unlock()
}

func (s *ours) BatchEnd() {
	if s.tmpl != nil && s.tmpl.QoS() > 0 {
		s.more()
	}
}

func (s *ours) Room() {
	if s.tmpl.QoS() > 0 {
		s.more()
		_ = s.c.Flush()
		return
	}
	select {
	case s.room <- struct{}{}:
	default:
	}
}

func (s *ours) Closed(err error) {
	select {
	case s.ended <- err:
	default:
	}
}

func (s *ours) close() { s.c.Close() }
