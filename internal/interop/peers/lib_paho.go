package main

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	paho5 "github.com/eclipse/paho.golang/paho"
	paho3 "github.com/eclipse/paho.mqtt.golang"
)

// pahoThree is Eclipse's client for 3.1.1.
type pahoThree struct {
	*conf
	c       paho3.Client
	message []byte
}

func connectPaho3(c *conf, id string, got func([]byte)) (session, error) {
	return dialPaho3(c, id, got, true)
}

// connectPaho3Unordered lets the library call the handler in goroutines.
func connectPaho3Unordered(c *conf, id string, got func([]byte)) (session, error) {
	return dialPaho3(c, id, got, false)
}

func dialPaho3(c *conf, id string, got func([]byte), ordered bool) (session, error) {
	tc, err := c.tlsConfig()
	if err != nil {
		return nil, err
	}
	o := paho3.NewClientOptions().AddBroker(c.url()).SetClientID(id).SetProtocolVersion(4).SetCleanSession(true).
		SetKeepAlive(keepAlive * time.Second).SetOrderMatters(ordered).SetAutoReconnect(false).SetTLSConfig(tc).
		SetDefaultPublishHandler(func(_ paho3.Client, m paho3.Message) { got(m.Payload()) })
	s := &pahoThree{c, paho3.NewClient(o), make([]byte, c.payload)}
	return s, waitPaho(s.c.Connect())
}

func waitPaho(t paho3.Token) error {
	t.Wait()
	return t.Error()
}

func (s *pahoThree) subscribe(filter string, qos byte) error {
	return waitPaho(s.c.Subscribe(filter, qos, nil))
}

func (s *pahoThree) publish(n int, g gate) error {
	return inTurn(n, s.window, func() (paho3.Token, error) {
		g.enter()
		return s.c.Publish(topic, s.qos, false, s.message), nil
	}, waitPaho)
}

func (s *pahoThree) close() { s.c.Disconnect(0) }

// pahoFive is Eclipse's client for MQTT 5. Its call returns when the message
// is acknowledged, so that a window needs as many goroutines.
type pahoFive struct {
	*conf
	c *paho5.Client
	m *paho5.Publish
}

func connectPaho5(c *conf, id string, got func([]byte)) (session, error) {
	tc, err := c.tlsConfig()
	if err != nil {
		return nil, err
	}
	nc, err := net.Dial("tcp", c.addr)
	if err != nil {
		return nil, err
	}
	if tc != nil {
		nc = tls.Client(nc, tc)
	}
	s := &pahoFive{c, paho5.NewClient(paho5.ClientConfig{
		ClientID: id, Conn: nc, PacketTimeout: patience,
		OnPublishReceived: []func(paho5.PublishReceived) (bool, error){func(r paho5.PublishReceived) (bool, error) {
			got(r.Packet.Payload)
			return true, nil
		}},
	}), &paho5.Publish{Topic: topic, QoS: c.qos, Payload: make([]byte, c.payload)}}
	_, err = s.c.Connect(context.Background(), &paho5.Connect{ClientID: id, KeepAlive: keepAlive, CleanStart: true})
	return s, err
}

func (s *pahoFive) subscribe(filter string, qos byte) error {
	_, err := s.c.Subscribe(context.Background(), &paho5.Subscribe{Subscriptions: []paho5.SubscribeOptions{{Topic: filter, QoS: qos}}})
	return err
}

func (s *pahoFive) publish(n int, g gate) error {
	publish := func() error {
		g.enter()
		_, err := s.c.Publish(context.Background(), s.m)
		return err
	}
	if s.qos == 0 {
		return atOnce(n, 1, publish)
	}
	return atOnce(n, s.window, publish)
}

func (s *pahoFive) close() { _ = s.c.Disconnect(&paho5.Disconnect{}) }
