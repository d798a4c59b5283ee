package main

import (
	"context"
	"time"

	gomqtt "github.com/256dpi/gomqtt/client"
	gopacket "github.com/256dpi/gomqtt/packet"
	"github.com/256dpi/gomqtt/transport"
	atwat "github.com/at-wat/mqtt-go"
)

// gomqttSession is 256dpi's client. It writes when it has collected 4 KiB, or after
// MaxWriteDelay: 10 ms by default, which saves system calls and delays a small
// window.
type gomqttSession struct {
	*conf
	c       *gomqtt.Client
	message []byte
}

func connectGomqtt(c *conf, id string, got func([]byte)) (session, error) {
	return dialGomqtt(c, id, got, 10*time.Millisecond)
}

// connectGomqttNow is gomqtt with the shortest delay that a timer can keep.
func connectGomqttNow(c *conf, id string, got func([]byte)) (session, error) {
	return dialGomqtt(c, id, got, 100*time.Microsecond)
}

func dialGomqtt(c *conf, id string, got func([]byte), delay time.Duration) (session, error) {
	tc, err := c.tlsConfig()
	if err != nil {
		return nil, err
	}
	s := &gomqttSession{c, gomqtt.New(), make([]byte, c.payload)}
	s.c.Callback = func(m *gopacket.Message, err error) error {
		if err == nil {
			got(m.Payload)
		}
		return nil
	}
	o := gomqtt.NewConfigWithClientID(c.url(), id)
	o.KeepAlive, o.MaxWriteDelay = (keepAlive * time.Second).String(), delay
	o.Dialer = transport.NewDialer(transport.DialConfig{TLSConfig: tc})
	f, err := s.c.Connect(o)
	if err != nil {
		return nil, err
	}
	return s, f.Wait(patience)
}

func (s *gomqttSession) subscribe(filter string, qos byte) error {
	f, err := s.c.Subscribe(filter, gopacket.QOS(qos))
	if err != nil {
		return err
	}
	return f.Wait(patience)
}

func (s *gomqttSession) publish(n int, g gate) error {
	return inTurn(n, s.window, func() (gomqtt.GenericFuture, error) {
		g.enter()
		return s.c.Publish(topic, s.message, gopacket.QOS(s.qos), false)
	}, func(f gomqtt.GenericFuture) error {
		return f.Wait(0) // without a timeout, which would cost a timer each time
	})
}

func (s *gomqttSession) close() { _ = s.c.Close() }

// atwatSession is at-wat's client, whose call returns when the message is
// acknowledged.
type atwatSession struct {
	*conf
	c       *atwat.BaseClient
	message []byte
}

func connectAtwat(c *conf, id string, got func([]byte)) (session, error) {
	tc, err := c.tlsConfig()
	if err != nil {
		return nil, err
	}
	scheme := "mqtt://"
	var options []atwat.DialOption
	if tc != nil {
		scheme, options = "mqtts://", append(options, atwat.WithTLSConfig(tc))
	}
	s := &atwatSession{c, nil, make([]byte, c.payload)}
	ctx := context.Background()
	if s.c, err = atwat.DialContext(ctx, scheme+c.addr, options...); err != nil {
		return nil, err
	}
	s.c.Handle(atwat.HandlerFunc(func(m *atwat.Message) { got(m.Payload) }))
	_, err = s.c.Connect(ctx, id, atwat.WithCleanSession(true), atwat.WithKeepAlive(keepAlive))
	return s, err
}

func (s *atwatSession) subscribe(filter string, qos byte) error {
	_, err := s.c.Subscribe(context.Background(), atwat.Subscription{Topic: filter, QoS: atwat.QoS(qos)})
	return err
}

func (s *atwatSession) publish(n int, g gate) error {
	publish := func() error {
		g.enter()
		return s.c.Publish(context.Background(), &atwat.Message{Topic: topic, QoS: atwat.QoS(s.qos), Payload: s.message})
	}
	if s.qos == 0 {
		return atOnce(n, 1, publish)
	}
	return atOnce(n, s.window, publish)
}

func (s *atwatSession) close() { _ = s.c.Close() }
