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

// mute is a connection whose peer, from some time on, only speaks.
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

// TestLastWords: a broker that says why and goes is understood, though a write
// has failed before that was read. Who is pushed out must know it: it may not
// come back.
func TestLastWords(t *testing.T) {
	peer, nc := mqtttest.Pipe(t, packet.V5)
	m := &mute{Conn: nc, failed: make(chan struct{})}
	go func() {
		peer.ExpectType(packet.CONNECT)
		peer.Send(connack5)
	}()
	r := newRecorder()
	c, err := Connect(t.Context(), Config{
		Version: packet.V5, ClientID: "c", Handler: r, Dial: func(context.Context) (net.Conn, error) { return m, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.broken.Store(true)
	publish(t, c, 0, 1, 0)
	<-m.failed
	peer.Send("30 06 0001 61 00 6869  e0 01 8e")
	<-c.Done()
	var told *DisconnectedError
	if !errors.As(r.closed, &told) || told.Code != packet.ReasonSessionTakenOver {
		t.Errorf("ended by %v", r.closed)
	}
	if len(r.messages) != 1 {
		t.Errorf("messages %q", r.messages)
	}
	if _, err := c.PublishN(mustTemplate(t, c), 1, 0, nil); err == nil {
		t.Error("published on a connection that has ended")
	}
}
