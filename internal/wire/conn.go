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

// HighWater is the size of the out buffer, in bytes, from which publishers must
// wait. Acknowledgements never wait: if both peers' readers waited for room, neither
// would make any.
const HighWater = 64 << 10

// keepCap is the largest capacity, in bytes, of an out buffer that is reused.
const keepCap = 4 * HighWater

// ErrClosed is the error of a connection that this side has closed.
var ErrClosed = errors.New("connection closed")

// Options configure a [Conn]. The zero value is usable.
type Options struct {
	// MaxPacketSize is the largest packet accepted from the peer, in bytes; 0
	// is the protocol's own limit.
	MaxPacketSize int
	// Version is the protocol version: MQTT 3.1 leaves some header flags open.
	Version packet.Version
	// OnRoom is called, without any lock held, when the out buffer has room again
	// after [Conn.Room] has reported none.
	OnRoom func()
}

// Conn is one connection. Fill, Next and Scanner are for one goroutine; all other
// methods are for any.
type Conn struct {
	nc     net.Conn
	scan   *packet.Scanner
	source source
	sink   sink
	drain  func() // drainAll as a value, so that `go c.drain()` allocates nothing
	onRoom func()

	reads, writes, bytesIn, bytesOut, progress, partial atomic.Int64

	mu       sync.Mutex
	changed  sync.Cond // signals changes of len(out), busy and err
	out      []byte    // the buffer that packets are appended to
	spare    []byte    // the other one of the double buffer; nil during a write
	busy     bool      // a goroutine is writing; cur and rest belong to it
	cur      []byte    // the buffer being written
	rest     []byte    // the part of cur that the socket did not take
	wantRoom bool      // OnRoom is to be called
	err      error     // why the connection has ended
}

// A source reads from the connection into the scanner, once per call.
type source interface {
	fill(s *packet.Scanner) (int, error)
}

// A sink writes to the connection.
type sink interface {
	// try writes as much of p as it can without blocking. If it reports blocked,
	// finish(rest) must be called, from a goroutine that may block.
	try(p []byte) (rest []byte, blocked bool, err error)
	finish(rest []byte) error
}

// New makes a Conn of nc and takes ownership of it. TLS, and any other layer, is
// written without blocking only if it was made over [NonBlocking].
func New(nc net.Conn, o Options) *Conn {
	c := &Conn{nc: nc, scan: packet.NewScanner(nil, o.MaxPacketSize), onRoom: o.OnRoom}
	c.scan.SetVersion(o.Version)
	c.changed.L = &c.mu
	c.drain = c.drainAll
	c.source, c.sink = c.sourceAndSink(nc)
	return c
}

// sourceAndSink returns the most efficient ways to read and to write nc.
func (c *Conn) sourceAndSink(nc net.Conn) (source, sink) {
	if raw := rawConn(nc); raw != nil {
		return newRawSource(raw), newRawSink(nc, raw, &c.progress)
	}
	nb := nonBlockingOf(nc)
	switch {
	case nb == nil && TLSOf(nc) == nil:
		return plainSource{nc}, plainSink{nc, &c.progress}
	case nb == nil:
		return &tlsSource{t: nc}, plainSink{nc, &c.progress}
	}
	nb.start(&c.progress)
	in := &tlsSource{t: nc}
	if _, ok := nc.(*tls.Conn); ok {
		in.nb = nb // only crypto/tls is known to survive the error nothingYet
	}
	return in, tlsSink{nc, nb}
}

// NetConn returns the connection underneath.
func (c *Conn) NetConn() net.Conn { return c.nc }

// Fill reads once, blocking until there are bytes, and returns their number. Frames
// that Next has returned are no longer valid.
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

// Next returns the next whole packet in the buffer. ok is false if there is none:
// call Fill. The frame is valid until the next Fill.
func (c *Conn) Next() (f packet.Frame, ok bool, err error) { return c.scan.Next() }

// Scanner returns the buffer that Fill fills and Next reads, for callers that look
// for runs of similar packets.
func (c *Conn) Scanner() *packet.Scanner { return c.scan }

// Begin locks the out buffer and returns it, to append packets. End must follow.
func (c *Conn) Begin() []byte {
	c.mu.Lock()
	return c.out
}

// End stores out, which is the buffer from Begin with packets appended, and unlocks
// it. It does not write: see [Conn.Flush].
func (c *Conn) End(out []byte) {
	c.out = out
	c.mu.Unlock()
}

// Room returns how many bytes a publisher may still append to out, the buffer from
// Begin. If the result is 0 or less, OnRoom will be called. If it is positive, one
// packet of any size may be appended.
func (c *Conn) Room(out []byte) int {
	room := HighWater - len(out)
	if room <= 0 {
		c.wantRoom = true
	}
	return room
}

// WaitRoom blocks until a publisher may append or the connection has ended.
func (c *Conn) WaitRoom() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && len(c.out) >= HighWater {
		c.changed.Wait()
	}
	return c.err
}

// Flush writes the out buffer, as far as possible without blocking; a goroutine
// writes the rest. It returns the error that has ended the connection, if any.
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

// drainAll finishes a blocked write, then writes what has been appended since.
func (c *Conn) drainAll() {
	c.mu.Lock()
	for c.err == nil {
		rest := c.rest
		c.mu.Unlock()
		// The out buffer was swapped: publishers can append to it while finish blocks.
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
		// No need to check blocked: finish returns at once if there is no rest.
		if _, err := c.write(); err != nil {
			break
		}
	}
	_ = c.idle()
}

// write writes the out buffer as far as possible without blocking, and keeps the
// remainder in rest. It is called with the lock held and releases it while writing.
// If it returns an error, the connection has ended.
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

// recycle makes the buffer just written the spare one. The lock is held.
func (c *Conn) recycle() {
	if cap(c.cur) <= keepCap {
		c.spare = c.cur[:0]
	}
	c.cur, c.rest = nil, nil
}

// idle marks the end of writing, unlocks, and returns the connection's error.
func (c *Conn) idle() error {
	c.busy = false
	c.changed.Broadcast()
	err := c.err
	c.mu.Unlock()
	c.callRoom()
	return err
}

// callRoom calls OnRoom if a publisher has found no room and there is room now.
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

// lastReads is how long the reader may still read after a write has failed.
const lastReads = 250 * time.Millisecond

// fail ends the connection after a failed write: writing on would leave a gap in
// the stream. err becomes its error unless it has one. The reader is not
// interrupted at once but by a deadline, so that it can still read the peer's last
// packets: a DISCONNECT may say why the peer has closed. The lock is held.
func (c *Conn) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.changed.Broadcast()
	if c.nc.SetReadDeadline(time.Now().Add(lastReads)) != nil {
		_ = CloseSocket(c.nc)
	}
}

// Err returns the error that has ended the connection, or nil.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Explain replaces the error of a connection that has ended. The reader uses it when
// the peer's last packet says more than the write error that came first.
func (c *Conn) Explain(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// Close ends the connection at once and drops what has not been written.
func (c *Conn) Close() error { return c.CloseWith(ErrClosed) }

// CloseWith ends the connection at once with err as its error.
func (c *Conn) CloseWith(err error) error {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		_ = CloseSocket(c.nc) // closed before, or still open after a failed write
		return nil
	}
	c.err = err
	c.changed.Broadcast()
	c.mu.Unlock()
	return c.nc.Close()
}

// Shutdown writes the out buffer, then closes with err as the connection's error. If
// writing takes longer than timeout, it closes without the rest.
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

// Idle reports whether everything appended has been written.
func (c *Conn) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.busy && len(c.out) == 0
}

// Stats are the counters of one connection.
type Stats struct {
	Reads, Writes     int64 // calls of Fill and writes; with TLS, each may be several records
	BytesIn, BytesOut int64
	Progress          int64 // bytes of blocked writes that the peer has since made room for
	Partial           int64 // bytes read of packets that began in an earlier read
}

// Stats returns the counters so far.
func (c *Conn) Stats() Stats {
	return Stats{c.reads.Load(), c.writes.Load(), c.bytesIn.Load(), c.bytesOut.Load(), c.progress.Load(), c.partial.Load()}
}
