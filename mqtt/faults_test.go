package mqtt

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// site is a broker that can be killed and started again. Killing it resets all
// connections.
type site struct {
	t     *testing.T
	keeps bool // sessions survive a restart
	addr  atomic.Pointer[string]
	b     *broker.Broker
	l     *cutListener
}

// cutListener keeps its connections, to reset them.
type cutListener struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (l *cutListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.conns = append(l.conns, nc)
		l.mu.Unlock()
	}
	return nc, err
}

func (s *site) start() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.l = &cutListener{Listener: l}
	if s.b == nil {
		s.b = broker.New(broker.Config{})
	}
	go s.b.Serve(s.l)
	addr := l.Addr().String()
	s.addr.Store(&addr)
}

func (s *site) kill() {
	_ = s.l.Close()
	s.l.mu.Lock()
	for _, nc := range s.l.conns {
		_ = nc.(*net.TCPConn).SetLinger(0)
		_ = nc.Close()
	}
	s.l.mu.Unlock()
	if !s.keeps {
		_ = s.b.Close()
		s.b = nil
	}
}

func (s *site) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", *s.addr.Load())
}

// hose publishes numbered messages to its own subscription as fast as the window
// allows.
type hose struct {
	NopHandler
	c       atomic.Pointer[Client]
	tmpl    atomic.Pointer[packet.Template]
	session *Session
	qos     byte
	stop    atomic.Bool
	sent    atomic.Uint64
	acked   atomic.Int64
	dropped atomic.Int64
	outages atomic.Int64
	kept    atomic.Int64 // outages after which the broker still had the session
	seen    map[uint64]int
	known   atomic.Int64 // numbers in seen
	err     error
}

func (h *hose) Up(c *Client) {
	h.dropped.Add(int64(len(c.Resumed().Dropped)))
	t, err := c.Template(&packet.Publish{QoS: h.qos, PacketID: 1, Topic: []byte("hose/" + c.ClientID()), Payload: make([]byte, 64)})
	if err == nil {
		h.tmpl.Store(t)
		h.c.Store(c)
	}
}
func (h *hose) Down(error)       {}
func (h *hose) Room()            { h.pump() }
func (h *hose) BatchEnd()        { h.pump() }
func (h *hose) Closed(err error) { h.err = err }

func (h *hose) Reconnected(r Reconnect) {
	if r.Resumed.Present {
		h.kept.Add(1)
	}
	h.outages.Add(1)
	h.pump()
}

func (h *hose) Message(p *packet.Publish) {
	h.seen[binary.BigEndian.Uint64(p.Payload)]++
	h.known.Store(int64(len(h.seen)))
}

func (h *hose) Acks(acks []Ack) {
	for i := range acks {
		if acks[i].Done {
			h.acked.Add(1)
		}
	}
}

func (h *hose) pump() {
	if !h.stop.Load() {
		_, _ = h.c.Load().PublishN(h.tmpl.Load(), 100, 0, func(p []byte) { binary.BigEndian.PutUint64(p, h.sent.Add(1)) })
	}
	_ = h.c.Load().Flush()
}

// openHose connects the i-th of four hoses: QoS 1 and 2, in MQTT 3.1.1 and 5.
func openHose(t *testing.T, s *site, i int, sweeper *Sweeper) (*hose, *Link) {
	t.Helper()
	h := &hose{session: NewSession(), qos: byte(1 + i/2), seen: make(map[uint64]int)}
	id := fmt.Sprintf("hose%d", i)
	cfg := Config{Dial: s.dial, Version: packet.V311, ClientID: id, KeepAlive: time.Minute, Sweeper: sweeper, Inflight: 50, Handler: h, Session: h.session}
	if i%2 == 1 {
		cfg.Version, cfg.Properties.SessionExpiry = packet.V5, new(uint32(60))
	}
	l, err := Open(t.Context(), LinkConfig{
		Config: cfg, Reconnect: true, Backoff: Backoff{Min: time.Millisecond, Max: 5 * time.Millisecond},
		Subscriptions: []packet.Subscription{{Filter: "hose/" + id, QoS: h.qos}}, GiveUp: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.pump()
	return h, l
}

// TestBrokerKills: the broker is killed fifty times under full load. No link ends,
// every message is accounted for, and no goroutine leaks. If the broker keeps its
// sessions, every message arrives, at QoS 2 once.
// (eclipse-paho/paho.mqtt.golang#509, #328, #96, #83, #411, #613)
func TestBrokerKills(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		t.Run(fmt.Sprintf("keeps=%v", keeps), func(t *testing.T) { brokerKills(t, keeps) })
	}
}

func brokerKills(t *testing.T, keeps bool) {
	kills := 50
	if testing.Short() {
		kills = 5
	}
	before := runtime.NumGoroutine()
	s := &site{t: t, keeps: keeps}
	s.start()
	sweeper := NewSweeper()
	var hoses [4]*hose
	var links [4]*Link
	for i := range hoses {
		hoses[i], links[i] = openHose(t, s, i, sweeper)
	}
	for k := range kills {
		for i, h := range hoses {
			goal, known := h.acked.Load()+100, h.known.Load()
			until(t, fmt.Sprintf("hose %d after %d kills", i, k), func() bool { return h.acked.Load() >= goal && h.known.Load() > known })
		}
		s.kill()
		s.start()
	}
	for i, h := range hoses {
		until(t, "the last reconnect", func() bool { return h.outages.Load() >= int64(kills) })
		if keeps {
			h.stop.Store(true)
			until(t, "what is in flight", func() bool { return h.session.InFlight() == 0 && h.known.Load() == int64(h.sent.Load()) })
		}
		links[i].Close()
		h.check(t, i, kills, keeps)
	}
	sweeper.Stop()
	s.keeps = false
	s.kill()
	until(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

// check compares sent and received messages after the link has ended.
func (h *hose) check(t *testing.T, i, kills int, keeps bool) {
	sent, acked, dropped, left := int64(h.sent.Load()), h.acked.Load(), h.dropped.Load(), int64(h.session.InFlight())
	if sent != acked+dropped+left {
		t.Errorf("hose %d: sent %d, but acked %d + dropped %d + in flight %d", i, sent, acked, dropped, left)
	}
	if EndOf(h.err) != "closed by this side" || h.outages.Load() != int64(kills) {
		t.Errorf("hose %d: %d outages, ended by %v", i, h.outages.Load(), h.err)
	}
	again := 0
	for _, n := range h.seen {
		again += n - 1
	}
	if h.qos == 2 && again > 0 {
		t.Errorf("hose %d: %d of %d messages came again at QoS 2", i, again, sent)
	}
	if keeps && (h.kept.Load() != int64(kills) || dropped+left > 0 || int64(len(h.seen)) != sent) {
		t.Errorf("hose %d: %d sessions kept; of %d sent %d came, %d were dropped, %d are in flight", i, h.kept.Load(), sent, len(h.seen), dropped, left)
	}
	t.Logf("QoS %d: %d sent, %d acknowledged, %d dropped, %d received, %d again", h.qos, sent, acked, dropped, len(h.seen), again)
}

// until waits for a condition of other goroutines.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("waited in vain for %s\n%s", what, buf[:runtime.Stack(buf, true)])
		}
	}
}

// TestCutInPacket: after a connection is lost in the middle of a packet, the next
// one begins with CONNECT, and every payload is whole. (eclipse-paho/paho.mqtt.c#1592)
func TestCutInPacket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dial := func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}
	payload := bytes.Repeat([]byte("0123456789abcdef"), 8192/16)
	cfg := Config{Dial: dial, Version: packet.V311, ClientID: "c", Session: NewSession()}
	const n = 50
	open := func(connack string) (*Client, *mqtttest.Peer, net.Conn) {
		accepted := make(chan net.Conn)
		go func() {
			nc, err := l.Accept()
			if err != nil {
				t.Error(err)
			}
			_ = nc.(*net.TCPConn).SetReadBuffer(4 << 10)
			accepted <- nc
		}()
		done := make(chan *Client)
		go func() {
			c, err := Connect(t.Context(), cfg)
			if err != nil {
				t.Error(err)
			}
			done <- c
		}()
		nc := <-accepted
		peer := mqtttest.NewPeer(t, nc, packet.V311)
		peer.ExpectType(packet.CONNECT)
		peer.Send(connack)
		return <-done, peer, nc
	}
	c, _, nc := open(connack311)
	_ = c.NetConn().(*net.TCPConn).SetWriteBuffer(4 << 10)
	tmpl, err := c.Template(&packet.Publish{QoS: 1, PacketID: 1, Topic: []byte("a"), Payload: payload})
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for sent < n {
		k, err := c.PublishN(tmpl, n-sent, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Flush()
		if sent += k; k == 0 {
			break // the peer does not read
		}
	}
	// Cut somewhere in the first packet.
	if _, err := io.ReadFull(nc, make([]byte, 5000)); err != nil {
		t.Fatal(err)
	}
	_ = nc.(*net.TCPConn).SetLinger(0)
	_ = nc.Close()
	<-c.Done()
	c, peer, _ := open(resumed311)
	defer c.Close()
	for i := range sent {
		var p packet.Publish
		if err := p.Decode(peer.ExpectType(packet.PUBLISH), packet.V311); err != nil {
			t.Fatal(err)
		}
		if int(p.PacketID) != i+1 || !p.Dup || !bytes.Equal(p.Payload, payload) {
			t.Fatalf("message %d: id %d, DUP %v, %d B", i, p.PacketID, p.Dup, len(p.Payload))
		}
	}
}

// TestPayloadSizes: payloads at the limits of buffers and of the length field arrive
// whole.
func TestPayloadSizes(t *testing.T) {
	s := &site{t: t}
	s.start()
	defer s.kill()
	sizes := []int{0, 1, 8191, 8192, 8193, 16383, 16384, 65535, 65536, 2097151, 2097152}
	// The remaining length is 5 more: 127/128, 16383/16384, 2097151/2097152.
	for _, border := range []int{1 << 7, 1 << 14, 1 << 21} {
		sizes = append(sizes, border-6, border-5)
	}
	h := &sized{got: make(chan []byte, 1)}
	c, err := Connect(t.Context(), Config{Dial: s.dial, Version: packet.V311, CleanStart: true, Handler: h})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Subscribe(t.Context(), []packet.Subscription{{Filter: "a", QoS: 1}}, packet.Properties{}); err != nil {
		t.Fatal(err)
	}
	for _, size := range sizes {
		payload := make([]byte, size)
		for i := range payload {
			payload[i] = byte(i * 7)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		code, err := c.Publish(ctx, &packet.Publish{QoS: 1, PacketID: 1, Topic: []byte("a"), Payload: payload})
		if err != nil || code != 0 {
			t.Fatalf("%d B: %v %v", size, code, err)
		}
		select {
		case got := <-h.got:
			if !bytes.Equal(got, payload) {
				t.Errorf("%d B came back as %d B", size, len(got))
			}
		case <-ctx.Done():
			t.Fatalf("%d B did not come back", size)
		}
		cancel()
	}
}

type sized struct {
	NopHandler
	got chan []byte
}

func (s *sized) Message(p *packet.Publish) { s.got <- bytes.Clone(p.Payload) }

// TestTooLarge: a packet above the broker's maximum is a local error with both sizes,
// and uses no packet id. (mqttjs/MQTT.js#1005)
func TestTooLarge(t *testing.T) {
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true}, "20 08 00 00 05 27 000003e8")
	p := &packet.Publish{QoS: 1, PacketID: 1, Topic: []byte("bench"), Payload: make([]byte, 8192)}
	_, err := c.Publish(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "packet of 8205 B is larger than the broker's maximum of 1000 B") {
		t.Errorf("got %v", err)
	}
	p.Payload = nil
	go c.Publish(t.Context(), p)
	peer.Expect("32 0a 0005 62656e6368 0001 00")
}

// TestInboundTooLarge: a packet above this client's maximum ends the connection as
// soon as its header is read, before memory is allocated. A packet of exactly the
// maximum does not. [MQTT-3.1.2-24]
func TestInboundTooLarge(t *testing.T) {
	r := newRecorder()
	cfg := Config{Version: packet.V5, CleanStart: true, Handler: r, Properties: packet.Properties{MaximumPacketSize: new(uint32(99))}}
	c, peer := start(t, cfg, connack5)
	peer.Send("30 61 0001 61 00" + strings.Repeat("78", 93))
	<-r.end
	peer.Send("30 ff ff ff 7f") // the header of 268,435,455 B
	peer.Expect("e0 01 95")
	peer.ExpectEnd()
	<-c.Done()
	if got := EndOf(c.Err()); !strings.Contains(got, "of 99 B") {
		t.Errorf("ended by %q, which names no size", got)
	}
}

// TestWildcardTopic: the error names the topic.
func TestWildcardTopic(t *testing.T) {
	for _, v := range []packet.Version{packet.V311, packet.V5} {
		c, peer := start(t, Config{Version: v, CleanStart: true}, map[packet.Version]string{packet.V311: connack311, packet.V5: connack5}[v])
		if v == packet.V5 {
			peer.Send("30 09 0005 612f2b2f62 00 78")
			peer.ExpectType(packet.DISCONNECT)
		} else {
			peer.Send("30 08 0005 612f2b2f62 78")
		}
		peer.ExpectEnd()
		<-c.Done()
		if got := EndOf(c.Err()); !strings.Contains(got, `"a/+/b"`) {
			t.Errorf("%s: ended by %q, which does not name the topic", v, got)
		}
	}
}
