// Package mqtt is the MQTT client under mqttload: one connection, driven by one
// reader goroutine that is also the protocol engine. A read batch is handled
// whole; the acknowledgements it calls for and the publishes it sets free go
// into one out buffer that is written once. In steady state nothing is
// allocated per message.
//
// It is made for measuring: it never resends on a timer [MQTT-4.4.0-1], drops
// nothing, and tells its [Handler] everything in batches. A [Client] is one
// connection; a [Session] outlives it, and a [Link] makes it again.
package mqtt

import (
	"context"
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

// A Dialer opens the byte stream to a broker: TCP, TLS and a pipe are values
// of it. TLS connections should be built over [NonBlocking].
type Dialer func(ctx context.Context) (net.Conn, error)

// NonBlocking wraps a socket for use under tls.Client, so that the client can
// write it without ever blocking its reader.
func NonBlocking(nc net.Conn) net.Conn { return wire.NonBlocking(nc) }

// Config says how to connect. Dial and Version are required; the zero value of
// every other field is usable.
type Config struct {
	Dial       Dialer
	Version    packet.Version
	ClientID   string // empty: the broker assigns one
	CleanStart bool
	KeepAlive  time.Duration // whole seconds up to 65,535; 0 turns it off
	// Username and Password are sent when their Has field is set.
	Username    string
	HasUsername bool
	Password    []byte
	HasPassword bool
	Will        *packet.Will
	// Inflight is the asked send window in messages, 1..65535; 0 is 65,535. The
	// window in force is no larger than the broker's Receive Maximum.
	Inflight int
	// Properties are those of CONNECT (MQTT 5). Receive Maximum, Maximum Packet
	// Size and Topic Alias Maximum are enforced against the broker.
	Properties packet.Properties
	// Handler is told what happens; nil is [NopHandler].
	Handler Handler
	// Sweeper sends the keep-alive's PINGREQ; nil gives the client one of its own.
	Sweeper *Sweeper
	// Session is resumed, and keeps what is in flight for the next connection;
	// nil keeps nothing, and in MQTT 5 refuses what the broker has kept. It outlives the connection on the broker's side only
	// without CleanStart (3.x) or with a Session Expiry Interval (5).
	Session *Session

	// Auth authenticates by AUTH packets (MQTT 5); nil does not.
	Auth Authenticator
	// TopicAliases is how many topics [Client.Aliased] may give an alias, within
	// the broker's Topic Alias Maximum (MQTT 5).
	TopicAliases uint16

	link *Link // whose connection it is, if any
}

// Handler is told what happens on a connection. All calls but Room come from
// the connection's reader goroutine, one after the other. A method must not
// block, and may publish.
type Handler interface {
	// BatchStart comes before the first packet of a read.
	BatchStart()
	// Message is an application message; m is valid until it returns. A QoS 2
	// message comes once.
	Message(m *packet.Publish)
	// Acks are the acknowledgements of a read, in order; valid until it returns.
	Acks(acks []Ack)
	// BatchEnd comes after the last packet of a read; what is published in it
	// is written together with the read's own replies.
	BatchEnd()
	// Room says that a publish which found the out buffer full may try again.
	Room()
	// Closed is the last call: err is why the connection has ended.
	Closed(err error)
}

// Ack is one step of a QoS 1 or 2 delivery to the broker.
type Ack struct {
	PacketID uint16
	// Done is set for PUBACK, PUBCOMP, and a PUBREC that refuses; a PUBREC that
	// goes on to PUBREL has it unset.
	Done  bool
	Code  packet.ReasonCode
	Stamp int64 // what the publish was stamped with
}

// NopHandler ignores everything; embed it to implement part of [Handler].
type NopHandler struct{}

// The methods of Handler.
func (NopHandler) BatchStart()             {}
func (NopHandler) Message(*packet.Publish) {}
func (NopHandler) Acks([]Ack)              {}
func (NopHandler) BatchEnd()               {}
func (NopHandler) Room()                   {}
func (NopHandler) Closed(error)            {}

// settings is what outlives Connect of a Config. Many clients are idle, and
// what they hold is counted.
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
	cfg     settings
	handler Handler
	conn    *wire.Conn
	connack packet.Connack
	dialed  time.Duration
	acked   time.Duration // CONNECT written to CONNACK read
	sweeper *Sweeper
	ownSwp  bool
	alive   keepAlive
	done    chan struct{}

	// The reader's own, touched by no other goroutine.
	decoder    packet.PublishDecoder
	pub        packet.Publish
	ack        *packet.Ack // made when first needed
	acks       []Ack
	ackTypes   []packet.Type
	replies    []byte
	inbound2   idSet
	aliases    map[uint16][]byte
	unexpected atomic.Int64

	// Under the lock of conn.Begin.
	win     window
	closing bool        // DISCONNECT has been appended, or the connection has ended
	session *attachment // nil without a Session

	// What most connections have none of.
	link     *Link
	auth     *authentication
	aliasing *aliasing

	mu      sync.Mutex
	waiters map[uint16]chan reply
	freed   chan struct{} // closed when window slots come free and somebody waits
}

// reply is what the waiter for a packet id gets: SUBACK or UNSUBACK codes, or
// the one code of a PUBACK or PUBCOMP.
type reply struct {
	codes []packet.ReasonCode
	one   packet.ReasonCode
}

// Connect dials, sends CONNECT and waits for CONNACK, all within ctx. Errors:
// the dialer's, a [*RefusedError], a [*ProtocolError], a [*LimitError] over what a
// [Session] would send again, or ctx's cause.
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
	hello, err := cfg.connectPacket()
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
	if err := c.handshake(ctx, hello); err != nil {
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
	// [MQTT31-3.1] A longer identifier is refused with return code 2.
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
	return p.Append(make([]byte, 0, 64)) // as much as most need
}

// handshake sends CONNECT, first and once [MQTT-3.1.0-1, MQTT-3.1.0-2], and
// reads up to CONNACK. What follows it in the
// same read stays buffered for the reader.
func (c *Client) handshake(ctx context.Context, hello []byte) error {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.CloseWith(context.Cause(ctx)) })
	defer stop()
	start := time.Now()
	c.conn.Begin() // nothing has been appended yet
	c.conn.End(hello)
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
		return c.sayGoodbye(protocolErrorf(packet.ReasonProtocolError, "%s before CONNACK", f.Type()))
	}
	if err := c.connack.Decode(f, c.cfg.Version); err != nil {
		return c.sayGoodbye(malformed(err))
	}
	if !stop() && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrAwaitConnack, context.Cause(ctx))
	}
	return c.acceptConnack()
}

// waitError says what was waited for. A TLS alert begins with 0x15, which as
// MQTT would be a CONNECT: the broker took our CONNECT for a bad TLS record.
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
			return f, c.sayGoodbye(malformed(err))
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
		return e // [MQTT-3.2.2-7] What follows is not read: Connect closes.
	}
	// [MQTT-3.2.2-2] After a clean start there is no session.
	if k.SessionPresent && c.cfg.CleanStart {
		return c.sayGoodbye(protocolErrorf(packet.ReasonProtocolError, "session present after a clean start"))
	}
	if err := c.acceptAuth(); err != nil {
		return err
	}
	// [MQTT-4.9.0-1]
	c.win.limit = c.Window()
	c.aliasing = newAliasing(c.cfg.TopicAliases, k)
	return c.resume()
}

// Window is the send window in force, in messages: min(asked, Receive Maximum).
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

// Stats counts the system calls and bytes of the connection.
func (c *Client) Stats() wire.Stats { return c.conn.Stats() }

// ClientID returns the client identifier in force, the assigned one included.
// [MQTT-3.1.3-7, MQTT-3.2.2-16]
func (c *Client) ClientID() string {
	if id := c.connack.Properties.AssignedClientID; id != nil {
		return *id
	}
	return c.cfg.ClientID
}

// Unexpected counts acknowledgements for packet ids that were not in use.
func (c *Client) Unexpected() int64 { return c.unexpected.Load() }

// Done is closed when the connection has ended and Handler.Closed has returned.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns why the connection has ended, or nil. Once Done is closed it is
// what Handler.Closed was told: a DISCONNECT of the broker, if one came, whatever
// else failed on its account.
func (c *Client) Err() error { return c.conn.Err() }

// goodbyeTimeout bounds the writing of a last DISCONNECT.
const goodbyeTimeout = time.Second

// sayGoodbye ends the connection over err. A broker that speaks MQTT 5 is told
// why. [MQTT5 4.13.1] [MQTT-4.13.2-1], [MQTT-4.8.0-1] of 3.1.1
func (c *Client) sayGoodbye(err error) error {
	var pe *ProtocolError
	if c.cfg.Version == packet.V5 && errors.As(err, &pe) {
		c.lastWord(pe.Code)
	}
	_ = c.conn.Shutdown(err, goodbyeTimeout)
	return err
}

// lastWord appends DISCONNECT of MQTT 5, unless there is one. [MQTT-3.14.4-1]
// Nothing follows it: from here on nothing is appended.
func (c *Client) lastWord(code packet.ReasonCode) {
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

// Disconnect sends DISCONNECT after everything that was published, and closes.
// It returns when the reader has stopped or ctx ends. Code is for MQTT 5, where
// 0x04 has the broker publish the will.
func (c *Client) Disconnect(ctx context.Context, code packet.ReasonCode) error {
	return c.DisconnectWith(ctx, packet.Disconnect{Code: code})
}

// DisconnectWith is [Client.Disconnect] with properties. A Session Expiry
// Interval may change that of CONNECT, unless it was 0. [MQTT5 3.14.2.2.2]
func (c *Client) DisconnectWith(ctx context.Context, d packet.Disconnect) error {
	if e := d.Properties.SessionExpiry; e != nil && *e > 0 && !c.cfg.Expires {
		return limitErrorf("disconnect with a session expiry of %d s: CONNECT asked for none", *e)
	}
	msg, err := d.Append(nil, c.cfg.Version)
	if err != nil {
		return err
	}
	timeout := goodbyeTimeout
	if t, ok := ctx.Deadline(); ok {
		timeout = max(0, time.Until(t))
	}
	out := c.conn.Begin()
	// [MQTT-3.14.4-1] Nothing follows DISCONNECT: from here on nothing is appended.
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

// Close ends the connection at once, without DISCONNECT, and waits for the
// reader to stop. A Handler must call [Client.Abort] instead.
func (c *Client) Close() {
	c.Abort()
	<-c.done
}

// Abort ends the connection at once, without DISCONNECT and without waiting.
func (c *Client) Abort() { _ = c.conn.Close() }
