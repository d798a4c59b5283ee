package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/internal/wire"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// closeError says why the broker ends a connection; code goes into the
// DISCONNECT of MQTT 5.
type closeError struct {
	code packet.ReasonCode
	why  string
}

func (e *closeError) Error() string { return fmt.Sprintf("%s: %s", e.code, e.why) }

// errDisconnected means that the client has sent DISCONNECT.
var errDisconnected = errors.New("client has disconnected")

// errRefused means that the broker has answered CONNECT with an error.
var errRefused = errors.New("connection refused")

// client is one connection. Its fields belong to the goroutine that reads from it,
// unless their comments say otherwise.
type client struct {
	router
	nc      net.Conn
	wc      *wire.Conn // other goroutines use it only through session.conn
	wcRef   atomic.Pointer[wire.Conn]
	started int64

	version    packet.Version
	maxPacket  int // Maximum Packet Size of the client
	sess       *session
	will       *will
	auth       *exchange // nil without an Authentication Method
	decoder    packet.PublishDecoder
	ackDecoder packet.Ack
	propBuf    []byte
	aliases    []string // by Topic Alias
	lastAlias  uint16   // of the PUBLISH for which the last route was looked up; 0 means none
	given      *aliases // Topic Aliases to the client, under its session's lock; nil if it accepts none
	acks       *[]byte  // acknowledgements of this batch; nil before the first
	unsent     int      // how many of them free an identifier of the client

	done      chan struct{} // closed when the session is free for another connection
	wakeCh    chan struct{}
	connected atomic.Bool
	blocked   atomic.Bool // waits for room in another session
	dirty     atomic.Bool // on the dirty list of some router
	kicked    atomic.Uint32
	seen      atomic.Int64 // time of the last read
	keepAlive atomic.Int64 // ns; 0 means none

	// Only the sweeper uses these.
	lastWrites, lastWriteAt int64
	lastAcks, lastAckAt     int64
	lastProgress            int64
}

func newClient(b *Broker, nc net.Conn) *client {
	c := &client{nc: nc, started: b.now(), done: make(chan struct{}), wakeCh: make(chan struct{}, 1)}
	c.b = b
	c.seen.Store(c.started)
	c.maxPacket = packet.MaxPacketSize
	c.lastWriteAt, c.lastAckAt = c.started, c.started
	return c
}

// wire returns the connection for other goroutines; nil during the handshake.
func (c *client) wire() *wire.Conn { return c.wcRef.Load() }

// handshake does the TLS handshake, if there is one, and sets c.wc. It runs in the
// connection's own goroutine.
func (c *client) handshake() error {
	if t := wire.TLSOf(c.nc); t != nil {
		if err := t.SetDeadline(time.Now().Add(c.b.cfg.ConnectTimeout)); err != nil {
			return err
		}
		if err := t.HandshakeContext(context.Background()); err != nil {
			return err
		}
		if err := t.SetDeadline(time.Time{}); err != nil {
			return err
		}
	}
	// The version is unknown until CONNECT: the scanner accepts what any version
	// allows, and the decoders check again.
	c.wc = wire.New(c.nc, wire.Options{
		MaxPacketSize: c.b.cfg.MaxPacketSize, Version: packet.V31, OnRoom: c.onRoom,
	})
	c.wcRef.Store(c.wc)
	return nil
}

// onRoom runs in the goroutine that has written.
func (c *client) onRoom() { c.sess.room(c) }

// serve runs the connection to its end.
func (c *client) serve() {
	err := c.read()
	c.finishBatch()
	unread := c.sendReason(err)
	if c.sess != nil {
		c.b.leave(c)
	}
	close(c.done)
	if unread {
		c.linger()
	}
	_ = c.wc.CloseWith(err)
	if err != errDisconnected {
		c.b.logf("client %s: %v", c.name(), err)
	}
}

func (c *client) name() string {
	if c.sess != nil {
		return fmt.Sprintf("%q", c.sess.id)
	}
	return addrOf(c.nc)
}

// read handles batches until the connection ends.
func (c *client) read() error {
	for {
		if err := c.kickError(); err != nil {
			return err
		}
		if _, err := c.wc.Fill(); err != nil {
			if kick := c.kickError(); kick != nil {
				return kick
			}
			return err
		}
		c.seen.Store(c.b.now())
		if err := c.batch(); err != nil {
			return err
		}
		if err := c.endBatch(); err != nil {
			return err
		}
	}
}

// batch handles every packet of one read.
func (c *client) batch() error {
	for {
		// A run does not look at single messages, as faults must.
		if c.b.faults == nil && c.run() {
			continue
		}
		f, ok, err := c.wc.Next()
		if err != nil || !ok {
			return err
		}
		if err := c.handle(f); err != nil {
			return err
		}
	}
}

func (c *client) handle(f packet.Frame) error {
	if c.sess == nil {
		if c.auth != nil {
			return c.onExchange(f)
		}
		return c.connect(f)
	}
	if f.Type() == packet.PUBLISH {
		return c.onPublish(f)
	}
	switch f.Type() {
	case packet.PUBACK, packet.PUBREC, packet.PUBREL, packet.PUBCOMP:
		return c.onAck(f)
	case packet.SUBSCRIBE:
		return c.onSubscribe(f)
	case packet.UNSUBSCRIBE:
		return c.onUnsubscribe(f)
	case packet.PINGREQ:
		if err := packet.DecodePing(f, c.version); err != nil {
			return err
		}
		// [MQTT-3.12.4-1]
		*c.ackBuffer() = packet.AppendPingresp(*c.ackBuffer())
		return nil
	case packet.DISCONNECT:
		return c.onDisconnect(f)
	case packet.AUTH:
		return c.onAuth(f)
	}
	// [MQTT-3.1.0-2] [MQTT-3.2.0-2] A second CONNECT is one of these.
	return &closeError{packet.ReasonProtocolError, "unexpected " + f.Type().String()}
}

var ackPool = sync.Pool{New: func() any { return new([]byte) }}

// ackBuffer collects the answers of this batch. They are appended to the out
// buffer once, so that a run of messages to another session is not interrupted
// for each answer.
func (c *client) ackBuffer() *[]byte {
	if c.acks == nil {
		c.acks = ackPool.Get().(*[]byte)
	}
	return c.acks
}

func (c *client) ack(t packet.Type, id uint16) {
	buf := c.ackBuffer()
	*buf = packet.AppendAck(*buf, t, id)
}

// ackWith answers with a reason code, which only MQTT 5 has.
func (c *client) ackWith(t packet.Type, id uint16, code packet.ReasonCode) {
	if !c.v5 || code == packet.ReasonSuccess {
		c.ack(t, id)
		return
	}
	buf := c.ackBuffer()
	a := packet.Ack{Type: t, PacketID: id, Code: code}
	*buf, _ = a.Append(*buf, c.version) // it does not fail: the codes are valid for their packets
}

// appendAcks moves the collected answers to the out buffer of c.
func (c *client) appendAcks(out []byte) []byte {
	if c.acks == nil {
		return out
	}
	out = append(out, *c.acks...)
	*c.acks = (*c.acks)[:0]
	ackPool.Put(c.acks)
	c.acks, c.unsent = nil, 0
	return out
}

// finishBatch appends the answers and writes everything that this batch has
// caused. It returns how many bytes wait in the connection's own out buffer.
func (c *client) finishBatch() (pending int) {
	own := c.acks != nil
	if own {
		if c.to == c && c.held != nil {
			c.out = c.appendAcks(c.out)
			pending = len(c.out)
		} else {
			c.release()
			out := c.appendAcks(c.wc.Begin())
			pending = len(out)
			c.wc.End(out)
		}
	}
	c.flush()
	if own {
		_ = c.wc.Flush()
	}
	return pending
}

// endBatch writes. A client that does not read the answers to its packets has to
// wait.
func (c *client) endBatch() error {
	if c.finishBatch() < c.b.cfg.MaxQueuedBytes || c.sess == nil {
		return nil
	}
	return c.waitFor(c.sess)
}

// makeRoom waits until the subscribers of the previous message have room.
func (c *client) makeRoom() error {
	if len(c.jammed) == 0 {
		return nil
	}
	c.finishBatch()
	for _, s := range c.jammed {
		if err := c.waitFor(s); err != nil {
			return err
		}
	}
	clear(c.jammed)
	c.jammed = c.jammed[:0]
	return nil
}

// waitFor blocks until s has room for another message of c. c holds no session.
func (c *client) waitFor(s *session) error {
	if s == c.sess && s.owed(c.b.cfg.MaxQueuedBytes) {
		// Only this goroutine could read the missing acknowledgements.
		return &closeError{packet.ReasonQuotaExceeded, "too many unacknowledged messages that the client has published to itself"}
	}
	if s.hasRoomFor(c) {
		return nil
	}
	defer c.block()()
	for !s.hasRoomFor(c) {
		<-c.wakeCh
		if err := c.ended(); err != nil {
			return err
		}
	}
	return nil
}

// block notes that the connection is not read until the function returned is
// called.
func (c *client) block() (unblock func()) {
	c.blocked.Store(true)
	c.sess.setBlocked(true) // another goroutine may wait for this session
	return func() {
		c.sess.setBlocked(false)
		c.seen.Store(c.b.now())
		c.blocked.Store(false)
	}
}

// ended is the error that has ended the connection, or nil.
func (c *client) ended() error {
	if err := c.kickError(); err != nil {
		return err
	}
	return c.wc.Err()
}

func (c *client) wakeUp() {
	select {
	case c.wakeCh <- struct{}{}:
	default:
	}
}

// kick asks the connection's goroutine to end it with a reason. It does not block
// and may be called from any goroutine.
func (c *client) kick(code packet.ReasonCode) {
	if !c.kicked.CompareAndSwap(0, uint32(code)) {
		return
	}
	c.wakeUp()
	if !c.connected.Load() || c.nc.SetReadDeadline(time.Unix(1, 0)) != nil {
		_ = wire.CloseSocket(c.nc)
	}
}

func (c *client) kickError() error {
	code := packet.ReasonCode(c.kicked.Load())
	if code == 0 {
		return nil
	}
	why := "closed by the broker"
	if err := c.wc.Err(); err != nil && code == packet.ReasonUnspecifiedError {
		why = err.Error() // cut has set it
	}
	return &closeError{code, why}
}

// cut ends the connection at once, without a DISCONNECT.
func (c *client) cut(err error) {
	c.kicked.CompareAndSwap(0, uint32(packet.ReasonUnspecifiedError))
	c.wakeUp()
	if wc := c.wire(); wc != nil {
		_ = wc.CloseWith(err)
		return
	}
	_ = wire.CloseSocket(c.nc)
}

const (
	// lastWriteTimeout bounds the writing of the last packet.
	lastWriteTimeout = 500 * time.Millisecond
	// lingerSilence, lingerTimeout and lingerBytes bound the reading after that:
	// closing a socket with unread data resets it, and the client would lose the
	// last packet. A client that still reads and answers earlier packets is not
	// silent.
	lingerSilence = 250 * time.Millisecond
	lingerTimeout = 1500 * time.Millisecond
	lingerBytes   = 4 << 20
)

// sendReason sends the reason to the client, if the connection still works, and
// reports whether the client may still have to read it.
func (c *client) sendReason(err error) bool {
	code, tell := reasonOf(err)
	if !tell {
		return false
	}
	// [MQTT-3.14.0-1] [MQTT-4.13.1-1]; 3.1.1 just closes [MQTT-4.8.0-1]
	if c.v5 && c.connected.Load() {
		d := packet.Disconnect{Code: code}
		out := c.wc.Begin()
		if with, err := d.Append(out, packet.V5); err == nil {
			out = with
		}
		c.wc.End(out)
	}
	_ = c.wc.Flush()
	if !c.wc.Idle() {
		_ = c.wc.Shutdown(err, lastWriteTimeout)
		return false
	}
	return true
}

// reasonOf returns the reason code of err, and whether the connection still works,
// so that the code can be sent.
func reasonOf(err error) (packet.ReasonCode, bool) {
	var malformed *packet.MalformedError
	var closed *closeError
	switch {
	case errors.Is(err, errRefused):
		return 0, true
	case errors.As(err, &malformed):
		return malformed.Code, true
	case errors.As(err, &closed):
		return closed.code, true
	}
	return 0, false
}

// linger reads until the client closes the connection, too, for a short time.
func (c *client) linger() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	end := time.Now().Add(lingerTimeout)
	for left := lingerBytes; left > 0; {
		deadline := time.Now().Add(lingerSilence)
		if deadline.After(end) {
			deadline = end
		}
		if c.nc.SetReadDeadline(deadline) != nil {
			return
		}
		n, err := c.wc.Fill()
		if err != nil {
			return
		}
		left -= n
	}
}
