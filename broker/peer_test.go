package broker

import (
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// patience is the timeout of every wait in these tests. Only a failing test waits for
// so long.
const patience = 10 * time.Second

// startBroker makes a broker that is gone at the end of the test.
func startBroker(t testing.TB, cfg Config) *Broker {
	t.Helper()
	if cfg.Logf == nil {
		cfg.Logf = func(string, ...any) {}
	}
	b := New(cfg)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// listen serves b on a loopback TCP port.
func listen(t testing.TB, b *Broker) string {
	t.Helper()
	l, err := Listen("mqtt", "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = b.Serve(l) }()
	return l.Addr().String()
}

// peer is the other end of a connection to the broker: it sends and expects
// packets one by one.
type peer struct {
	t    testing.TB
	nc   net.Conn
	v    packet.Version
	scan *packet.Scanner

	outbox chan []byte // written by flood after its messages; nil without
}

// join opens a connection over loopback TCP without sending anything.
func join(t testing.TB, addr string) *peer {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return peerOf(t, nc)
}

func peerOf(t testing.TB, nc net.Conn) *peer {
	t.Cleanup(func() { _ = nc.Close() })
	return &peer{t: t, nc: nc, v: packet.V311, scan: packet.NewScanner(nil, 0)}
}

// clean is a CONNECT without anything special.
func clean(v packet.Version, id string) packet.Connect {
	return packet.Connect{Version: v, CleanStart: true, ClientID: id}
}

// connect joins and is accepted.
func connect(t testing.TB, addr string, p packet.Connect) *peer {
	t.Helper()
	c, _ := connectAck(t, addr, p)
	return c
}

func connectAck(t testing.TB, addr string, p packet.Connect) (*peer, packet.Connack) {
	t.Helper()
	c := join(t, addr)
	ack := c.connect(p)
	if ack.Code != packet.ReasonSuccess {
		t.Fatalf("CONNACK: %v", ack.Code)
	}
	return c, ack
}

func (c *peer) connect(p packet.Connect) packet.Connack {
	c.t.Helper()
	c.v = p.Version
	buf, err := p.Append(nil)
	c.write(buf, err)
	var ack packet.Connack
	c.must(ack.Decode(c.frame(packet.CONNACK), c.v))
	return ack
}

func (c *peer) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *peer) write(buf []byte, err error) {
	c.t.Helper()
	c.must(err)
	c.must(c.nc.SetWriteDeadline(time.Now().Add(patience)))
	_, err = c.nc.Write(buf)
	c.must(err)
}

// raw sends bytes given in hexadecimal.
func (c *peer) raw(s string) {
	c.t.Helper()
	c.write(hex.DecodeString(strings.ReplaceAll(s, " ", "")))
}

type encoder interface {
	Append(dst []byte, v packet.Version) ([]byte, error)
}

func (c *peer) send(p encoder) {
	c.t.Helper()
	c.write(p.Append(nil, c.v))
}

// next reads one packet.
func (c *peer) next() (packet.Frame, error) {
	for {
		f, ok, err := c.scan.Next()
		if ok || err != nil {
			return f, err
		}
		_ = c.nc.SetReadDeadline(time.Now().Add(patience))
		n, err := c.nc.Read(c.scan.Space())
		c.scan.Advance(n)
		if err != nil && n == 0 {
			return f, err
		}
	}
}

// frame reads one packet, which must be of type t.
func (c *peer) frame(t packet.Type) packet.Frame {
	c.t.Helper()
	f, err := c.next()
	if err != nil {
		c.t.Fatalf("waiting for %s: %v", t, err)
	}
	if f.Type() != t {
		c.t.Fatalf("got %s, want %s", packet.Format(f, c.v), t)
	}
	return f
}

// publication reads one PUBLISH; its parts are copies.
func (c *peer) publication() (packet.Publish, packet.Properties) {
	c.t.Helper()
	var p packet.Publish
	var props packet.Properties
	c.must(p.Decode(c.frame(packet.PUBLISH), c.v))
	c.must(p.ParseProperties(&props))
	p.Topic, p.Payload = slices.Clone(p.Topic), slices.Clone(p.Payload)
	return p, props
}

// wantPublish reads a PUBLISH and checks what matters most.
func (c *peer) wantPublish(topic, payload string, qos byte) packet.Publish {
	c.t.Helper()
	p, _ := c.publication()
	if string(p.Topic) != topic || string(p.Payload) != payload || p.QoS != qos {
		c.t.Fatalf("got q%d %q %q, want q%d %q %q", p.QoS, p.Topic, p.Payload, qos, topic, payload)
	}
	return p
}

// wantAck reads and checks an acknowledgement. Code 0 also accepts No matching
// subscribers.
func (c *peer) wantAck(t packet.Type, id uint16, code packet.ReasonCode) {
	c.t.Helper()
	var a packet.Ack
	c.must(a.Decode(c.frame(t), c.v))
	if code == packet.ReasonSuccess && a.Code == packet.ReasonNoMatchingSubscribers {
		a.Code = code
	}
	if a.PacketID != id || a.Code != code {
		c.t.Fatalf("got %s id=%d %v, want id=%d %v", t, a.PacketID, a.Code, id, code)
	}
}

func (c *peer) sendAck(t packet.Type, id uint16) { c.write(packet.AppendAck(nil, t, id), nil) }

// sync makes sure that the broker has handled everything sent so far, and that
// it has sent nothing before the answer.
func (c *peer) sync() {
	c.t.Helper()
	c.write(packet.AppendPingreq(nil), nil)
	c.frame(packet.PINGRESP)
}

func (c *peer) subscribe(subs ...packet.Subscription) packet.Suback {
	c.t.Helper()
	return c.subscribeWith(packet.Properties{}, subs...)
}

func (c *peer) subscribeWith(props packet.Properties, subs ...packet.Subscription) packet.Suback {
	c.t.Helper()
	c.send(&packet.Subscribe{PacketID: 7, Subscriptions: subs, Properties: props})
	var ack packet.Suback
	c.must(ack.Decode(c.frame(packet.SUBACK), c.v))
	if ack.PacketID != 7 || len(ack.Codes) != len(subs) {
		c.t.Fatalf("SUBACK %+v for %d filters", ack, len(subs))
	}
	return ack
}

func (c *peer) publish(topic, payload string, qos byte, id uint16) {
	c.t.Helper()
	c.send(&packet.Publish{Topic: []byte(topic), Payload: []byte(payload), QoS: qos, PacketID: id})
}

// publish1 publishes at QoS 1 and waits for the acknowledgement.
func (c *peer) publish1(topic, payload string) {
	c.t.Helper()
	c.publish(topic, payload, 1, 1)
	c.wantAck(packet.PUBACK, 1, 0)
}

// wantClosed expects the end of the connection; in MQTT 5 a DISCONNECT with
// code goes first, in 3.x nothing does.
func (c *peer) wantClosed(code packet.ReasonCode) {
	c.t.Helper()
	if c.v == packet.V5 {
		var d packet.Disconnect
		c.must(d.Decode(c.frame(packet.DISCONNECT), c.v))
		if d.Code != code {
			c.t.Fatalf("DISCONNECT with %v (0x%02x), want %v", d.Code, byte(d.Code), code)
		}
	}
	c.wantEOF()
}

func (c *peer) wantEOF() {
	c.t.Helper()
	f, err := c.next()
	if err == nil {
		c.t.Fatalf("got %s, want the end of the connection", packet.Format(f, c.v))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatal("connection stays open, want it closed")
	}
	if !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") && !errors.Is(err, io.ErrClosedPipe) {
		c.t.Fatal(err)
	}
}

// leave ends the connection properly and waits until the broker has noticed.
func (c *peer) leave() {
	c.t.Helper()
	c.send(&packet.Disconnect{})
	c.wantEOF()
	_ = c.nc.Close()
}

// ptr returns a pointer to a property's value.
func ptr[T any](v T) *T { return &v }

func sub(filter string, qos byte) packet.Subscription {
	return packet.Subscription{Filter: filter, QoS: qos}
}
