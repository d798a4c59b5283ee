package mqtt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/internal/wire"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// tally is a broker of one client that keeps a session. It counts messages, cuts the
// connection before a certain message, and refuses connections for a while.
type tally struct {
	cutAt  int
	away   time.Duration
	mu     sync.Mutex
	back   time.Time
	conns  int
	seen   map[uint64]int // by number in the payload
	dups   int            // of the second connection
	fresh  int            // of the second connection, without DUP before the last with it
	behind bool
	fault  error
}

func (b *tally) dial(context.Context) (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Now().Before(b.back) {
		return nil, errNobody
	}
	near, far := net.Pipe()
	b.conns++
	go b.serve(far, b.conns)
	return near, nil
}

func (b *tally) serve(nc net.Conn, nth int) {
	c := wire.New(nc, wire.Options{})
	defer c.Close()
	total := 0
	for {
		if _, err := c.Fill(); err != nil {
			return
		}
		out := c.Begin()
		for {
			f, ok, err := c.Next()
			if err != nil || !ok {
				break
			}
			switch f.Type() {
			case packet.CONNECT:
				k := packet.Connack{SessionPresent: nth > 1}
				out, _ = k.Append(out, packet.V311)
			case packet.PUBLISH:
				if total++; nth == 1 && total > b.cutAt {
					b.mu.Lock()
					b.back = time.Now().Add(b.away)
					b.mu.Unlock()
					c.End(nil)
					return
				}
				out = b.publish(out, f, nth)
			}
		}
		c.End(out)
		_ = c.Flush()
	}
}

func (b *tally) publish(out []byte, f packet.Frame, nth int) []byte {
	var p packet.Publish
	if err := p.Decode(f, packet.V311); err != nil {
		b.fault = err
		return out
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := uint64(0)
	for _, c := range p.Payload {
		n = n<<8 | uint64(c)
	}
	b.seen[n]++
	if nth > 1 && p.Dup {
		b.dups++
		b.behind = b.behind || b.fresh > 0
	} else if nth > 1 {
		b.fresh++
	}
	if p.QoS == 0 {
		return out
	}
	return packet.AppendAck(out, packet.PUBACK, p.PacketID)
}

// clockwork publishes 1,000 numbered messages per second. Messages that cannot be sent
// yet wait.
type clockwork struct {
	journal
	mu   sync.Mutex
	c    *Client
	tmpl *packet.Template
	qos  byte
	due  uint64
	sent uint64
}

func (w *clockwork) Up(c *Client) {
	w.journal.Up(c)
	t, err := c.Template(&packet.Publish{QoS: w.qos, PacketID: uint16(w.qos), Topic: []byte("a"), Payload: make([]byte, 8)})
	if err != nil {
		w.note(err.Error())
	}
	w.mu.Lock()
	w.c, w.tmpl = c, t
	w.mu.Unlock()
}
func (w *clockwork) BatchEnd()               { w.pump(0) }
func (w *clockwork) Room()                   { w.pump(0) }
func (w *clockwork) Reconnected(r Reconnect) { w.journal.Reconnected(r); w.pump(0) }

func (w *clockwork) pump(due uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due += due
	for w.sent < w.due {
		n, _ := w.c.PublishN(w.tmpl, 1, 0, func(p []byte) {
			for i := range p {
				p[i] = byte(w.sent >> (56 - 8*i))
			}
		})
		if n == 0 {
			break
		}
		w.sent++
	}
	_ = w.c.Flush()
}

// TestCutUnderLoad: for a minute at 1,000 messages per second, the connection is cut at
// message 30,000 and accepted again a second later. At QoS 1 all messages arrive, and the
// resent ones come first, with DUP. At QoS 0 only messages that were in transit are lost.
func TestCutUnderLoad(t *testing.T) {
	for qos := byte(0); qos <= 1; qos++ {
		t.Run(fmt.Sprintf("qos=%d", qos), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const window = 100
				b := &tally{cutAt: 30_000, away: time.Second, seen: make(map[uint64]int)}
				w := &clockwork{qos: qos}
				l, err := Open(t.Context(), LinkConfig{
					Config:    Config{Dial: b.dial, Version: packet.V311, ClientID: "c", Inflight: window, Handler: w, Session: NewSession()},
					Reconnect: true, Backoff: Backoff{Rand: half},
				})
				if err != nil {
					t.Fatal(err)
				}
				for range 1200 {
					w.pump(50)
					time.Sleep(50 * time.Millisecond)
				}
				time.Sleep(time.Second)
				l.Close()
				synctest.Wait() // until the broker has finished
				if b.fault != nil || !errors.Is(w.err, ErrClosed) {
					t.Error(b.fault, w.err)
				}
				if got, want := w.String(), "up, down: closed by the broker, up, reconnected, closed: closed by this side"; got != want {
					t.Errorf("told %s", got)
				}
				// Attempts after 0.05, 0.15, 0.35, 0.75 and 1.55 s.
				if r := w.reconnects[0]; r.Down != 1550*time.Millisecond || r.Attempts != 5 || r.Resumed.Resent != b.dups {
					t.Errorf("reconnect %+v with %d resent", r, b.dups)
				}
				lost, again := 60_000-len(b.seen), 0
				for _, n := range b.seen {
					again += n - 1
				}
				t.Logf("sent %d, lost %d, resent %d, seen twice %d", w.sent, lost, b.dups, again)
				switch {
				case w.sent != 60_000 || b.conns != 2 || b.behind:
					t.Errorf("sent %d on %d connections, resent behind new ones: %v", w.sent, b.conns, b.behind)
				case qos == 1 && (lost != 0 || b.dups == 0 || b.dups > window || again > b.dups):
					t.Errorf("lost %d, resent %d, twice %d", lost, b.dups, again)
				case qos == 0 && (lost == 0 || lost > window || b.dups != 0 || again != 0):
					t.Errorf("lost %d, resent %d, twice %d", lost, b.dups, again)
				}
			})
		})
	}
}

// keeper is a client with a session whose writes are discarded.
func keeper(t testing.TB, payload int) (*Client, *packet.Template) {
	near, _ := net.Pipe()
	c := &Client{conn: wire.New(near, wire.Options{}), session: &attachment{Session: NewSession()}}
	c.win.limit = 1000
	tmpl, err := packet.NewTemplate(&packet.Publish{QoS: 1, PacketID: 1, Topic: []byte("bench/topic"), Payload: make([]byte, payload)}, packet.V311)
	if err != nil {
		t.Fatal(err)
	}
	return c, tmpl
}

// turn publishes n messages and acknowledges them.
func turn(c *Client, tmpl *packet.Template, n int) {
	for done := 0; done < n; {
		k, _ := c.PublishN(tmpl, min(n-done, 100), 0, nil)
		done += k
		out := c.conn.Begin()
		for i, at := range c.win.ids.Slots() {
			if at.State != idFree {
				c.win.free(&c.win.ids.Slots()[i])
			}
		}
		c.conn.End(out[:0])
	}
}

// TestKeepNoAllocations: in steady state, keeping messages for resending allocates
// nothing.
func TestKeepNoAllocations(t *testing.T) {
	c, tmpl := keeper(t, 10)
	turn(c, tmpl, 100_000)
	if per := testing.AllocsPerRun(10, func() { turn(c, tmpl, 1000) }) / 1000; per >= 0.01 {
		t.Errorf("%.3f allocations per message", per)
	}
}

// BenchmarkKeep compares the cost of a message without and with a Session.
func BenchmarkKeep(b *testing.B) {
	for _, payload := range []int{10, 1024, 8192} {
		for _, on := range []bool{false, true} {
			b.Run(fmt.Sprintf("payload=%d/session=%v", payload, on), func(b *testing.B) {
				c, tmpl := keeper(b, payload)
				if !on {
					c.session = nil
				}
				b.ReportAllocs()
				turn(c, tmpl, b.N)
			})
		}
	}
}
