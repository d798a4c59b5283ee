package mqtt

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/mqttload/mqttload/internal/racing"
	"github.com/mqttload/mqttload/internal/wire"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// echo serves one connection: it acknowledges every PUBLISH and sends it back. It is a
// minimal broker that checks the packet ids.
type echo struct {
	v      packet.Version
	stuck  uint16 // PUBLISH with this id is never acknowledged
	echoes bool
	seen   int
	ids    [1 << 16]bool
	fault  error
}

func (e *echo) serve(nc net.Conn) error {
	c := wire.New(nc, wire.Options{})
	defer c.Close()
	var pub packet.Publish
	var ack packet.Ack
	var dec packet.PublishDecoder
	for {
		if _, err := c.Fill(); err != nil {
			return e.fault
		}
		out := c.Begin()
		for {
			f, ok, err := c.Next()
			if err != nil {
				e.fault = err
				break
			}
			if !ok {
				break
			}
			switch f.Type() {
			case packet.CONNECT:
				k := packet.Connack{}
				out, _ = k.Append(out, e.v)
			case packet.PUBLISH:
				if err := dec.Decode(&pub, f, e.v); err != nil {
					e.fault = err
				}
				out = e.publish(out, &pub)
			case packet.PUBREL:
				if err := ack.Decode(f, e.v); err != nil {
					e.fault = err
				}
				e.ids[ack.PacketID] = false
				out = packet.AppendAck(out, packet.PUBCOMP, ack.PacketID)
			case packet.PUBREC:
				_ = ack.Decode(f, e.v)
				out = packet.AppendAck(out, packet.PUBREL, ack.PacketID)
			}
		}
		c.End(out)
		if err := c.Flush(); err != nil {
			return e.fault
		}
	}
}

func (e *echo) publish(out []byte, p *packet.Publish) []byte {
	e.seen++
	id := p.PacketID
	if p.QoS > 0 {
		if id == 0 || e.ids[id] {
			e.fault = fmt.Errorf("message %d has id %d, which is in flight", e.seen, id)
		}
		switch {
		case id == e.stuck && e.seen <= 65535:
			e.ids[id] = true
		case p.QoS == 1:
			out = packet.AppendAck(out, packet.PUBACK, id)
		default:
			e.ids[id] = true
			out = packet.AppendAck(out, packet.PUBREC, id)
		}
	}
	if e.echoes {
		out, _ = p.Append(out, e.v)
	}
	return out
}

// flood publishes n messages as fast as acknowledgements or echoes allow.
type flood struct {
	NopHandler
	c      *Client
	mu     sync.Mutex // the reader may still be at the end of a batch when a run begins
	tmpl   *packet.Template
	window int
	echoes bool
	sent   int
	acked  int
	got    int
	n      int
	done   chan struct{}
}

func (f *flood) Message(*packet.Publish) {
	f.mu.Lock()
	f.got++
	f.mu.Unlock()
}

func (f *flood) Acks(acks []Ack) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range acks {
		if acks[i].Done {
			f.acked++
		}
	}
}
func (f *flood) BatchEnd() { f.more() }
func (f *flood) more() {
	f.mu.Lock()
	defer f.mu.Unlock()
	back := f.acked
	if f.echoes {
		back = f.got
	}
	k, _ := f.c.PublishN(f.tmpl, min(f.n-f.sent, f.window-(f.sent-back)), 0, nil)
	f.sent += k
	if back == f.n && (f.tmpl.QoS() == 0 || f.acked >= f.n) {
		f.n = -1
		close(f.done)
	}
}

func startFlood(t testing.TB, e *echo, qos byte, payload, window int) (*flood, func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		nc, err := l.Accept()
		if err != nil {
			served <- err
			return
		}
		served <- e.serve(nc)
	}()
	f := &flood{window: window, echoes: e.echoes}
	dial := func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}
	f.c, err = Connect(context.Background(), Config{Dial: dial, Version: e.v, CleanStart: true, Inflight: window, Handler: f})
	if err != nil {
		t.Fatal(err)
	}
	p := packet.Publish{QoS: qos, Topic: []byte("bench/topic"), Payload: make([]byte, payload), PacketID: uint16(min(qos, 1))}
	if f.tmpl, err = f.c.Template(&p); err != nil {
		t.Fatal(err)
	}
	return f, func() {
		f.c.Close()
		_ = l.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

// run publishes n messages: the first ones here, the others in the reader.
func (f *flood) run(n int) {
	done := f.begin(n, f.window)
	_ = f.c.Flush()
	<-done
}

// begin appends the first messages of n.
func (f *flood) begin(n, first int) (done chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	done = make(chan struct{})
	f.sent, f.acked, f.got, f.n, f.done = 0, 0, 0, n, done
	f.sent, _ = f.c.PublishN(f.tmpl, min(n, first), 0, nil)
	return done
}

// TestMany: with 200,000 messages on one connection at each QoS, packet ids wrap, skip
// the one that is stuck in flight, and are never 0.
func TestMany(t *testing.T) {
	for _, v := range []packet.Version{packet.V311, packet.V5} {
		for qos := byte(1); qos <= 2; qos++ {
			t.Run(fmt.Sprintf("version=%s/qos=%d", v, qos), func(t *testing.T) {
				e := &echo{v: v}
				f, stop := startFlood(t, e, qos, 10, 100)
				f.run(200_000)
				if got := f.c.Unexpected(); got != 0 {
					t.Errorf("%d unexpected acknowledgements", got)
				}
				stop()
				if e.seen != 200_000 {
					t.Errorf("the broker saw %d messages", e.seen)
				}
			})
		}
	}
}

func TestStuckID(t *testing.T) {
	e := &echo{v: packet.V311, stuck: 5, echoes: true}
	f, stop := startFlood(t, e, 1, 10, 100)
	// The flood does not end by itself: one acknowledgement is missing.
	f.begin(1<<30, 50)
	_ = f.c.Flush()
	for f.c.Stats().BytesIn < 200_000*(4+24) {
		runtime.Gosched()
	}
	stop()
	if e.seen < 150_000 {
		t.Errorf("only %d messages", e.seen)
	}
}

// TestNoAllocations: in steady state a message allocates nothing, and writes are
// batches.
func TestNoAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("200,000 messages per case")
	}
	for _, v := range []packet.Version{packet.V311, packet.V5} {
		for qos := byte(0); qos <= 2; qos++ {
			t.Run(fmt.Sprintf("version=%s/qos=%d", v, qos), func(t *testing.T) {
				n := 200_000
				if racing.Enabled {
					n = 20_000
				}
				f, stop := startFlood(t, &echo{v: v, echoes: true}, qos, 10, 1000)
				defer stop()
				f.run(n)
				var before, after runtime.MemStats
				writes := f.c.Stats().Writes
				runtime.ReadMemStats(&before)
				f.run(n)
				runtime.ReadMemStats(&after)
				writes = f.c.Stats().Writes - writes
				if per := float64(after.Mallocs-before.Mallocs) / float64(n); per >= 0.01 {
					t.Errorf("%.4f allocations per message", per)
				}
				if per := float64(writes) / float64(n); per > 0.01 {
					t.Errorf("%.4f writes per message", per)
				}
				t.Logf("%.5f writes per message, %.5f allocations", float64(writes)/float64(n), float64(after.Mallocs-before.Mallocs)/float64(n))
			})
		}
	}
}

func BenchmarkEcho(b *testing.B) {
	for qos := byte(0); qos <= 2; qos++ {
		for _, size := range []int{10, 1024, 8192} {
			b.Run(fmt.Sprintf("qos=%d/payload=%d", qos, size), func(b *testing.B) {
				f, stop := startFlood(b, &echo{v: packet.V311, echoes: true}, qos, size, 1000)
				defer stop()
				f.run(10_000)
				b.ReportAllocs()
				b.ResetTimer()
				f.run(b.N)
				b.StopTimer()
			})
		}
	}
}
