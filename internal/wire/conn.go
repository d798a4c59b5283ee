// Package wire moves the bytes of one MQTT connection, for the client and for
// the loopback broker alike. Reading: one read fills a pooled buffer, control
// packets are cut out of it in place, and an idle connection holds no buffer.
// Writing: packets are appended to one out buffer under a lock and flushed
// once per batch by whoever holds the batch; only when the socket would block
// does a goroutine take over, so that a reader is never stuck behind a write.
// It knows framing, not the protocol.
package wire

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// HighWater is the fill of the out buffer, in bytes, at which publishers have
// to wait. Acknowledgements never wait: a reader that waits for room while its
// peer does the same would deadlock.
const HighWater = 64 << 10

// keepCap bounds the out buffers that a connection keeps between flushes.
const keepCap = 4 * HighWater

// ErrClosed is the error of a connection that this side has closed.
var ErrClosed = errors.New("connection closed")

// Options are the choices of a [Conn]. The zero value is usable.
type Options struct {
	// MaxPacketSize is the largest packet accepted from the peer, in bytes; 0
	// is the protocol's own limit.
	MaxPacketSize int
	// Version is the protocol's; it matters where 3.1 leaves header flags open.
	Version packet.Version
	// OnRoom is called, without any lock held, when room has come back after
	// [Conn.Room] reported none under the same Begin.
	OnRoom func()
}

// Conn is one connection. Fill and Next belong to one goroutine; everything
// else may be called from any.
type Conn struct {
	nc     net.Conn
	scan   *packet.Scanner
	source source
	sink   sink
	drain  func() // drainAll, bound once: `go c.drain()` then allocates nothing
	onRoom func()

	reads, writes, bytesIn, bytesOut, progress, partial atomic.Int64

	mu       sync.Mutex
	changed  sync.Cond // room, busy or err have changed
	out      []byte    // being appended to
	spare    []byte    // the other half of the double buffer
	busy     bool      // somebody is writing; cur and rest are theirs
	cur      []byte
	rest     []byte
	wantRoom bool
	err      error
}

// source reads once into the scanner; sink writes without blocking.
type source interface {
	fill(s *packet.Scanner) (int, error)
}

type sink interface {
	// try writes what goes without blocking. When blocked, finish(rest) must
	// be called from a goroutine that may block.
	try(p []byte) (rest []byte, blocked bool, err error)
	finish(rest []byte) error
}

// New makes a Conn of nc, which it owns from then on. A *tls.Conn is written
// without blocking when it was built over [NonBlocking].
func New(nc net.Conn, o Options) *Conn {
	c := &Conn{nc: nc, scan: packet.NewScanner(nil, o.MaxPacketSize), onRoom: o.OnRoom}
	c.scan.SetVersion(o.Version)
	c.changed.L = &c.mu
	c.drain = c.drainAll
	c.source, c.sink = c.endsOf(nc)
	return c
}

// endsOf returns the best ways to read and write nc.
func (c *Conn) endsOf(nc net.Conn) (source, sink) {
	if raw := rawConn(nc); raw != nil {
		return newRawSource(raw), newRawSink(nc, raw, &c.progress)
	}
	t, ok := nc.(*tls.Conn)
	if !ok {
		return plainSource{nc}, plainSink{nc, &c.progress}
	}
	if nb, ok := t.NetConn().(*nonBlocking); ok {
		nb.start(&c.progress)
		return &tlsSource{t: t, nb: nb}, tlsSink{t, nb}
	}
	return &tlsSource{t: t}, plainSink{nc, &c.progress}
}

// NetConn returns the connection underneath.
func (c *Conn) NetConn() net.Conn { return c.nc }

// Fill reads once, blocking until bytes have come. The frames of the last Next
// are gone with it.
func (c *Conn) Fill() (int, error) {
	begun := c.scan.Buffered() > 0
	n, err := c.source.fill(c.scan)
	if n > 0 {
		c.reads.Add(1)
		c.bytesIn.Add(int64(n))
		if begun {
			c.partial.Add(int64(n))
		}
		return n, nil
	}
	if cause := c.Err(); cause != nil {
		return 0, cause
	}
	return 0, err
}

// Next returns the next whole packet in the buffer; ok is false when Fill is
// needed. The frame is valid until the next Fill.
func (c *Conn) Next() (f packet.Frame, ok bool, err error) { return c.scan.Next() }

// Scanner is what Fill fills and Next reads, for those who know what to expect
// of the next packet.
func (c *Conn) Scanner() *packet.Scanner { return c.scan }

// Buffered is the number of bytes read but not yet returned by Next.
func (c *Conn) Buffered() int { return c.scan.Buffered() }

// Begin locks the out buffer and returns it to be appended to. End must follow.
func (c *Conn) Begin() []byte {
	c.mu.Lock()
	return c.out
}

// End stores what Begin's buffer has become and unlocks. It does not write:
// see [Conn.Flush].
func (c *Conn) End(out []byte) {
	c.out = out
	c.mu.Unlock()
}

// Room returns how many bytes a publisher may still append to out, which Begin
// has returned. An empty out buffer has room for a packet of any size: then it
// returns at least 1. When it returns 0 or less, OnRoom will be called.
func (c *Conn) Room(out []byte) int {
	room := HighWater - len(out)
	if room <= 0 {
		c.wantRoom = true
	}
	return room
}

// WaitRoom blocks until a publisher may append, or the connection has ended.
func (c *Conn) WaitRoom() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && len(c.out) >= HighWater {
		c.changed.Wait()
	}
	return c.err
}

// Flush writes what has been appended, as far as it goes without blocking; a
// goroutine writes the rest. It returns the error that ended the connection.
func (c *Conn) Flush() error {
	c.mu.Lock()
	if c.busy || len(c.out) == 0 || c.err != nil {
		err := c.err
		c.mu.Unlock()
		return err
	}
	c.busy = true
	for len(c.out) > 0 && c.err == nil {
		blocked, err := c.write()
		if err != nil {
			break
		}
		if blocked {
			c.mu.Unlock()
			go c.drain()
			return nil
		}
		c.recycle()
	}
	return c.idle()
}

// drainAll finishes a blocked write, then whatever has gathered meanwhile.
func (c *Conn) drainAll() {
	c.mu.Lock()
	for c.err == nil {
		rest := c.rest
		c.mu.Unlock()
		// The out buffer has just been swapped: it can fill while this blocks.
		c.callRoom()
		err := c.sink.finish(rest)
		c.mu.Lock()
		if err != nil {
			c.fail(err)
			break
		}
		c.recycle()
		if len(c.out) == 0 || c.err != nil {
			break
		}
		// Whether it blocked does not matter here: finishing nothing returns at once.
		if _, err := c.write(); err != nil {
			break
		}
	}
	_ = c.idle()
}

// write writes the out buffer as far as it goes without blocking; what does not
// go is in rest. The lock is held, but not while writing. An error has ended
// the connection.
func (c *Conn) write() (blocked bool, err error) {
	c.swap()
	buf := c.cur
	c.mu.Unlock()
	rest, blocked, err := c.sink.try(buf)
	c.writes.Add(1)
	c.bytesOut.Add(int64(len(buf)))
	c.mu.Lock()
	if err != nil {
		c.fail(err)
		return false, err
	}
	c.rest = rest
	return blocked, nil
}

// swap makes the out buffer the one being written. The lock is held.
func (c *Conn) swap() {
	c.cur = c.out
	c.out = c.spare[:0]
	c.spare = nil
	c.changed.Broadcast()
}

// recycle keeps the buffer just written as the spare half. The lock is held.
func (c *Conn) recycle() {
	if cap(c.cur) <= keepCap {
		c.spare = c.cur[:0]
	}
	c.cur, c.rest = nil, nil
}

// idle ends a stretch of writing and unlocks.
func (c *Conn) idle() error {
	c.busy = false
	c.changed.Broadcast()
	err := c.err
	c.mu.Unlock()
	c.callRoom()
	return err
}

// callRoom tells a publisher that found no room that there is some now.
func (c *Conn) callRoom() {
	if c.onRoom == nil {
		return
	}
	c.mu.Lock()
	want := c.wantRoom && len(c.out) < HighWater && c.err == nil
	if want {
		c.wantRoom = false
	}
	c.mu.Unlock()
	if want {
		c.onRoom()
	}
}

// lastWords bounds the reading after a write has failed.
const lastWords = 250 * time.Millisecond

// fail ends the connection with its first error: a connection on which a write
// has failed must not go on, or its stream would have a hole. The reader learns
// of it by a deadline, and not at once: what the peer has said before it went,
// such as why, is still to be read. The lock is held.
func (c *Conn) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.changed.Broadcast()
	if c.nc.SetReadDeadline(time.Now().Add(lastWords)) != nil {
		_ = c.closeSocket()
	}
}

// closeSocket is not (*tls.Conn).Close, which may wait to write its alert.
func (c *Conn) closeSocket() error {
	if t, ok := c.nc.(*tls.Conn); ok {
		return t.NetConn().Close()
	}
	return c.nc.Close()
}

// Err returns the error that has ended the connection, or nil.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Explain makes err the connection's error once it has ended: what the peer has
// said as it left tells more than the write that failed before that was read.
func (c *Conn) Explain(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// Close ends the connection at once; what was not yet written is dropped.
func (c *Conn) Close() error { return c.CloseWith(ErrClosed) }

// CloseWith ends the connection at once with err as its error.
func (c *Conn) CloseWith(err error) error {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		_ = c.closeSocket() // again, or after a write that has failed
		return nil
	}
	c.err = err
	c.changed.Broadcast()
	c.mu.Unlock()
	return c.nc.Close()
}

// Shutdown writes what has been appended, then closes with err as the
// connection's error. It gives up on the writing after timeout.
func (c *Conn) Shutdown(err error, timeout time.Duration) error {
	_ = c.Flush()
	t := time.AfterFunc(timeout, func() { _ = c.CloseWith(err) })
	defer t.Stop()
	c.mu.Lock()
	for c.err == nil && (c.busy || len(c.out) > 0) {
		c.changed.Wait()
	}
	c.mu.Unlock()
	return c.CloseWith(err)
}

// Idle reports whether nothing waits to be written.
func (c *Conn) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.busy && len(c.out) == 0
}

// Stats counts system calls and bytes of one connection. Reads and Writes are
// batches: a TLS batch may be several records. Progress grows with the bytes of
// a blocked write that the peer makes room for, and Partial with what is read
// while a packet is unfinished: a packet that takes long moves them.
type Stats struct{ Reads, Writes, BytesIn, BytesOut, Progress, Partial int64 }

// Stats returns the counters so far.
func (c *Conn) Stats() Stats {
	return Stats{c.reads.Load(), c.writes.Load(), c.bytesIn.Load(), c.bytesOut.Load(), c.progress.Load(), c.partial.Load()}
}
