package broker

import (
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/internal/wire"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// flood writes n numbered messages of 1 KiB at QoS 0 or 1 and closes the
// channel it returns when all are written. Identifiers may repeat: QoS 1 does
// not mind.
func (c *peer) flood(topic string, qos byte, n int) chan struct{} {
	done := make(chan struct{})
	_ = c.nc.SetWriteDeadline(time.Time{})
	go func() {
		defer close(done)
		var buf []byte
		payload := make([]byte, 1024)
		for i := range n {
			binary.BigEndian.PutUint32(payload, uint32(i))
			p := packet.Publish{Topic: []byte(topic), Payload: payload, QoS: qos}
			if qos > 0 {
				p.PacketID = uint16(i%60000 + 1)
			}
			buf, _ = p.Append(buf[:0], c.v)
			if _, err := c.nc.Write(buf); err != nil {
				return
			}
		}
		for c.outbox != nil {
			b, more := <-c.outbox
			if !more {
				return
			}
			if _, err := c.nc.Write(b); err != nil {
				return
			}
		}
	}()
	return done
}

// wantFlood reads the messages of a flood in order and acknowledges them;
// other packets are left out.
func (c *peer) wantFlood(n int) {
	c.t.Helper()
	var p packet.Publish
	for i := 0; i < n; {
		f := c.patient()
		if f.First == 0 {
			c.t.Fatalf("connection has ended after %d of %d messages", i, n)
		}
		if f.Type() != packet.PUBLISH {
			continue
		}
		c.must(p.Decode(f, c.v))
		if got := binary.BigEndian.Uint32(p.Payload); got != uint32(i) {
			c.t.Fatalf("message %d, want %d", got, i)
		}
		i++
		if p.QoS == 1 {
			c.answer(packet.AppendAck(nil, packet.PUBACK, p.PacketID))
		}
	}
}

// answer writes b, behind what flood has still to write if there is an outbox:
// waiting for the lock of a net.Pipe would stop virtual time.
func (c *peer) answer(b []byte) {
	c.t.Helper()
	if c.outbox != nil {
		c.outbox <- b
		return
	}
	_, err := c.nc.Write(b)
	c.must(err)
}

// drain reads until the connection ends.
func (c *peer) drain() {
	for c.patient().First != 0 {
	}
}

// held is how many bytes the broker keeps in memory for a session.
func (b *Broker) held(id string) int {
	b.mu.Lock()
	s := b.sessions[id]
	b.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.bytes
	if s.conn != nil {
		out := s.conn.wc.Begin()
		n += len(out)
		s.conn.wc.End(out)
	}
	return n
}

// TestSlowSubscriber: while a subscriber does not read, its publisher is not
// read from; nothing is lost and little is kept.
func TestSlowSubscriber(t *testing.T) {
	const n = 20_000
	for _, qos := range []byte{0, 1} {
		virtual(t, Config{}, func(t *testing.T, b *Broker) {
			start := time.Now()
			s := connectPipe(t, b, clean(packet.V311, "s"))
			s.subscribe(sub("a", qos))
			p := connectPipe(t, b, clean(packet.V311, "p"))
			go p.drain()
			written := p.flood("a", qos, n)
			synctest.Wait()
			select {
			case <-written:
				t.Error("the publisher was not held up")
			default:
			}
			if held := b.held("s"); held > wire.HighWater+2048 {
				t.Errorf("%d bytes are held", held)
			}
			s.wantFlood(n)
			<-written
			s.sync()
			if st := b.Stats(); st.Dropped != 0 || st.MessagesIn != n || st.MessagesOut != n {
				t.Errorf("%+v", st)
			}
			if d := time.Since(start); d != 0 {
				t.Errorf("took %v of waiting", d)
			}
		})
	}
}

// TestNarrowWindow: a subscriber with a small Receive Maximum gets everything,
// never more than that unacknowledged, and QoS 0 is not held up.
func TestNarrowWindow(t *testing.T) {
	const n = 5000
	virtual(t, Config{}, func(t *testing.T, b *Broker) {
		conn := clean(packet.V5, "s")
		conn.Properties.ReceiveMaximum = ptr(uint16(10))
		s := connectPipe(t, b, conn)
		s.subscribe(sub("a", 1), sub("b", 1))
		p := connectPipe(t, b, clean(packet.V311, "p"))
		go p.drain()
		written := p.flood("a", 1, n)
		var ids []uint16
		for range 10 {
			var pub packet.Publish
			s.must(pub.Decode(s.patient(), s.v))
			ids = append(ids, pub.PacketID)
		}
		other := connectPipe(t, b, clean(packet.V311, "other"))
		other.publish("b", "urgent", 0, 0)
		s.wantPublish("b", "urgent", 0)
		s.sync()
		synctest.Wait()
		if got := b.sessions["s"].queue.len(); got < softQueue || got > softQueue+1 {
			t.Errorf("%d messages are queued, want %d", got, softQueue)
		}
		for _, id := range ids {
			s.sendAck(packet.PUBACK, id)
		}
		next := uint32(10)
		for next < n {
			var pub packet.Publish
			s.must(pub.Decode(s.patient(), s.v))
			if got := binary.BigEndian.Uint32(pub.Payload); got != next {
				t.Fatalf("message %d, want %d", got, next)
			}
			next++
			s.sendAck(packet.PUBACK, pub.PacketID)
		}
		<-written
		s.sync()
		b.checkAccounts(t, "s", 0)
	})
}

// TestSelfFlood: before it reads, a client may publish to itself much more than the
// buffers hold, up to the limit.
func TestSelfFlood(t *testing.T) {
	for _, qos := range []byte{0, 1} {
		virtual(t, Config{MaxQueuedBytes: 8 << 20}, func(t *testing.T, b *Broker) {
			const n = 4000
			c := connectPipe(t, b, clean(packet.V311, "c"))
			c.subscribe(sub("a", qos))
			<-c.flood("a", qos, n)
			go func() { _, _ = c.nc.Write(packet.AppendPingreq(nil)) }()
			c.wantFlood(n)
		})
	}
}

// TestSelfFloodWithoutReading: beyond the limit the broker does not read from the
// client, and after the stall timeout it ends the connection.
func TestSelfFloodWithoutReading(t *testing.T) {
	for _, qos := range []byte{0, 1} {
		virtual(t, Config{MaxQueuedBytes: 1 << 20}, func(t *testing.T, b *Broker) {
			c := connectPipe(t, b, clean(packet.V311, "c"))
			c.subscribe(sub("a", qos))
			written := c.flood("a", qos, 10_000)
			synctest.Wait()
			if held := b.held("c"); held < 1<<20 || held > 1<<20+4096 {
				t.Errorf("%d bytes are held", held)
			}
			start := time.Now()
			<-written // the connection has ended
			within(t, time.Since(start), 30*time.Second)
			synctest.Wait()
			if st := b.Stats(); st.Stalled != 1 || st.Connected != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestSelfFloodWithoutAcks: a client that reads what it publishes to itself
// but acknowledges nothing is refused at the limit, since waiting could not help.
func TestSelfFloodWithoutAcks(t *testing.T) {
	virtual(t, Config{MaxQueuedBytes: 1 << 20}, func(t *testing.T, b *Broker) {
		conn := clean(packet.V5, "c")
		conn.Properties.ReceiveMaximum = ptr(uint16(5))
		c := connectPipe(t, b, conn)
		c.subscribe(sub("a", 1))
		c.flood("a", 1, 10_000)
		var last packet.Frame
		for f := c.patient(); f.First != 0; f = c.patient() {
			last = f
			if f.Type() == packet.DISCONNECT {
				break
			}
		}
		if last.Type() != packet.DISCONNECT || last.Body[0] != byte(packet.ReasonQuotaExceeded) {
			t.Errorf("got %s", packet.Format(last, c.v))
		}
	})
}

// TestMutualFlood: two clients write to each other before they read. Neither
// of the broker's readers may wait for the other one.
func TestMutualFlood(t *testing.T) {
	for _, qos := range []byte{0, 1} {
		virtual(t, Config{}, func(t *testing.T, b *Broker) {
			const n = 3000
			start := time.Now()
			var ends []chan struct{}
			var peers []*peer
			for i := range 2 {
				c := connectPipe(t, b, clean(packet.V311, fmt.Sprint("c", i)))
				c.subscribe(sub(fmt.Sprint("to/", i), qos))
				peers = append(peers, c)
			}
			for i, c := range peers {
				end := make(chan struct{})
				ends = append(ends, end)
				go func() {
					defer close(end)
					<-c.flood(fmt.Sprint("to/", 1-i), qos, n)
					c.wantFlood(n)
				}()
			}
			for _, end := range ends {
				<-end
			}
			if d := time.Since(start); d != 0 {
				t.Errorf("took %v of waiting", d)
			}
		})
	}
}

// TestMutualWindows: two subscribers with small windows publish to each other;
// each one's acknowledgements stand behind its publications.
func TestMutualWindows(t *testing.T) {
	virtual(t, Config{}, func(t *testing.T, b *Broker) {
		const n = 6000
		start := time.Now()
		ends := make(chan struct{}, 2)
		var peers []*peer
		for i := range 2 {
			conn := clean(packet.V5, fmt.Sprint("c", i))
			conn.Properties.ReceiveMaximum = ptr(uint16(4))
			c := connectPipe(t, b, conn)
			c.subscribe(sub(fmt.Sprint("to/", i), 1))
			peers = append(peers, c)
		}
		for i, c := range peers {
			c.flood(fmt.Sprint("to/", 1-i), 1, n)
			go func() {
				c.wantFlood(n)
				ends <- struct{}{}
			}()
		}
		<-ends
		<-ends
		if d := time.Since(start); d != 0 {
			t.Errorf("took %v of waiting", d)
		}
	})
}

// TestCircle: three clients write in a circle before they read, each one more than
// the broker forwards, and one of them more than its session may hold.
func TestCircle(t *testing.T) {
	virtual(t, Config{MaxQueuedBytes: 1 << 20}, func(t *testing.T, b *Broker) {
		counts := []int{800, 800, 3000} // KiB from client i to the next one
		start := time.Now()
		var peers []*peer
		for i := range counts {
			c := connectPipe(t, b, clean(packet.V311, fmt.Sprint("c", i)))
			c.subscribe(sub(fmt.Sprint("to/", i), 0))
			peers = append(peers, c)
		}
		ends := make(chan struct{}, len(peers))
		for i, c := range peers {
			written := c.flood(fmt.Sprint("to/", (i+1)%3), 0, counts[i])
			synctest.Wait() // they get stuck one after the other
			go func() {
				<-written
				c.wantFlood(counts[(i+2)%3])
				ends <- struct{}{}
			}()
		}
		for range peers {
			<-ends
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("took %v of waiting", d)
		}
	})
}

// TestBlame: a subscriber cannot acknowledge because its own publications wait for
// another one that reads nothing. The broker disconnects that other one.
func TestBlame(t *testing.T) {
	virtual(t, Config{MaxQueuedBytes: 1 << 20, StallTimeout: 5 * time.Second}, func(t *testing.T, b *Broker) {
		dead := connectPipe(t, b, clean(packet.V311, "dead"))
		dead.subscribe(sub("dead", 0))
		conn := clean(packet.V5, "s")
		conn.Properties.ReceiveMaximum = ptr(uint16(4))
		s := connectPipe(t, b, conn)
		s.subscribe(sub("s", 1))
		s.outbox = make(chan []byte, 3000)
		defer close(s.outbox)
		s.flood("dead", 0, 500) // its acknowledgements come after these
		synctest.Wait()
		p := connectPipe(t, b, clean(packet.V311, "p"))
		go p.drain()
		written := p.flood("s", 1, 3000)
		start := time.Now()
		s.wantFlood(3000)
		<-written
		within(t, time.Since(start), 5*time.Second)
		if st := b.Stats(); st.Stalled != 1 || st.Connected != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// TestHeldUpIsNotSilent: a publisher that is not read from does not miss its
// Keep Alive.
func TestHeldUpIsNotSilent(t *testing.T) {
	virtual(t, Config{StallTimeout: time.Hour}, func(t *testing.T, b *Broker) {
		s := connectPipe(t, b, clean(packet.V311, "s"))
		s.subscribe(sub("a", 0))
		conn := clean(packet.V311, "p")
		conn.KeepAlive = 2
		p := connectPipe(t, b, conn)
		written := p.flood("a", 0, 1000)
		time.Sleep(time.Minute)
		s.wantFlood(1000)
		<-written
		p.sync()
	})
}

// TestStall: a subscriber that reads nothing is disconnected, so that others continue.
func TestStall(t *testing.T) {
	virtual(t, Config{StallTimeout: 5 * time.Second}, func(t *testing.T, b *Broker) {
		const n = 1000
		dead := connectPipe(t, b, clean(packet.V311, "dead"))
		dead.subscribe(sub("a", 0))
		live := connectPipe(t, b, clean(packet.V311, "live"))
		live.subscribe(sub("a", 0))
		p := connectPipe(t, b, clean(packet.V311, "p"))
		p.flood("a", 0, n)
		start := time.Now()
		live.wantFlood(n)
		within(t, time.Since(start), 5*time.Second)
		if st := b.Stats(); st.Stalled != 1 || st.Connected != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// TestNoAcks: a subscriber that reads but acknowledges nothing is disconnected
// once publishers have waited long enough.
func TestNoAcks(t *testing.T) {
	virtual(t, Config{StallTimeout: 5 * time.Second}, func(t *testing.T, b *Broker) {
		conn := clean(packet.V5, "s")
		conn.Properties.ReceiveMaximum = ptr(uint16(1))
		s := connectPipe(t, b, conn)
		s.subscribe(sub("a", 1))
		p := connectPipe(t, b, clean(packet.V311, "p"))
		go p.drain()
		written := p.flood("a", 1, 3000)
		start := time.Now()
		s.frameOf(packet.PUBLISH)
		f := s.patient()
		if f.Type() != packet.DISCONNECT || f.Body[0] != byte(packet.ReasonQuotaExceeded) {
			t.Errorf("got %s", packet.Format(f, s.v))
		}
		within(t, time.Since(start), 5*time.Second)
		<-written
	})
}

func (c *peer) frameOf(t packet.Type) {
	c.t.Helper()
	if f := c.patient(); f.Type() != t {
		c.t.Fatalf("got %s, want %s", packet.Format(f, c.v), t)
	}
}

// TestPingFlood: unread answers do not accumulate either.
func TestPingFlood(t *testing.T) {
	virtual(t, Config{MaxQueuedBytes: 64 << 10}, func(t *testing.T, b *Broker) {
		c := connectPipe(t, b, clean(packet.V311, "c"))
		_ = c.nc.SetWriteDeadline(time.Time{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				if _, err := c.nc.Write(packet.AppendPingreq(nil)); err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		if held := b.held("c"); held < 64<<10 || held > 65<<10 {
			t.Errorf("%d bytes are held", held)
		}
		<-done
	})
}
