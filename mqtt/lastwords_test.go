package mqtt

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// mute is a connection whose peer at some point stops reading, but still sends.
type mute struct {
	net.Conn
	broken atomic.Bool
	failed chan struct{}
}

func (m *mute) Write(p []byte) (int, error) {
	if !m.broken.Load() {
		return m.Conn.Write(p)
	}
	close(m.failed)
	return 0, syscall.EPIPE
}

// mutes returns a dialer of one connection whose peer sends CONNACK and then becomes
// mute.
func mutes(t *testing.T) (*mqtttest.Peer, *mute, Dialer) {
	peer, nc := mqtttest.Pipe(t, packet.V5)
	m := &mute{Conn: nc, failed: make(chan struct{})}
	go func() {
		peer.ExpectType(packet.CONNECT)
		peer.Send(connack5)
	}()
	return peer, m, func(context.Context) (net.Conn, error) { return m, nil }
}

func takenOver(err error) bool {
	var told *DisconnectedError
	return errors.As(err, &told) && told.Code == packet.ReasonSessionTakenOver
}

// TestLastWords: if the broker sends DISCONNECT and closes, and a write fails before
// the DISCONNECT is read, the error is still the broker's reason: a client whose
// session was taken over must not reconnect. The handler, Err, a waiting Publish and
// PublishN all get this error.
func TestLastWords(t *testing.T) {
	peer, m, dial := mutes(t)
	r := newRecorder()
	c, err := Connect(t.Context(), Config{Version: packet.V5, ClientID: "c", Handler: r, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	m.broken.Store(true)
	waited := make(chan error)
	go func() {
		_, err := c.Publish(context.Background(), &packet.Publish{QoS: 1, PacketID: 1, Topic: []byte("a")})
		waited <- err
	}()
	<-m.failed
	peer.Send("30 06 0001 61 00 6869  e0 01 8e")
	<-c.Done()
	_, err = c.PublishN(mustTemplate(t, c), 1, 0, nil)
	for who, err := range map[string]error{"Closed": r.closed, "Err": c.Err(), "Publish": <-waited, "PublishN": err, "Flush": c.Flush()} {
		if !takenOver(err) {
			t.Errorf("%s: %v", who, err)
		}
	}
	if len(r.messages) != 1 {
		t.Errorf("messages %q", r.messages)
	}
}

// TestLinkLastWords: after that a link does not reconnect, and has the same error.
func TestLinkLastWords(t *testing.T) {
	peer, m, dial := mutes(t)
	r := newRecorder()
	l, err := Open(t.Context(), LinkConfig{Config: Config{Version: packet.V5, ClientID: "c", Handler: r, Dial: dial}, Reconnect: true})
	if err != nil {
		t.Fatal(err)
	}
	m.broken.Store(true)
	publish(t, l.Client(), 0, 1, 0)
	<-m.failed
	peer.Send("e0 01 8e")
	<-l.Done()
	for who, err := range map[string]error{"Closed": r.closed, "Link.Err": l.Err(), "Client.Err": l.Client().Err()} {
		if !takenOver(err) {
			t.Errorf("%s: %v", who, err)
		}
	}
}
