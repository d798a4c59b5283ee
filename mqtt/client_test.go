package mqtt

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// recorder is a Handler that records its calls.
type recorder struct {
	NopHandler
	mu       sync.Mutex
	messages []string
	acks     []Ack
	closed   error
	end      chan struct{}
	ended    bool
}

func newRecorder() *recorder { return &recorder{end: make(chan struct{}, 1000)} }

func (r *recorder) Message(p *packet.Publish) {
	r.mu.Lock()
	r.messages = append(r.messages, string(p.Topic)+"="+string(p.Payload))
	r.mu.Unlock()
}

func (r *recorder) Acks(acks []Ack) {
	r.mu.Lock()
	r.acks = append(r.acks, acks...)
	r.mu.Unlock()
}
func (r *recorder) BatchEnd()        { r.end <- struct{}{} }
func (r *recorder) Closed(err error) { r.closed = err; r.ended = true }

const (
	connack311 = "20 02 00 00"
	connack5   = "20 03 00 00 00"
)

// connackOf returns a CONNACK of v with success.
func connackOf(v packet.Version) string {
	if v == packet.V5 {
		return connack5
	}
	return connack311
}

// start connects a client to a scripted peer, which answers with connack.
func start(t *testing.T, cfg Config, connack string) (*Client, *mqtttest.Peer) {
	t.Helper()
	peer, nc := mqtttest.Pipe(t, cfg.Version)
	cfg.Dial = func(context.Context) (net.Conn, error) { return nc, nil }
	got := make(chan struct{})
	go func() {
		defer close(got)
		peer.ExpectType(packet.CONNECT)
		peer.Send(connack)
	}()
	c, err := Connect(t.Context(), cfg)
	<-got
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, peer
}

// TestConnectPacket: [MQTT-3.1.0-1, MQTT-3.1.0-2] CONNECT is first, and sent once.
func TestConnectPacket(t *testing.T) {
	for v, want := range map[packet.Version]string{
		// Keep Alive is rounded up: rounded down, it would promise too much.
		packet.V31:  "10 16 0006 4d5149736470 03 c2 0002 0002 6331 0001 75 0001 70",
		packet.V311: "10 14 0004 4d515454 04 c2 0002 0002 6331 0001 75 0001 70",
		packet.V5:   "10 15 0004 4d515454 05 c2 0002 00 0002 6331 0001 75 0001 70",
	} {
		t.Run(v.String(), func(t *testing.T) {
			peer, nc := mqtttest.Pipe(t, v)
			cfg := Config{
				Dial: func(context.Context) (net.Conn, error) { return nc, nil }, Version: v,
				ClientID: "c1", CleanStart: true, KeepAlive: 1500 * time.Millisecond,
				HasUsername: true, Username: "u", HasPassword: true, Password: []byte("p"),
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				peer.Expect(want)
				peer.Send(connackOf(v))
				peer.Expect("e0 00")
				peer.ExpectEnd()
			}()
			c, err := Connect(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Disconnect(t.Context(), 0)
			<-done
		})
	}
}

func TestConnackRefused(t *testing.T) {
	for _, tt := range []struct {
		v       packet.Version
		connack string
		want    string
	}{
		{packet.V311, "20 02 00 05", "0x05"},
		{packet.V5, "20 03 00 87 00", "Not authorized (0x87)"},
		{packet.V5, "20 08 00 9d 05 1c 0002 6832", `it refers to "h2"`},
	} {
		peer, nc := mqtttest.Pipe(t, tt.v)
		go func() {
			peer.ExpectType(packet.CONNECT)
			peer.Send(tt.connack)
		}()
		_, err := Connect(t.Context(), Config{Dial: func(context.Context) (net.Conn, error) { return nc, nil }, Version: tt.v, CleanStart: true})
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.connack, err, tt.want)
		}
	}
}

// TestBadConnack: each of these must be an error of Connect.
func TestBadConnack(t *testing.T) {
	for name, tt := range map[string]struct {
		v          packet.Version
		send, want string
	}{
		"publish first":                       {packet.V5, "30 06 0001 61 00 6869", "PUBLISH before CONNACK"},
		"session present, clean start":        {packet.V5, "20 03 01 00 00", "session present after a clean start"},
		"reserved flag":                       {packet.V5, "20 03 02 00 00", "MQTT-3.2.2-1"},
		"session present, refused":            {packet.V5, "20 03 01 87 00", "MQTT-3.2.2-6"},
		"header flags":                        {packet.V5, "22 03 00 00 00", "MQTT-2.1.3-1"},
		"cut property":                        {packet.V5, "20 05 00 00 02 21 00", "cut off"},
		"3.1 publish first":                   {packet.V31, "30 05 0001 61 6869 " + connack311, "PUBLISH before CONNACK"},
		"3.1.1 publish first":                 {packet.V311, "30 05 0001 61 6869 " + connack311, "PUBLISH before CONNACK"},
		"3.1.1 session present, clean start":  {packet.V311, resumed311, "session present after a clean start"},
		"3.1.1 reserved flag":                 {packet.V311, "20 02 02 00", "MQTT-3.2.2-1"},
		"3.1.1 session present, refused":      {packet.V311, "20 02 01 05", "MQTT-3.2.2-6"},
		"3.1.1 return code that is not known": {packet.V311, "20 02 00 06", "return code is above 5"},
	} {
		peer, nc := mqtttest.Pipe(t, tt.v)
		done := make(chan struct{})
		go func() {
			defer close(done)
			peer.ExpectType(packet.CONNECT)
			peer.Send(tt.send)
			if tt.v == packet.V5 {
				peer.ExpectType(packet.DISCONNECT)
			}
			peer.ExpectEnd()
		}()
		_, err := Connect(t.Context(), Config{Dial: func(context.Context) (net.Conn, error) { return nc, nil }, Version: tt.v, ClientID: "c", CleanStart: true})
		var pe *ProtocolError
		if !errors.As(err, &pe) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want a protocol error with %q", name, err, tt.want)
		}
		<-done
	}
}

func TestConnectTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, nc := mqtttest.Pipe(t, packet.V5)
		go peer.Drain()
		cause := errors.New("too late")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, cause)
		defer cancel()
		began := time.Now()
		_, err := Connect(ctx, Config{Dial: func(context.Context) (net.Conn, error) { return nc, nil }, Version: packet.V5})
		if !errors.Is(err, cause) || time.Since(began) != 2*time.Second {
			t.Errorf("got %v after %s, want %v after 2s", err, time.Since(began), cause)
		}
	})
}

func TestReceiveEveryQoS(t *testing.T) {
	r := newRecorder()
	c, peer := start(t, Config{Version: packet.V311, CleanStart: true, Handler: r}, connack311)
	peer.Send("30 05 0001 61 6830")      // QoS 0
	peer.Send("32 07 0001 61 0007 6831") // QoS 1 id 7
	peer.Expect("40 02 0007")            // PUBACK
	peer.Send("34 07 0001 61 0008 6832") // QoS 2 id 8
	peer.Expect("50 02 0008")            // PUBREC
	peer.Send("3c 07 0001 61 0008 6832") // resent: not a second message
	peer.Expect("50 02 0008")            // PUBREC again
	peer.Send("62 02 0008")              // PUBREL
	peer.Expect("70 02 0008")            // PUBCOMP
	peer.Send("62 02 0008")              // PUBREL again
	peer.Expect("70 02 0008")            // PUBCOMP again
	peer.Send("34 07 0001 61 0008 6833") // a new message with the same id
	peer.Expect("50 02 0008")            // PUBREC
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if got, want := strings.Join(r.messages, " "), "a=h0 a=h1 a=h2 a=h3"; got != want {
		t.Errorf("messages %q, want %q", got, want)
	}
}

// TestBatchIsOneWrite: all packets of one read are answered in one write, in order.
// [MQTT-4.6.0-2, MQTT-4.6.0-3]
func TestBatchIsOneWrite(t *testing.T) {
	r := newRecorder()
	c, peer := start(t, Config{Version: packet.V311, CleanStart: true, Handler: r}, connack311)
	before := c.Stats().Writes
	peer.Send("3207 0001 61 0001 6831  3407 0001 61 0002 6832  3207 0001 61 0003 6833  3407 0001 61 0004 6834  6202 0002")
	for _, want := range []string{"4002 0001", "5002 0002", "4002 0003", "5002 0004", "7002 0002"} {
		peer.Expect(want)
	}
	if n := c.Stats().Writes - before; n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
}

func TestPublishEveryQoS(t *testing.T) {
	r := newRecorder()
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true, Handler: r}, connack5)
	script := func(steps ...string) chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; i+1 < len(steps); i += 2 {
				peer.Expect(steps[i])
				if steps[i+1] != "" {
					peer.Send(steps[i+1])
				}
			}
		}()
		return done
	}
	for _, tt := range []struct {
		qos   byte
		steps []string
		code  packet.ReasonCode
	}{
		{0, []string{"30 06 0001 61 00 6869", ""}, 0},
		{1, []string{"32 08 0001 61 0001 00 6869", "40 02 0001"}, 0},
		{1, []string{"32 08 0001 61 0002 00 6869", "40 03 0002 97"}, packet.ReasonQuotaExceeded},
		{2, []string{"34 08 0001 61 0003 00 6869", "50 02 0003", "62 02 0003", "70 02 0003"}, 0},
		// [MQTT-4.3.3-4] A PUBREC with an error ends it: no PUBREL, and the id is free.
		{2, []string{"34 08 0001 61 0004 00 6869", "50 03 0004 87"}, packet.ReasonNotAuthorized},
	} {
		done := script(tt.steps...)
		p := &packet.Publish{QoS: tt.qos, Topic: []byte("a"), Payload: []byte("hi"), PacketID: uint16(min(tt.qos, 1))}
		code, err := c.Publish(t.Context(), p)
		if err != nil || code != tt.code {
			t.Errorf("QoS %d: got %v %v, want %v", tt.qos, code, err, tt.code)
		}
		<-done
	}
	if c.win.ids.Used() != 0 {
		t.Errorf("%d ids still in use", c.win.ids.Used())
	}
}

func TestLimits(t *testing.T) {
	// Maximum QoS 1, Retain Available 0, Maximum Packet Size 20, Receive Maximum 3.
	c, _ := start(t, Config{Version: packet.V5, CleanStart: true, Inflight: 10}, "20 0f 00 00 0c 2401 2500 2700000014 210003")
	if c.Window() != 3 {
		t.Errorf("window %d, want 3", c.Window())
	}
	for name, p := range map[string]packet.Publish{
		"QoS 1 at most":   {QoS: 2, PacketID: 1, Topic: []byte("a")},
		"does not retain": {Retain: true, Topic: []byte("a")},
		"maximum of 20 B": {Topic: []byte("a"), Payload: make([]byte, 20)},
		"topic alias 1":   {Topic: []byte("a"), RawProperties: []byte{0x23, 0, 1}},
	} {
		_, err := c.Template(&p)
		var limit *LimitError
		if !errors.As(err, &limit) || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want a limit error with %q", err, name)
		}
	}
	if _, err := c.Template(&packet.Publish{QoS: 1, PacketID: 1, Topic: []byte("a"), Payload: make([]byte, 8)}); err != nil {
		t.Error(err)
	}
}

// TestReceiveMaximum: with a Receive Maximum of 3 the fourth publish waits, but a
// SUBSCRIBE does not [MQTT-3.3.4-8].
func TestReceiveMaximum(t *testing.T) {
	r := newRecorder()
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true, Handler: r}, "20 06 00 00 03 210003")
	tmpl, err := c.Template(&packet.Publish{QoS: 2, PacketID: 1, Topic: []byte("a"), Payload: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := c.PublishN(tmpl, 10, 42, nil); n != 3 || err != nil {
		t.Fatalf("sent %d %v, want 3", n, err)
	}
	go c.Flush()
	for range 3 {
		peer.ExpectType(packet.PUBLISH)
	}
	go func() {
		peer.Expect("82 07 0004 00 0001 62 00")
		peer.Send("90 04 0004 00 00")
	}()
	if _, err := c.Subscribe(t.Context(), []packet.Subscription{{Filter: "b"}}, packet.Properties{}); err != nil {
		t.Fatal(err)
	}
	peer.Send("50 02 0002")
	peer.Expect("62 02 0002")
	if n, _ := c.PublishN(tmpl, 1, 42, nil); n != 0 {
		t.Error("a QoS 2 message counts until PUBCOMP")
	}
	peer.Send("70 02 0002")
	<-r.end
	<-r.end
	<-r.end
	if n, _ := c.PublishN(tmpl, 5, 43, nil); n != 1 {
		t.Errorf("sent %d after one PUBCOMP, want 1", n)
	}
	if r.acks[0].Stamp != 42 || r.acks[0].Done || !r.acks[1].Done {
		t.Errorf("acks %+v", r.acks)
	}
}

func TestSubscribeRefused(t *testing.T) {
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true}, connack5)
	go func() {
		peer.ExpectType(packet.SUBSCRIBE)
		peer.Send("90 04 0001 00 87")
	}()
	_, err := c.Subscribe(t.Context(), []packet.Subscription{{Filter: "t/#", QoS: 1}}, packet.Properties{})
	if err == nil || err.Error() != `subscription "t/#" refused: Not authorized (0x87)` {
		t.Errorf("got %v", err)
	}
}

// TestPeerMisbehaves: each of these must end the connection, in MQTT 5 with a
// DISCONNECT that gives the reason.
func TestPeerMisbehaves(t *testing.T) {
	for name, tt := range map[string]struct{ send, disconnect string }{
		"second CONNACK":         {connack5, "e0 01 82"},
		"SUBSCRIBE":              {"82 07 0001 00 0001 61 00", "e0 01 82"},
		"PINGREQ":                {"c0 00", "e0 01 82"},
		"unasked AUTH":           {"f0 00", "e0 01 82"},
		"QoS 3":                  {"36 08 0001 61 0001 00 6869", "e0 01 81"},
		"wildcard topic":         {"30 07 0003 612f2b 00 78", ""},
		"packet id 0":            {"32 08 0001 61 0000 00 6869", ""},
		"PUBREL flags":           {"60 02 0001", "e0 01 81"},
		"PUBREC flags":           {"52 02 0001", "e0 01 81"},
		"PINGRESP flags":         {"d1 00", "e0 01 81"},
		"DUP at QoS 0":           {"38 06 0001 61 00 6869", "e0 01 81"},
		"topic not UTF-8":        {"30 06 0001 ff 00 6869", "e0 01 81"},
		"U+0000 in a text":       {"40 08 0001 10 04 1f 0001 00", "e0 01 81"},
		"length of two bytes":    {"30 86 00 0001 61 00 6869", "e0 01 81"},
		"alias not allowed":      {"30 09 0001 61 03 230001 6869", "e0 01 94"},
		"long remaining length":  {"30 80 80 80 80 01", "e0 01 81"},
		"packet larger than 100": {"30 e4 01", "e0 01 95"},
	} {
		t.Run(name, func(t *testing.T) {
			size := uint32(100)
			r := newRecorder()
			c, peer := start(t, Config{Version: packet.V5, CleanStart: true, Handler: r, Properties: packet.Properties{MaximumPacketSize: &size}}, connack5)
			peer.Send(tt.send)
			if tt.disconnect == "" {
				peer.ExpectType(packet.DISCONNECT)
			} else {
				peer.Expect(tt.disconnect)
			}
			peer.ExpectEnd()
			<-c.Done()
			var pe *ProtocolError
			if !errors.As(c.Err(), &pe) || !r.ended {
				t.Errorf("ended with %v", c.Err())
			}
		})
	}
}

func TestTopicAliasIn(t *testing.T) {
	r := newRecorder()
	two := uint16(2)
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true, Handler: r, Properties: packet.Properties{TopicAliasMaximum: &two}}, connack5)
	peer.Send("30 09 0001 61 03 230002 6869  30 08 0000 03 230002 6869")
	<-r.end
	c.Close()
	if got := strings.Join(r.messages, " "); got != "a=hi a=hi" {
		t.Errorf("messages %q", got)
	}
}

func TestServerDisconnect(t *testing.T) {
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true}, connack5)
	peer.Send("e0 02 8e 00")
	<-c.Done()
	var de *DisconnectedError
	if !errors.As(c.Err(), &de) || de.Code != packet.ReasonSessionTakenOver {
		t.Errorf("got %v", c.Err())
	}
}

func TestServerClosesPlainly(t *testing.T) {
	c, peer := start(t, Config{Version: packet.V311, CleanStart: true}, connack311)
	peer.Close()
	<-c.Done()
	if !errors.Is(c.Err(), io.EOF) || EndOf(c.Err()) != "closed by the broker" {
		t.Errorf("got %v", c.Err())
	}
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Server Keep Alive 2 s replaces the client's 60 s.
		testKeepAlive(t, Config{Version: packet.V5, CleanStart: true, KeepAlive: time.Minute}, "20 06 00 00 03 13 0002")
	})
	for _, v := range []packet.Version{packet.V31, packet.V311} {
		synctest.Test(t, func(t *testing.T) {
			testKeepAlive(t, Config{Version: v, ClientID: "c", CleanStart: true, KeepAlive: 2 * time.Second}, connack311)
		})
	}
}

// testKeepAlive checks a client with a keep-alive of 2 s.
func testKeepAlive(t *testing.T, cfg Config, connack string) {
	c, peer := start(t, cfg, connack)
	began := time.Now()
	for i := range 3 {
		peer.Expect("c0 00")
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("%s: ping %d after %s", cfg.Version, i, d)
		}
		began = time.Now()
		peer.Send("d0 00")
	}
	// Without an answer, the connection ends within 1.5 times the keep-alive.
	peer.Expect("c0 00")
	<-c.Done()
	if !errors.Is(c.Err(), ErrKeepAlive) || time.Since(began) > 3*time.Second {
		t.Errorf("%s: got %v after %s", cfg.Version, c.Err(), time.Since(began))
	}
}

func TestDisconnectIsLast(t *testing.T) {
	c, peer := start(t, Config{Version: packet.V311, CleanStart: true}, connack311)
	tmpl, _ := c.Template(&packet.Publish{Topic: []byte("a"), Payload: []byte("hi")})
	c.PublishN(tmpl, 1, 0, nil)
	go c.Disconnect(t.Context(), 0)
	peer.Expect("30 05 0001 61 6869")
	peer.Expect("e0 00")
	peer.ExpectEnd()
	<-c.Done()
	if _, err := c.PublishN(tmpl, 1, 0, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("publish after DISCONNECT: %v", err)
	}
}

// TestGarbageAfterAck: a bad packet after a good one in the same read ends the
// connection. The good one is handled, and the handler gets its BatchEnd.
func TestGarbageAfterAck(t *testing.T) {
	r := newRecorder()
	c, peer := start(t, Config{Version: packet.V5, CleanStart: true, Handler: r}, connack5)
	tmpl, err := c.Template(&packet.Publish{QoS: 1, PacketID: 1, Topic: []byte("a")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.PublishN(tmpl, 1, 7, nil); err != nil {
		t.Fatal(err)
	}
	go c.Flush()
	peer.ExpectType(packet.PUBLISH)
	peer.Send("40 02 0001 f7 f7 f7 f7 f7")
	peer.Expect("e0 01 81")
	<-c.Done()
	<-r.end
	if len(r.acks) != 1 || r.acks[0].Stamp != 7 {
		t.Errorf("acks %+v", r.acks)
	}
}
