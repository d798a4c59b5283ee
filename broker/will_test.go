package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

func withWill(p packet.Connect, delay uint32) packet.Connect {
	p.Will = &packet.Will{Topic: "will", Payload: []byte("gone"), QoS: 1, Retain: true}
	if p.Version == packet.V5 {
		p.Will.Properties.ContentType = ptr("text")
		if delay > 0 {
			p.Will.Properties.WillDelay = &delay
		}
	}
	return p
}

// TestWill: the will is published when the connection is lost, whatever the
// cause, and not after DISCONNECT, unless that asks for it.
func TestWill(t *testing.T) {
	for _, v := range versions {
		for _, tc := range []struct {
			name  string
			leave func(c *peer)
			want  bool
		}{
			{"lost", func(c *peer) { _ = c.nc.Close() }, true},
			{"error", func(c *peer) { c.raw("f1 00") }, true},
			{"disconnect", func(c *peer) { c.send(&packet.Disconnect{}) }, false},
			{"disconnect with will", func(c *peer) {
				if c.v != packet.V5 {
					_ = c.nc.Close()
					return
				}
				c.send(&packet.Disconnect{Code: packet.ReasonDisconnectWithWill})
			}, true},
		} {
			t.Run(v.String()+"/"+tc.name, func(t *testing.T) {
				b := startBroker(t, Config{})
				addr := listen(t, b)
				s := connect(t, addr, clean(packet.V5, "s"))
				s.subscribe(sub("will", 2))
				c := connect(t, addr, withWill(clean(v, "c"), 0))
				c.sync()
				tc.leave(c)
				b.waitOffline(t, "c")
				if tc.want {
					got, props := s.publication()
					if string(got.Payload) != "gone" || got.QoS != 1 || (v == packet.V5) != (props.ContentType != nil) {
						t.Errorf("%+v %+v", got, props)
					}
				}
				s.sync()
				if got := b.Stats().RetainedMessages; (got == 1) != tc.want {
					t.Errorf("%d retained", got)
				}
			})
		}
	}
}

// TestWillDelay: the will waits for its delay or the end of the session,
// whichever is first, and a client that comes back takes it away.
func TestWillDelay(t *testing.T) {
	for _, tc := range []struct {
		name          string
		delay, expiry uint32
		back          time.Duration // when the client comes back; 0 is never
		cleanStart    bool
		want          time.Duration // when the will comes; 0 is never, or at once without a session
	}{
		{name: "delay first", delay: 5, expiry: 20, want: 5 * time.Second},
		{name: "session first", delay: 20, expiry: 5, want: 5 * time.Second},
		{name: "no session", delay: 5},
		{name: "back in time", delay: 5, expiry: 20, back: 4 * time.Second},
		{name: "back with a clean start", delay: 5, expiry: 20, back: 4 * time.Second, cleanStart: true, want: 4 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtual(t, Config{}, func(t *testing.T, b *Broker) {
				s := connectPipe(t, b, clean(packet.V311, "s"))
				s.subscribe(sub("will", 0))
				came := make(chan time.Time, 1)
				go func() {
					if f := s.patient(); f.Type() == packet.PUBLISH {
						came <- time.Now()
					}
				}()
				conn := withWill(clean(packet.V5, "c"), tc.delay)
				conn.Properties.SessionExpiry = &tc.expiry
				c := connectPipe(t, b, conn)
				_ = c.nc.Close()
				synctest.Wait()
				start := time.Now()
				if tc.back > 0 {
					time.Sleep(tc.back)
					conn.CleanStart = tc.cleanStart
					conn.Will = nil
					again := connectPipe(t, b, conn)
					time.Sleep(time.Second)
					again.send(&packet.Disconnect{}) // the will of before is not left over
				}
				time.Sleep(time.Minute)
				select {
				case at := <-came:
					if tc.want == 0 && tc.expiry > 0 {
						t.Error("the will has come")
					}
					within(t, at.Sub(start), tc.want)
				default:
					if tc.want > 0 || tc.expiry == 0 {
						t.Error("the will has not come")
					}
				}
			})
		})
	}
}

// TestShutdownPublishesNoWill: the end of the broker is not the loss of a client.
func TestShutdownPublishesNoWill(t *testing.T) {
	b := startBroker(t, Config{})
	addr := listen(t, b)
	s := connect(t, addr, clean(packet.V5, "s"))
	s.subscribe(sub("will", 0))
	c := connect(t, addr, withWill(clean(packet.V5, "c"), 0))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	s.wantClosed(packet.ReasonServerShuttingDown)
	c.wantClosed(packet.ReasonServerShuttingDown)
}
