// Package broker is the loopback broker of this tool: the default target of a
// run, and the peer that the tool is calibrated against. It routes MQTT 3.1,
// 3.1.1 and 5 between connections without losing a message, at a cost per
// message close to that of the client, so that a table made with it shows the
// tool and not the broker.
//
// A [Broker] serves connections, from [Broker.Serve] or one by one from
// [Broker.ServeConn]. A [Config] sets its limits, and its [Fault] list what it
// does wrong on purpose: delay, lose or repeat messages, stall or cut
// connections. Tests of what the tool detects, and calibrations with a known answer,
// use them: they run against the same broker as everything else.
//
// It is not a broker for production. State lives in memory only, there are no
// access rules per topic, and it does not bridge to or cluster with other
// brokers.
//
// One goroutine per connection reads a batch, handles every packet of it in
// place, appends the results to the out buffers of all connections concerned,
// and flushes each of them once at the end of the batch. Messages that look
// alike are copied from buffer to buffer without being decoded, unless there are
// faults. A publisher whose subscriber cannot keep up is not read from until
// there is room again; nothing is dropped for a client that is connected.
package broker

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// ErrClosed is returned by Serve once the broker has been shut down.
var ErrClosed = errors.New("broker closed")

// Config sets the limits of a [Broker]. The zero value is usable: a zero field
// stands for the default that its comment gives.
type Config struct {
	// MaxPacketSize is the largest packet accepted from a client, in bytes;
	// default [packet.MaxPacketSize]. Memory grows with the bytes received, not
	// with the length claimed.
	MaxPacketSize int
	// ReceiveMaximum is how many QoS 1 and 2 messages a client may have
	// unacknowledged; default 65,535. CONNACK tells MQTT 5 clients. [MQTT5 3.2.2.3.3]
	ReceiveMaximum uint16
	// MaximumQoS limits publications and granted subscriptions; nil is 2.
	MaximumQoS *byte
	// TopicAliasMaximum is how many aliases an MQTT 5 client may set, and how many
	// the broker sets at most; default 1,024. [MQTT5 3.2.2.3.8]
	TopicAliasMaximum uint16
	// RetainUnavailable refuses retained messages. [MQTT5 3.2.2.3.5]
	RetainUnavailable bool
	// MaxSessionExpiry caps the Session Expiry Interval, and the life of 3.x
	// sessions without Clean Session; default no cap.
	MaxSessionExpiry time.Duration

	// MaxClients bounds the connections, and MaxSessions the sessions with and
	// without a connection; default 1,000,000 each.
	MaxClients, MaxSessions int
	// MaxInflight bounds the unacknowledged messages to one subscriber, as does
	// the subscriber's own Receive Maximum; default and maximum 65,535.
	MaxInflight int
	// MaxQueuedMessages bounds the queue of a session that is not connected;
	// default 100,000. Messages that do not fit are dropped and counted.
	MaxQueuedMessages int
	// MaxQueuedBytes bounds what one session may hold in memory, queued or
	// waiting to be written; default 64 MiB.
	MaxQueuedBytes int
	// MaxRetainedBytes bounds all retained messages together; default 256 MiB.
	MaxRetainedBytes int
	// StallTimeout is how long a subscriber may read nothing while data waits for
	// it; after that it is disconnected. Default 30 s.
	StallTimeout time.Duration
	// MaxKeepAlive bounds the Keep Alive of an MQTT 5 client that asks for one:
	// CONNACK carries Server Keep Alive. Default no limit. A 3.x client always gets
	// the Keep Alive that it asks for: its CONNACK has no room for another.
	// [MQTT5 3.2.2.3.14]
	MaxKeepAlive time.Duration
	// RefusedFilters are topic filters to which no client may subscribe, shared or
	// not: SUBACK answers 0x80. SUBACK of MQTT 3.1 has no code for a refusal
	// [MQTT31-3.9]: there it grants a QoS, and nothing is delivered.
	RefusedFilters []string
	// ConnectTimeout is how long a new connection may take for its TLS
	// handshake and its CONNECT; default 10 s.
	ConnectTimeout time.Duration

	// Users may connect, by user name and password or, in MQTT 5, by
	// SCRAM-SHA-256. With nil every client may connect, and the broker supports no
	// Authentication Method. [MQTT5 4.12]
	Users *Users
	// ServerReference, unless it is "", refers every MQTT 5 client to another
	// server. ServerReferenceCode is [packet.ReasonServerMoved], or by default
	// [packet.ReasonUseAnotherServer]. [MQTT5 4.11]
	ServerReference     string
	ServerReferenceCode packet.ReasonCode

	// Faults are what the broker does wrong on purpose; none by default. They cost
	// time per message: the fastest paths are off.
	Faults []Fault

	// Logf, unless it is nil, logs why connections were closed.
	Logf func(format string, args ...any)
}

func orDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

func (c Config) withDefaults() Config {
	orDefault(&c.MaxPacketSize, packet.MaxPacketSize)
	orDefault(&c.ReceiveMaximum, 65_535)
	orDefault(&c.TopicAliasMaximum, 1024)
	orDefault(&c.MaxClients, 1_000_000)
	orDefault(&c.MaxSessions, 1_000_000)
	orDefault(&c.MaxInflight, maxPacketIDs)
	orDefault(&c.MaxQueuedMessages, 100_000)
	orDefault(&c.MaxQueuedBytes, 64<<20)
	orDefault(&c.MaxRetainedBytes, 256<<20)
	orDefault(&c.StallTimeout, 30*time.Second)
	orDefault(&c.ConnectTimeout, 10*time.Second)
	orDefault(&c.ServerReferenceCode, packet.ReasonUseAnotherServer)
	if c.MaximumQoS == nil {
		qos := byte(2)
		c.MaximumQoS = &qos
	}
	c.MaxInflight = min(c.MaxInflight, maxPacketIDs)
	return c
}

// Broker is a running broker. Make one with [New]; it runs no goroutine before its
// first connection.
//
// Locks are taken in this order: Broker.mu or session.mu, then tree.mu or
// retained.mu, then a wire.Conn's own. No goroutine holds two sessions.
type Broker struct {
	cfg      Config
	maxQoS   byte
	epoch    time.Time
	subs     tree
	retained retained
	faults   *faults // nil without
	count    counters
	wg       sync.WaitGroup // connections, the sweeper, wills being published
	stop     chan struct{}  // closed by shutdown

	mu        sync.Mutex
	closed    bool
	sweeping  bool
	listeners map[net.Listener]struct{}
	clients   map[*client]struct{}
	sessions  map[string]*session
	timed     map[*session]struct{} // sessions without a connection that will expire or have a will
	gone      wireTotals            // of connections that have ended
	entered   int                   // connections that have a session
	serial    uint64                // for assigned client identifiers
}

// New makes a broker. Everything it does happens in the goroutines that call
// Serve and ServeConn, and in those they start.
func New(cfg Config) *Broker {
	cfg = cfg.withDefaults()
	b := &Broker{
		cfg: cfg, maxQoS: min(*cfg.MaximumQoS, 2), epoch: time.Now(),
		retained:  retained{max: cfg.MaxRetainedBytes},
		stop:      make(chan struct{}),
		listeners: map[net.Listener]struct{}{},
		clients:   map[*client]struct{}{},
		sessions:  map[string]*session{},
		timed:     map[*session]struct{}{},
	}
	b.faults = newFaults(b, cfg.Faults)
	return b
}

// now is the time since the broker was made, in nanoseconds, from the
// monotonic clock.
func (b *Broker) now() int64 { return int64(time.Since(b.epoch)) }

func (b *Broker) logf(format string, args ...any) {
	if b.cfg.Logf != nil {
		b.cfg.Logf(format, args...)
	}
}

// shutdown is Close with the deadline of ctx, and returns its error.
func (b *Broker) shutdown(ctx context.Context) error {
	clients := b.close()
	if b.faults != nil {
		b.faults.queue.Stop() // messages that are held back are lost
	}
	for _, c := range clients {
		c.kick(packet.ReasonServerShuttingDown)
	}
	done := make(chan struct{})
	go func() {
		b.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	left := b.clientList()
	b.mu.Unlock()
	for _, c := range left {
		c.cut(ErrClosed)
	}
	<-done
	return ctx.Err()
}

// Close closes the listeners, disconnects every client (MQTT 5 ones with reason
// 0x8B) and waits for all goroutines to end. After two seconds it cuts the
// connections that are left and returns an error. Will messages are not published.
func (b *Broker) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return b.shutdown(ctx)
}

// close refuses new connections and returns the existing ones.
func (b *Broker) close() []*client {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.stop)
	}
	for l := range b.listeners {
		_ = l.Close()
	}
	return b.clientList()
}

// clientList copies the set of connections. b.mu is held.
func (b *Broker) clientList() []*client {
	list := make([]*client, 0, len(b.clients))
	for c := range b.clients {
		list = append(list, c)
	}
	return list
}

// Stats are the counters of a [Broker] since it was made, and its current state.
type Stats struct {
	// Connections counts all accepted connections; Connected and Sessions are the
	// current numbers.
	Connections            int64
	Connected, Sessions    int
	Subscriptions          int
	RetainedMessages       int
	MessagesIn             int64 // PUBLISH packets received, repeated ones included
	MessagesOut            int64 // PUBLISH packets appended for subscribers
	Dropped                int64 // messages dropped because the queue of a session without a connection was full
	Oversize               int64 // messages above a subscriber's Maximum Packet Size [MQTT-3.1.2-25]
	Expired                int64 // messages whose Message Expiry Interval had passed
	BytesIn, BytesOut      int64
	Reads, Writes          int64 // batches, which are system calls on plain sockets
	Stalled                int64 // subscribers disconnected by StallTimeout
	RefusedRetainedPublish int64 // retained messages not stored because of MaxRetainedBytes
}

// counters are added to once per read batch.
type counters struct {
	connections, in, out, dropped, oversize, expired, stalled, refusedRetained atomic.Int64
}

type wireTotals struct{ reads, writes, in, out int64 }

func (t *wireTotals) add(c *client) {
	if wc := c.wire(); wc != nil {
		s := wc.Stats()
		t.reads += s.Reads
		t.writes += s.Writes
		t.in += s.BytesIn
		t.out += s.BytesOut
	}
}

// Stats returns the counters. They do not yet include the read batches that are
// being handled.
func (b *Broker) Stats() Stats {
	b.mu.Lock()
	total := b.gone
	connected, sessions := 0, len(b.sessions)
	for c := range b.clients {
		total.add(c)
		if c.connected.Load() {
			connected++
		}
	}
	b.mu.Unlock()
	n := &b.count
	return Stats{
		Connections: n.connections.Load(), Connected: connected, Sessions: sessions,
		Subscriptions: b.subs.len(), RetainedMessages: b.retained.len(),
		MessagesIn: n.in.Load(), MessagesOut: n.out.Load(), Dropped: n.dropped.Load(),
		Oversize: n.oversize.Load(), Expired: n.expired.Load(), Stalled: n.stalled.Load(),
		RefusedRetainedPublish: n.refusedRetained.Load(),
		BytesIn:                total.in, BytesOut: total.out, Reads: total.reads, Writes: total.writes,
	}
}
