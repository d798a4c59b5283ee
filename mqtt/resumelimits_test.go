package mqtt

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestResumeWithinLimits: if a broker comes back with lower limits, messages beyond them
// are not resent [MQTT-3.2.2-11, MQTT-3.2.2-14, MQTT-3.2.2-15]. The error of Connect names
// the message, and the session keeps it for a broker that allows it.
func TestResumeWithinLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		connack string
		fits    bool
	}{
		"packet size":        {"20 08 01 00 05 27 00000009", false},
		"packet size, fits":  {"20 08 01 00 05 27 0000000a", true},
		"qos":                {"20 05 01 00 02 24 01", false},
		"retain":             {"20 05 01 00 02 25 00", false},
		"retain, allowed":    {"20 05 01 00 02 25 01", true},
		"none, session gone": {"20 05 00 00 02 24 01", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSession()
			cfg := Config{Version: packet.V5, ClientID: "c", Session: s}
			c, peer := start(t, cfg, connack5)
			for _, retain := range []bool{false, true} {
				tmpl, err := c.Template(&packet.Publish{QoS: 2, PacketID: 1, Retain: retain, Topic: []byte("a"), Payload: []byte("hi")})
				if err != nil {
					t.Fatal(err)
				}
				if n, err := c.PublishN(tmpl, 1, 0, nil); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				_ = c.Flush()
			}
			peer.Expect("34 08 0001 61 0001 00 6869")
			peer.Expect("35 08 0001 61 0002 00 6869")
			cut(c, peer)

			peer, nc := mqtttest.Pipe(t, packet.V5)
			cfg.Dial = func(context.Context) (net.Conn, error) { return nc, nil }
			done := make(chan struct{})
			go func() {
				defer close(done)
				peer.ExpectType(packet.CONNECT)
				peer.Send(tt.connack)
				if !tt.fits {
					peer.ExpectEnd()
				}
			}()
			c, err := Connect(t.Context(), cfg)
			<-done
			var limit *LimitError
			switch {
			case tt.fits && err != nil, !tt.fits && !errors.As(err, &limit):
				t.Fatalf("connected: %v", err)
			case tt.fits:
				c.Close()
				return
			}
			c, peer = start(t, cfg, resumed5)
			peer.Expect("3c 08 0001 61 0001 00 6869")
			peer.Expect("3d 08 0001 61 0002 00 6869")
			cut(c, peer)
		})
	}
}

// TestResumeReleases: the limits are for PUBLISH, not for PUBREL.
func TestResumeReleases(t *testing.T) {
	cfg := Config{Version: packet.V5, ClientID: "c", Session: NewSession()}
	c, peer := start(t, cfg, connack5)
	publish(t, c, 2, 1, 0)
	peer.Expect("34 08 0001 61 0001 00 6869")
	peer.Send("50 02 0001")
	peer.Expect("62 02 0001")
	cut(c, peer)
	c, peer = start(t, cfg, "20 0a 01 00 07 24 01 27 00000009")
	peer.Expect("62 02 0001")
	cut(c, peer)
}

// TestLinkEndsOverLimits: a link with a message that must not be resent does not retry.
func TestLinkEndsOverLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		s := &theatre{t: t, v: packet.V5}
		s.scenes = []func(*mqtttest.Peer){
			func(p *mqtttest.Peer) { accept(p, connack5); p.ExpectType(packet.PUBLISH); p.Close() },
			func(p *mqtttest.Peer) { accept(p, "20 08 01 00 05 27 00000009"); p.ExpectEnd() },
		}
		cfg := s.config(j)
		cfg.Session = NewSession()
		l, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		publish(t, l.Client(), 1, 1, 0)
		select {
		case <-l.Done():
		case <-time.After(time.Minute):
			t.Fatal("the link still tries")
		}
		var limit *LimitError
		if !errors.As(l.Err(), &limit) || len(s.dials) != 2 {
			t.Errorf("%d attempts, %v", len(s.dials), l.Err())
		}
	})
}
