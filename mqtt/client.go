package mqtt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/mqttload/mqttload/internal/wire"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// A Dialer opens the byte stream to a broker, for example by TCP, TLS or a pipe.
// A TLS connection should be made over [NonBlocking].
type Dialer func(ctx context.Context) (net.Conn, error)

// NonBlocking wraps a socket for use under tls.Client, so that a write never
// blocks the client's reader.
func NonBlocking(nc net.Conn) net.Conn { return wire.NonBlocking(nc) }

// TLSState returns the state of the TLS connection among nc and the layers below
// it, or nil. A layer has a method NetConn, which returns the [net.Conn] below it.
func TLSState(nc net.Conn) *tls.ConnectionState {
	t := wire.TLSOf(nc)
	if t == nil {
		return nil
	}
	state := t.ConnectionState()
	return &state
}

// Config says how to connect. Dial and Version are required; the zero value of
// every other field is usable.
type Config struct {
	Dial       Dialer
	Version    packet.Version
	ClientID   string // empty: the broker assigns one
	CleanStart bool
	KeepAlive  time.Duration // whole seconds up to 65,535; 0 turns it off
	// Username and Password are sent if their Has field is set.
	Username    string
	HasUsername bool
	Password    []byte
	HasPassword bool
	Will        *packet.Will
	// Inflight is the send window to use, in messages, 1..65535; 0 is 65,535. The
	// broker's Receive Maximum may make it smaller: see [Client.Window].
	Inflight int
	// Properties are the properties of CONNECT (MQTT 5). A broker that exceeds its
	// Receive Maximum, Maximum Packet Size or Topic Alias Maximum is disconnected.
	Properties packet.Properties
	// Handler receives the connection's events; nil is [NopHandler].
	Handler Handler
	// Sweeper sends the keep-alive's PINGREQ; nil gives the client one of its own.
	Sweeper *Sweeper
	// Session is resumed by this connection, and keeps the messages in flight for
	// the next one. With nil nothing is kept, and in MQTT 5 a broker that has kept
	// a session is an error. The broker keeps its side of the session only without
	// CleanStart (MQTT 3) or with a Session Expiry Interval (MQTT 5).
	Session *Session

	// Auth authenticates by AUTH packets (MQTT 5); nil sends none.
	Auth Authenticator
	// TopicAliases is how many topics may get an alias from [Client.Aliased], up
	// to the broker's Topic Alias Maximum (MQTT 5).
	TopicAliases uint16

	link *Link // set if the connection belongs to a Link
}

// Handler receives the events of a connection. All calls but Room come from the
// connection's reader goroutine, one after the other. A method may publish but
// must not block.
type Handler interface {
	// BatchStart comes before the first packet of a read.
	BatchStart()
	// Message delivers an application message; m is valid until Message returns. A
	// QoS 2 message is delivered once.
	Message(m *packet.Publish)
	// Acks delivers the acknowledgements of a read, in order; acks is valid until
	// Acks returns.
	Acks(acks []Ack)
	// BatchEnd comes after the last packet of a read. What it publishes is written
	// together with the acknowledgements for that read.
	BatchEnd()
	// Room says that the out buffer has room again after a publish found it full.
	Room()
	// Closed is the last call; err is why the connection has ended.
	Closed(err error)
}

// Ack is one step of a QoS 1 or 2 delivery to the broker.
type Ack struct {
	PacketID uint16
	// Done is true if this packet ends the delivery: a PUBACK, a PUBCOMP, or a
	// PUBREC with an error. It is false for a PUBREC that PUBREL answers.
	Done  bool
	Code  packet.ReasonCode
	Stamp int64 // the stamp given to [Client.PublishN]
}

// NopHandler ignores all events. Embed it to implement only part of [Handler].
type NopHandler struct{}

// BatchStart does nothing.
func (NopHandler) BatchStart() {}

// Message does nothing.
func (NopHandler) Message(*packet.Publish) {}

// Acks does nothing.
func (NopHandler) Acks([]Ack) {}

// BatchEnd does nothing.
func (NopHandler) BatchEnd() {}

// Room does nothing.
func (NopHandler) Room() {}

// Closed does nothing.
func (NopHandler) Closed(error) {}

// settings are the parts of a Config that are needed after Connect. A process
// may hold very many idle clients, so the rest of the Config is not kept.
type settings struct {
	Version                           packet.Version
	CleanStart                        bool
	ClientID                          string
	KeepAlive                         time.Duration
	Inflight                          int
	Sweeper                           *Sweeper
	TopicAliases                      uint16
	Terse                             bool // Request Problem Information is 0
	Expires                           bool // Session Expiry Interval is above 0
	ReceiveMaximum, TopicAliasMaximum *uint16
}

// Client is one MQTT connection.
type Client struct {
	cfg         settings
	handler     Handler
	conn        *wire.Conn
	connack     packet.Connack
	dialed      time.Duration
	acked       time.Duration // CONNECT written to CONNACK read
	sweeper     *Sweeper
	ownsSweeper bool
	alive       keepAlive
	done        chan struct{}

	// Used by the reader goroutine only.
	decoder    packet.PublishDecoder
	pub        packet.Publish
	ack        *packet.Ack // allocated on first use
	acks       []Ack
	ackTypes   []packet.Type
	replies    []byte
	inbound2   idSet
	aliases    map[uint16][]byte
	unexpected atomic.Int64

	// Guarded by the lock of conn.Begin.
	win     window
	closing bool        // DISCONNECT has been appended, or the connection has ended
	session *attachment // nil without a Session

	// Most connections have none of these.
	link     *Link
	auth     *authentication
	aliasing *aliasing

	mu      sync.Mutex
	waiters map[uint16]chan reply
	freed   chan struct{} // closed when window slots come free; nil unless a Publish waits
}

// reply is the answer to a packet id: the codes of a SUBACK or UNSUBACK, or the
// one code of a PUBACK or PUBCOMP.
type reply struct {
	codes []packet.ReasonCode
	one   packet.ReasonCode
}

// Connect dials, sends CONNECT and waits for CONNACK, all within ctx. The error
// is the dialer's, the cause of ctx, a [*RefusedError], a [*ProtocolError], or a
// [*LimitError] if the broker does not allow a message that the [Session] must
// resend.
func Connect(ctx context.Context, cfg Config) (*Client, error) {
	c := &Client{handler: cfg.Handler, done: make(chan struct{}), cfg: settings{
		Version: cfg.Version, CleanStart: cfg.CleanStart, ClientID: cfg.ClientID, KeepAlive: cfg.KeepAlive,
		Inflight: cfg.Inflight, Sweeper: cfg.Sweeper,
		ReceiveMaximum: cfg.Properties.ReceiveMaximum, TopicAliasMaximum: cfg.Properties.TopicAliasMaximum,
		TopicAliases: cfg.TopicAliases,
		Terse:        cfg.Properties.RequestProblemInfo != nil && *cfg.Properties.RequestProblemInfo == 0,
		Expires:      cfg.Properties.SessionExpiry != nil && *cfg.Properties.SessionExpiry > 0,
	}, link: cfg.link}
	if c.handler == nil {
		c.handler = NopHandler{}
	}
	if cfg.Auth != nil {
		c.auth = &authentication{Authenticator: cfg.Auth}
	}
	if cfg.Session == nil {
		return c.connect(ctx, &cfg)
	}
	if err := cfg.Session.acquire(); err != nil {
		return nil, err
	}
	c.session = &attachment{Session: cfg.Session}
	connected, err := c.connect(ctx, &cfg)
	if err != nil {
		cfg.Session.release()
	}
	return connected, err
}

func (c *Client) connect(ctx context.Context, cfg *Config) (*Client, error) {
	encoded, err := cfg.connectPacket()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	nc, err := cfg.Dial(ctx)
	if err != nil {
		return nil, err
	}
	c.dialed = time.Since(start)
	o := wire.Options{Version: cfg.Version, OnRoom: c.handler.Room}
	if c.session != nil {
		o.OnRoom = c.room
	}
	if m := cfg.Properties.MaximumPacketSize; m != nil {
		o.MaxPacketSize = int(*m)
	}
	c.conn = wire.New(nc, o)
	if err := c.handshake(ctx, encoded); err != nil {
		_ = c.conn.Close()
		return nil, err
	}
	if c.link != nil {
		c.link.up(c)
	}
	c.startKeepAlive()
	go c.run()
	return c, nil
}

func (cfg *Config) connectPacket() ([]byte, error) {
	secs := (cfg.KeepAlive + time.Second - 1) / time.Second
	if cfg.KeepAlive < 0 || secs > 65535 {
		return nil, fmt.Errorf("connect: keep alive %s is not within 0..65535 s", cfg.KeepAlive)
	}
	// [MQTT31-3.1] The broker would refuse a longer identifier with return code 2.
	if n := utf8.RuneCountInString(cfg.ClientID); cfg.Version == packet.V31 && n > 23 {
		return nil, fmt.Errorf("connect: client identifier %q has %d characters; MQTT 3.1 allows 23", cfg.ClientID, n)
	}
	p := packet.Connect{
		Version: cfg.Version, CleanStart: cfg.CleanStart, KeepAlive: uint16(secs), ClientID: cfg.ClientID,
		Username: cfg.Username, HasUsername: cfg.HasUsername,
		Password: cfg.Password, HasPassword: cfg.HasPassword,
		Will: cfg.Will, Properties: cfg.Properties,
	}
	if cfg.Auth != nil {
		if err := cfg.startAuth(&p.Properties); err != nil {
			return nil, err
		}
	}
	return p.Append(make([]byte, 0, 64)) // enough for most CONNECTs
}

// handshake sends CONNECT, as the first packet and once [MQTT-3.1.0-1,
// MQTT-3.1.0-2], and reads up to CONNACK. Bytes after CONNACK in the same read
// stay buffered for the reader.
func (c *Client) handshake(ctx context.Context, connect []byte) error {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.CloseWith(context.Cause(ctx)) })
	defer stop()
	start := time.Now()
	c.conn.Begin() // returns an empty buffer: this is the first packet
	c.conn.End(connect)
	if err := c.conn.Flush(); err != nil {
		return fmt.Errorf("send CONNECT: %w", err)
	}
	f, err := c.firstFrame()
	for err == nil && f.Type() == packet.AUTH && c.auth != nil {
		if err := c.authenticate(f); err != nil {
			return err
		}
		f, err = c.firstFrame()
	}
	if err != nil {
		return waitError(err)
	}
	c.acked = time.Since(start)
	// [MQTT-3.2.0-1] The first packet from the server is CONNACK.
	if f.Type() != packet.CONNACK {
		return c.fail(protocolErrorf(packet.ReasonProtocolError, "%s before CONNACK", f.Type()))
	}
	if err := c.connack.Decode(f, c.cfg.Version); err != nil {
		return c.fail(malformed(err))
	}
	if !stop() && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrAwaitConnack, context.Cause(ctx))
	}
	return c.acceptConnack()
}

// waitError explains err, which ended the wait for CONNACK. A TLS alert begins
// with 0x15, the packet type of CONNECT with bad flags: the broker expected TLS and
// took our CONNECT for a bad TLS record.
func waitError(err error) error {
	var m *packet.MalformedError
	switch {
	case errors.As(err, &m) && m.Packet == packet.CONNECT:
		return ErrWantsTLS
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return ErrNoConnack
	}
	return fmt.Errorf("%w: %w", ErrAwaitConnack, err)
}

func (c *Client) firstFrame() (packet.Frame, error) {
	for {
		f, ok, err := c.conn.Next()
		if err != nil {
			return f, c.fail(malformed(err))
		}
		if ok {
			return f, nil
		}
		if _, err := c.conn.Fill(); err != nil {
			return f, err
		}
	}
}

func (c *Client) acceptConnack() error {
	k, p := &c.connack, &c.connack.Properties
	if k.Code != packet.ReasonSuccess {
		e := &RefusedError{Version: c.cfg.Version, Code: k.Code}
		if p.ReasonString != nil {
			e.Reason = *p.ReasonString
		}
		if p.ServerReference != nil {
			e.ServerReference = *p.ServerReference
		}
		return e // [MQTT-3.2.2-7] Connect closes without reading on.
	}
	// [MQTT-3.2.2-2] After a clean start there is no session.
	if k.SessionPresent && c.cfg.CleanStart {
		return c.fail(protocolErrorf(packet.ReasonProtocolError, "session present after a clean start"))
	}
	if err := c.acceptAuth(); err != nil {
		return err
	}
	// [MQTT-4.9.0-1]
	c.win.limit = c.Window()
	c.aliasing = newAliasing(c.cfg.TopicAliases, k)
	return c.resume()
}

// Window returns the send window in force, in messages: the smaller of
// [Config.Inflight] and the broker's Receive Maximum.
func (c *Client) Window() int {
	n := c.cfg.Inflight
	if n <= 0 || n > 65535 {
		n = 65535
	}
	if r := c.connack.Properties.ReceiveMaximum; r != nil {
		n = min(n, int(*r))
	}
	return n
}

// Connack returns the broker's CONNACK. It must not be changed.
func (c *Client) Connack() *packet.Connack { return &c.connack }

// Timing returns how long the dialer took and how long the broker took from
// CONNECT to CONNACK.
func (c *Client) Timing() (dial, connack time.Duration) { return c.dialed, c.acked }

// NetConn returns the connection underneath, for its addresses and TLS state.
func (c *Client) NetConn() net.Conn { return c.conn.NetConn() }

// Stats returns the numbers of system calls and bytes of the connection so far.
func (c *Client) Stats() wire.Stats { return c.conn.Stats() }

// ClientID returns the client identifier in force: the configured one, or the one
// that the broker has assigned. [MQTT-3.1.3-7, MQTT-3.2.2-16]
func (c *Client) ClientID() string {
	if id := c.connack.Properties.AssignedClientID; id != nil {
		return *id
	}
	return c.cfg.ClientID
}

// Unexpected returns the number of acknowledgements for packet ids not in use.
func (c *Client) Unexpected() int64 { return c.unexpected.Load() }

// Done is closed when the connection has ended and Handler.Closed has returned.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns why the connection has ended, or nil. Once Done is closed, Err
// returns the error that Handler.Closed got. If the broker has sent a DISCONNECT,
// this is a [*DisconnectedError], even where a write failed first.
func (c *Client) Err() error { return c.conn.Err() }

// disconnectTimeout bounds how long a last DISCONNECT may take to write.
const disconnectTimeout = time.Second

// fail ends the connection because of err and returns err. In MQTT 5 a DISCONNECT
// tells the broker why. [MQTT5 4.13.1] [MQTT-4.13.2-1], [MQTT-4.8.0-1] of 3.1.1
func (c *Client) fail(err error) error {
	var pe *ProtocolError
	if c.cfg.Version == packet.V5 && errors.As(err, &pe) {
		c.appendDisconnect(pe.Code)
	}
	_ = c.conn.Shutdown(err, disconnectTimeout)
	return err
}

// appendDisconnect appends an MQTT 5 DISCONNECT, unless one has been appended.
// [MQTT-3.14.4-1] Nothing follows DISCONNECT: closing stops all other appends.
func (c *Client) appendDisconnect(code packet.ReasonCode) {
	d := packet.Disconnect{Code: code}
	out := c.conn.Begin()
	if !c.closing {
		c.closing = true
		if with, err := d.Append(out, packet.V5); err == nil {
			out = with
		}
	}
	c.conn.End(out)
}

// Disconnect sends DISCONNECT after all messages published so far, and closes the
// connection. It returns when the reader has stopped or ctx ends. code is for
// MQTT 5 only; 0x04 makes the broker publish the will.
func (c *Client) Disconnect(ctx context.Context, code packet.ReasonCode) error {
	return c.DisconnectWith(ctx, packet.Disconnect{Code: code})
}

// DisconnectWith is [Client.Disconnect] with properties. A Session Expiry Interval
// replaces the one of CONNECT, which must not have been 0. [MQTT5 3.14.2.2.2]
func (c *Client) DisconnectWith(ctx context.Context, d packet.Disconnect) error {
	if e := d.Properties.SessionExpiry; e != nil && *e > 0 && !c.cfg.Expires {
		return limitErrorf("disconnect with a session expiry of %d s: CONNECT asked for none", *e)
	}
	msg, err := d.Append(nil, c.cfg.Version)
	if err != nil {
		return err
	}
	timeout := disconnectTimeout
	if t, ok := ctx.Deadline(); ok {
		timeout = max(0, time.Until(t))
	}
	out := c.conn.Begin()
	// [MQTT-3.14.4-1] Nothing follows DISCONNECT: closing stops all other appends.
	c.closing = true
	c.conn.End(append(out, msg...))
	// [MQTT-3.14.4-2]
	_ = c.conn.Shutdown(ErrClosed, timeout)
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends the connection at once, without DISCONNECT, and waits for the reader
// to stop. A [Handler] must use [Client.Abort] instead: it runs in the reader.
func (c *Client) Close() {
	c.Abort()
	<-c.done
}

// Abort ends the connection at once, without DISCONNECT and without waiting.
func (c *Client) Abort() { _ = c.conn.Close() }
