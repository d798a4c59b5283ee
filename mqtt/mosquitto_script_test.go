package mqtt

import (
	"context"
	"encoding/hex"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// A mosquittoTest is one script of Eclipse Mosquitto's test/lib, with the name that it
// has there: what the broker sends and expects, and what the client does.
//
// The script has one line for each packet, with < before what the client sends and >
// before what the broker sends. Bytes are in hex; "text" is a string with its length in
// front, 'text' one without, and * the Remaining Length of the rest. CONNECT and
// CONNACK are the packets of the suite for the version. "cut" closes the connection,
// "accept" waits for the next one, and "end" waits until the client closes.
type mosquittoTest struct {
	name    string
	version packet.Version // 0 is 3.1.1
	id      string         // client identifier
	set     func(cfg *Config)
	virtual bool // waits for time to pass
	script  string
	act     func(m *mosquitto)
}

// mosquitto is the client's side of a running test.
type mosquitto struct {
	*testing.T
	cfg   Config
	ctx   context.Context
	inbox chan inboxMessage
}

// inboxMessage is a received message with its properties.
type inboxMessage struct {
	topic, payload string
	qos            byte
	props          packet.Properties
}

// inbox is a handler that keeps the messages of a connection.
type inbox struct {
	NopHandler
	t  *testing.T
	ch chan inboxMessage
}

func (h inbox) Message(p *packet.Publish) {
	m := inboxMessage{topic: string(p.Topic), payload: string(p.Payload), qos: p.QoS}
	if err := p.ParseProperties(&m.props); err != nil {
		h.t.Error(err)
	}
	m.props.CorrelationData = append([]byte(nil), m.props.CorrelationData...)
	h.ch <- m
}

// runMosquitto runs tests, each over pipes of its own.
func runMosquitto(t *testing.T, tests []mosquittoTest) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.virtual {
				synctest.Test(t, test.run)
				return
			}
			test.run(t)
		})
	}
}

func (test mosquittoTest) run(t *testing.T) {
	conns := make(chan net.Conn)
	test.runOver(t, conns, func(ctx context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		select {
		case conns <- near:
			return far, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
}

// runOver runs the test with the broker's ends of what dial opens coming from
// conns.
func (test mosquittoTest) runOver(t *testing.T, conns <-chan net.Conn, dial Dialer) {
	if test.version == 0 {
		test.version = packet.V311
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	m := &mosquitto{T: t, ctx: ctx, inbox: make(chan inboxMessage, 10)}
	m.cfg = Config{
		Dial: dial, Version: test.version, ClientID: test.id, CleanStart: true,
		KeepAlive: time.Minute, Handler: inbox{t: t, ch: m.inbox},
	}
	if test.version == packet.V5 {
		m.cfg.Properties.ReceiveMaximum = new(uint16(20))
	}
	if test.set != nil {
		test.set(&m.cfg)
	}
	played := make(chan struct{})
	go func() {
		defer close(played)
		play(t, conns, test)
	}()
	test.act(m)
	<-played
}

// play is the broker of a test.
func play(t *testing.T, conns <-chan net.Conn, test mosquittoTest) {
	var p *mqtttest.Peer
	accept := func() {
		select {
		case nc := <-conns:
			p = mqtttest.NewPeer(t, nc, test.version)
		case <-time.After(10 * time.Second):
			t.Fatal("nobody connects")
		}
	}
	accept()
	for line := range strings.Lines(test.script) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "":
		case "<":
			p.Expect(hex.EncodeToString(scripted(t, test, rest)))
		case ">":
			p.SendBytes(scripted(t, test, rest))
		case "cut":
			p.Close()
		case "accept":
			accept()
		case "end":
			p.ExpectEnd()
		default:
			t.Fatalf("no such line: %s", line)
		}
	}
}

// scripted returns the bytes that a line of a script stands for.
func scripted(t *testing.T, test mosquittoTest, line string) []byte {
	switch v5 := test.version == packet.V5; line {
	case "CONNECT":
		line = `10 * "MQTT" 04 02 003c "` + test.id + `"`
		if v5 {
			line = `10 * "MQTT" 05 02 003c 03 21 0014 "` + test.id + `"`
		}
	case "CONNACK":
		line = "20 02 00 00"
		if v5 {
			line = "20 * 00 00 06 22 000a 21 0014"
		}
	}
	var out []byte
	length := -1
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		var token string
		switch line[0] {
		case '"', '\'':
			quote := line[0]
			token, line, _ = strings.Cut(line[1:], string(quote))
			if quote == '"' {
				out = append(out, byte(len(token)>>8), byte(len(token)))
			}
			out = append(out, token...)
		default:
			if token, line, _ = strings.Cut(line, " "); token == "*" {
				length = len(out)
				continue
			}
			out = append(out, mqtttest.Hex(t, token)...)
		}
	}
	if length < 0 {
		return out
	}
	rest := append([]byte(nil), out[length:]...)
	if len(rest) > 127 {
		t.Fatal("a script with a packet of more than 127 bytes")
	}
	return append(append(out[:length], byte(len(rest))), rest...)
}

// connect connects, and must be accepted.
func (m *mosquitto) connect() *Client {
	m.Helper()
	c, err := Connect(m.ctx, m.cfg)
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(c.Close)
	return c
}

// leave sends DISCONNECT.
func (m *mosquitto) leave(c *Client) {
	m.Helper()
	if err := c.Disconnect(m.ctx, packet.ReasonNormalDisconnection); err != nil {
		m.Error(err)
	}
}

// publish publishes and waits for the acknowledgement.
func (m *mosquitto) publish(c *Client, topic, payload string, qos byte) {
	m.Helper()
	m.publishWith(c, topic, payload, qos, packet.Properties{})
}

func (m *mosquitto) publishWith(c *Client, topic, payload string, qos byte, props packet.Properties) {
	m.Helper()
	p := packet.Publish{Topic: []byte(topic), Payload: []byte(payload), QoS: qos}
	if err := p.SetProperties(&props); err != nil {
		m.Fatal(err)
	}
	if code, err := c.Publish(m.ctx, &p); err != nil || code != packet.ReasonSuccess {
		m.Errorf("publish to %s: %v, %v", topic, code, err)
	}
}

// subscribe subscribes, and must be granted the QoS.
func (m *mosquitto) subscribe(c *Client, filter string, qos byte) {
	m.Helper()
	codes, err := c.Subscribe(m.ctx, []packet.Subscription{{Filter: filter, QoS: qos}}, packet.Properties{})
	if err != nil || codes[0] != packet.ReasonCode(qos) {
		m.Errorf("subscribe to %s: %v, %v", filter, codes, err)
	}
}

// receive waits for a message.
func (m *mosquitto) receive(topic, payload string, qos byte) inboxMessage {
	m.Helper()
	select {
	case got := <-m.inbox:
		if got.topic != topic || got.payload != payload || got.qos != qos {
			m.Errorf("got %+v, want q%d %s %s", got, qos, topic, payload)
		}
		return got
	case <-m.ctx.Done():
		m.Fatal("no message")
		return inboxMessage{}
	}
}

// comeAndGo connects and disconnects.
func comeAndGo(m *mosquitto) { m.leave(m.connect()) }

// come connects, then the broker closes the connection.
func come(m *mosquitto) { <-m.connect().Done() }
