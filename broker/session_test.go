package broker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"net"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// kept is a CONNECT whose session outlives the connection.
func kept(v packet.Version, id string) packet.Connect {
	p := packet.Connect{Version: v, ClientID: id}
	if v == packet.V5 {
		p.Properties.SessionExpiry = ptr(uint32(1000))
	}
	return p
}

// drop ends the connection without DISCONNECT and waits until the session is
// without connection.
func (c *peer) drop(b *Broker, id string) {
	c.t.Helper()
	_ = c.nc.Close()
	b.waitOffline(c.t, id)
}

func (b *Broker) waitOffline(t testing.TB, id string) {
	t.Helper()
	b.mu.Lock()
	var owner *client
	if s := b.sessions[id]; s != nil {
		owner = s.owner
	}
	b.mu.Unlock()
	if owner == nil {
		return
	}
	select {
	case <-owner.done:
	case <-time.After(patience):
		t.Fatal("connection does not end")
	}
}

// TestResume: unacknowledged messages are resent in the original order, with DUP and
// the same identifier, or as PUBREL after a PUBREC. The messages queued meanwhile
// follow. QoS 0 is not queued.
func TestResume(t *testing.T) {
	for _, v := range versions {
		t.Run(v.String(), func(t *testing.T) {
			b := startBroker(t, Config{})
			addr := listen(t, b)
			c, ack := connectAck(t, addr, kept(v, "c"))
			if ack.SessionPresent {
				t.Error("session present on the first connection")
			}
			c.subscribe(sub("a", 2))
			p := connect(t, addr, clean(packet.V311, "p"))
			ids := map[string]uint16{}
			for i, qos := range []byte{1, 2, 2, 1, 0} {
				payload := fmt.Sprint(i)
				p.publish("a", payload, qos, min(uint16(qos), 1))
				finishPublish(p, qos, 1)
				ids[payload] = c.wantPublish("a", payload, qos).PacketID
			}
			c.sendAck(packet.PUBACK, ids["0"])
			c.sendAck(packet.PUBREC, ids["1"])
			c.wantAck(packet.PUBREL, ids["1"], 0)
			c.sync()
			c.drop(b, "c")
			for i, qos := range []byte{0, 1, 2} {
				p.publish("a", fmt.Sprint("offline ", i), qos, min(uint16(qos), 1))
				finishPublish(p, qos, 1)
			}
			p.sync()

			again, ack := connectAck(t, addr, kept(v, "c"))
			if got := ack.SessionPresent; got != (v != packet.V31) && v != packet.V31 {
				t.Errorf("session present %v", got)
			}
			again.wantAck(packet.PUBREL, ids["1"], 0)
			for _, payload := range []string{"2", "3"} {
				qos := byte(2)
				if payload == "3" {
					qos = 1
				}
				if got := again.wantPublish("a", payload, qos); !got.Dup || got.PacketID != ids[payload] {
					t.Errorf("%s: %+v, want DUP and id %d", payload, got, ids[payload])
				}
			}
			for i := 1; i <= 2; i++ {
				if got := again.wantPublish("a", fmt.Sprint("offline ", i), byte(i)); got.Dup {
					t.Error("DUP on a first sending")
				}
			}
			again.sendAck(packet.PUBCOMP, ids["1"])
			again.sync()
			b.checkAccounts(t, "c", 4)
			again.leave()
		})
	}
}

// checkAccounts compares the bytes charged to a session with what it holds.
func (b *Broker) checkAccounts(t *testing.T, id string, used int) {
	t.Helper()
	b.mu.Lock()
	s := b.sessions[id]
	b.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := 0
	for _, d := range s.win.kept {
		sum += d.cost
	}
	for _, d := range s.queue.items[s.queue.head:] {
		if d.id == 0 {
			sum += d.cost
		}
	}
	if sum != s.bytes || s.win.ids.Used() != used {
		t.Errorf("session is charged %d bytes and holds %d; %d identifiers in use, want %d", s.bytes, sum, s.win.ids.Used(), used)
	}
}

// TestResumeTwice loses the connection again before everything is resent.
func TestResumeTwice(t *testing.T) {
	b := startBroker(t, Config{})
	addr := listen(t, b)
	first := kept(packet.V5, "c")
	c := connect(t, addr, first)
	c.subscribe(sub("a", 1))
	p := connect(t, addr, clean(packet.V311, "p"))
	for i := range 10 {
		p.publish1("a", fmt.Sprint(i))
		c.wantPublish("a", fmt.Sprint(i), 1)
	}
	c.drop(b, "c")
	narrow := kept(packet.V5, "c")
	narrow.Properties.ReceiveMaximum = ptr(uint16(3))
	for range 3 {
		c = connect(t, addr, narrow)
		for i := range 3 {
			if got := c.wantPublish("a", fmt.Sprint(i), 1); !got.Dup {
				t.Error("not marked as repeated")
			}
		}
		c.sync() // no more than the Receive Maximum
		b.checkAccounts(t, "c", 10)
		c.drop(b, "c")
	}
	p.publish1("a", "10")
	c = connect(t, addr, narrow)
	for i := range 11 {
		c.sendAck(packet.PUBACK, c.wantPublish("a", fmt.Sprint(i), 1).PacketID)
	}
	c.sync()
	b.checkAccounts(t, "c", 0)
}

// TestQuotaAfterResume: PUBCOMP for a PUBREL sent again does not raise the
// send quota above the Receive Maximum. [MQTT5 4.9]
func TestQuotaAfterResume(t *testing.T) {
	b := startBroker(t, Config{})
	addr := listen(t, b)
	c := connect(t, addr, kept(packet.V5, "c"))
	c.subscribe(sub("a", 2))
	p := connect(t, addr, clean(packet.V311, "p"))
	for id := uint16(1); id <= 3; id++ {
		p.publish("a", "x", 2, id)
		finishPublish(p, 2, id)
		got := c.wantPublish("a", "x", 2).PacketID
		c.sendAck(packet.PUBREC, got)
		c.wantAck(packet.PUBREL, got, 0)
	}
	c.drop(b, "c")
	narrow := kept(packet.V5, "c")
	narrow.Properties.ReceiveMaximum = ptr(uint16(1))
	c = connect(t, addr, narrow)
	for id := uint16(1); id <= 3; id++ {
		c.wantAck(packet.PUBREL, id, 0)
		c.sendAck(packet.PUBCOMP, id)
	}
	c.sync()
	for range 4 {
		p.publish1("a", "y")
	}
	for range 4 {
		got := c.wantPublish("a", "y", 1)
		c.sync() // one at a time
		c.sendAck(packet.PUBACK, got.PacketID)
	}
	c.sync()
	b.checkAccounts(t, "c", 0)
}

// TestCleanStart: a clean start ends the session that was kept, and a session
// that is not kept ends with its connection.
func TestCleanStart(t *testing.T) {
	for _, v := range versions {
		b := startBroker(t, Config{})
		addr := listen(t, b)
		c := connect(t, addr, kept(v, "c"))
		c.subscribe(sub("a", 1))
		c.leave()
		b.waitOffline(t, "c")
		if n := b.Stats().Subscriptions; n != 1 {
			t.Fatalf("%v: %d subscriptions, want 1", v, n)
		}
		c, ack := connectAck(t, addr, clean(v, "c"))
		if ack.SessionPresent || b.Stats().Subscriptions != 0 {
			t.Errorf("%v: clean start left something", v)
		}
		c.subscribe(sub("a", 1))
		c.leave()
		b.waitOffline(t, "c")
		if s := b.Stats(); s.Sessions != 0 || s.Subscriptions != 0 {
			t.Errorf("%v: %+v is left", v, s)
		}
	}
}

func TestTakeover(t *testing.T) {
	b := startBroker(t, Config{})
	addr := listen(t, b)
	for _, v := range versions {
		c := connect(t, addr, kept(v, "c"))
		c.subscribe(sub("a", 1))
		c.publish("a", "x", 1, 1)
		c.wantPublish("a", "x", 1)
		c.wantAck(packet.PUBACK, 1, 0)
		other := connect(t, addr, kept(packet.V5, "c"))
		c.wantClosed(packet.ReasonSessionTakenOver)
		if got := other.wantPublish("a", "x", 1); !got.Dup {
			t.Error("not marked as repeated")
		}
		other.sync()
		other.leave()
		connect(t, addr, clean(packet.V5, "c")).leave()
	}
}

// TestQoS2SurvivesReconnect: the identifiers of a publisher are part of its
// session, so that a repetition is known on the next connection.
func TestQoS2SurvivesReconnect(t *testing.T) {
	b := startBroker(t, Config{})
	addr := listen(t, b)
	s := connect(t, addr, clean(packet.V311, "s"))
	s.subscribe(sub("a", 0))
	p := connect(t, addr, kept(packet.V311, "p"))
	p.publish("a", "x", 2, 9)
	p.wantAck(packet.PUBREC, 9, 0)
	p.drop(b, "p")
	p = connect(t, addr, kept(packet.V311, "p"))
	p.send(&packet.Publish{Topic: []byte("a"), Payload: []byte("x"), QoS: 2, PacketID: 9, Dup: true})
	finishPublish(p, 2, 9)
	s.wantPublish("a", "x", 0)
	s.sync()
}

// TestOfflineQueueBound: the queue of a session without a connection is bounded. Other
// messages are counted as dropped.
func TestOfflineQueueBound(t *testing.T) {
	b := startBroker(t, Config{MaxQueuedMessages: 3})
	addr := listen(t, b)
	c := connect(t, addr, kept(packet.V311, "c"))
	c.subscribe(sub("a", 1))
	c.drop(b, "c")
	p := connect(t, addr, clean(packet.V311, "p"))
	for i := range 5 {
		p.publish1("a", fmt.Sprint(i))
	}
	c = connect(t, addr, kept(packet.V311, "c"))
	for i := range 3 {
		c.wantPublish("a", fmt.Sprint(i), 1)
	}
	c.sync()
	if n := b.Stats().Dropped; n != 2 {
		t.Errorf("dropped %d, want 2", n)
	}
}

// joinPipe connects over net.Pipe, for virtual time.
func joinPipe(t *testing.T, b *Broker) *peer {
	here, there := net.Pipe()
	go b.ServeConn(there)
	return peerOf(t, here)
}

func connectPipe(t *testing.T, b *Broker, p packet.Connect) *peer {
	t.Helper()
	c := joinPipe(t, b)
	if ack := c.connect(p); ack.Code != 0 {
		t.Fatalf("CONNACK %v", ack.Code)
	}
	return c
}

// virtual runs a test in virtual time with a broker that is closed at its end.
func virtual(t *testing.T, cfg Config, test func(t *testing.T, b *Broker)) {
	synctest.Test(t, func(t *testing.T) {
		b := New(cfg)
		defer func() {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(t, b)
	})
}

// within fails unless got lies in [want, want + a sweep or two].
func within(t *testing.T, got, want time.Duration) {
	t.Helper()
	if got < want || got > want+2*sweepInterval {
		t.Errorf("after %v, want %v", got, want)
	}
}

// patient reads without a deadline, which would end before virtual time does.
func (c *peer) patient() packet.Frame {
	c.t.Helper()
	_ = c.nc.SetReadDeadline(time.Time{})
	for {
		f, ok, err := c.scan.Next()
		c.must(err)
		if ok {
			return f
		}
		n, err := c.nc.Read(c.scan.Space())
		c.scan.Advance(n)
		if err != nil {
			return packet.Frame{}
		}
	}
}

// TestKeepAlive: silence of one and a half times the Keep Alive ends the
// connection, anything sent puts it off. [MQTT-3.1.2-22]
func TestKeepAlive(t *testing.T) {
	for _, v := range versions {
		virtual(t, Config{}, func(t *testing.T, b *Broker) {
			conn := clean(v, "c")
			conn.KeepAlive = 10
			c := connectPipe(t, b, conn)
			for range 3 {
				time.Sleep(14 * time.Second)
				c.sync()
			}
			start := time.Now()
			f := c.patient()
			within(t, time.Since(start), 15*time.Second)
			if v == packet.V5 {
				if f.Type() != packet.DISCONNECT || f.Body[0] != byte(packet.ReasonKeepAliveTimeout) {
					t.Errorf("got %s", packet.Format(f, v))
				}
			} else if f.First != 0 {
				t.Errorf("got %s", packet.Format(f, v))
			}
		})
	}
}

// TestNoConnect: a silent connection is closed.
func TestNoConnect(t *testing.T) {
	virtual(t, Config{}, func(t *testing.T, b *Broker) {
		c := joinPipe(t, b)
		start := time.Now()
		if f := c.patient(); f.First != 0 {
			t.Errorf("got %s", packet.Format(f, c.v))
		}
		within(t, time.Since(start), 10*time.Second)
	})
}

// TestSessionExpiry: a session is there until its interval has passed.
func TestSessionExpiry(t *testing.T) {
	virtual(t, Config{}, func(t *testing.T, b *Broker) {
		conn := packet.Connect{Version: packet.V5, ClientID: "c"}
		conn.Properties.SessionExpiry = ptr(uint32(20))
		for i, away := range []time.Duration{19 * time.Second, 20*time.Second + 2*sweepInterval, 0} {
			c := joinPipe(t, b)
			if ack := c.connect(conn); ack.SessionPresent != (i == 1) {
				t.Errorf("connection %d: session present %v", i, ack.SessionPresent)
			}
			_ = c.nc.Close()
			synctest.Wait()
			time.Sleep(away)
			if got := b.Stats().Sessions; (got == 0) != (away > 20*time.Second) {
				t.Errorf("%d sessions after %v", got, away)
			}
		}
	})
}

// TestDisconnectExpiry: DISCONNECT may change the interval.
func TestDisconnectExpiry(t *testing.T) {
	virtual(t, Config{}, func(t *testing.T, b *Broker) {
		c := connectPipe(t, b, kept(packet.V5, "c"))
		d := packet.Disconnect{}
		d.Properties.SessionExpiry = ptr(uint32(0))
		c.send(&d)
		c.wantEOF()
		synctest.Wait()
		if b.Stats().Sessions != 0 {
			t.Error("session is kept")
		}
	})
}

// TestMessageExpiry: messages queued for too long are not delivered, and others carry
// the remaining interval. The same holds for retained messages.
func TestMessageExpiry(t *testing.T) {
	virtual(t, Config{}, func(t *testing.T, b *Broker) {
		c := connectPipe(t, b, kept(packet.V5, "c"))
		c.subscribe(sub("a", 1))
		_ = c.nc.Close()
		synctest.Wait()
		p := connectPipe(t, b, clean(packet.V5, "p"))
		for i, expiry := range []uint32{10, 30} {
			for _, topic := range []string{"a", fmt.Sprint("r/", i)} {
				pub := packet.Publish{Topic: []byte(topic), Payload: []byte{byte('0' + i)}, QoS: 1, PacketID: 1, Retain: topic != "a"}
				p.must(pub.SetProperties(&packet.Properties{MessageExpiry: &expiry, ContentType: ptr("x")}))
				p.send(&pub)
				p.wantAck(packet.PUBACK, 1, 0)
			}
		}
		time.Sleep(12 * time.Second)
		c = connectPipe(t, b, kept(packet.V5, "c"))
		check := func(topic string) {
			t.Helper()
			got, props := c.publication()
			if string(got.Topic) != topic || props.MessageExpiry == nil || *props.MessageExpiry != 18 || props.ContentType == nil {
				t.Errorf("%q %q %+v", got.Topic, got.Payload, props)
			}
		}
		check("a")
		c.subscribe(sub("r/#", 1))
		check("r/1")
		c.sync()
		if s := b.Stats(); s.Expired != 1 || s.RetainedMessages != 1 {
			t.Errorf("expired %d, retained %d, want 1 and 1", s.Expired, s.RetainedMessages)
		}
	})
}
