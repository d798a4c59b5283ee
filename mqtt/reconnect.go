package mqtt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// ErrTakenOver means that the broker has given the session to another connection.
// A link does not reconnect then: two clients with one id would disconnect each
// other forever.
var ErrTakenOver = errors.New("session taken over: another client uses this id; give every client its own")

// ErrConnectTimeout means that an attempt has exceeded [LinkConfig.ConnectTimeout].
var ErrConnectTimeout = errors.New("no answer within the connect timeout")

// A GaveUpError ends a link that was down for too long.
type GaveUpError struct {
	Within   time.Duration // LinkConfig.GiveUp
	Attempts int
	Err      error // of the last attempt; without one, the error that ended the connection
}

// Error names the time, the number of attempts, and the reason of Err.
func (e *GaveUpError) Error() string {
	return fmt.Sprintf("could not reconnect within %s (%d attempts): %s", e.Within, e.Attempts, EndOf(e.Err))
}

// Unwrap returns Err.
func (e *GaveUpError) Unwrap() error { return e.Err }

// LinkConfig says how a [Link] connects and what it does after a connection is lost.
type LinkConfig struct {
	Config // of every attempt; Handler should be a [LinkHandler]
	// Reconnect replaces a lost connection. If it is false, the link ends with its
	// first connection.
	Reconnect bool
	// Subscriptions are made by [Open], and after every reconnection for which the
	// broker has not kept the session.
	Subscriptions       []packet.Subscription
	SubscribeProperties packet.Properties
	// Backoff computes the waits between attempts; its zero value is usable.
	Backoff Backoff
	// ConnectTimeout bounds one attempt to connect and, separately, to subscribe; 0
	// is 10 s.
	ConnectTimeout time.Duration
	// GiveUp is how long a link may be down before it ends; 0 is forever.
	GiveUp time.Duration
	// Refer resolves a Server Reference (codes 0x9C and 0x9D). It returns the dialer
	// for that server, which all later attempts use. If Refer is nil, a refusal
	// with a Server Reference ends the link.
	Refer func(reference string) (Dialer, error)
}

// LinkHandler is the [Handler] of all connections of a [Link]. Closed is called
// once, when the link has ended for good. Room and Reconnected may run at the same
// time as other methods, but Up, Down, Reconnected and Closed never run at the same
// time as each other. No method may block.
type LinkHandler interface {
	Handler
	// Up says that connection c is open. It precedes all events of c. Templates of
	// the earlier connection must be encoded again, and c.Resumed tells what became
	// of the messages in flight.
	Up(c *Client)
	// Down says that the connection was lost and that the link will reconnect.
	Down(err error)
	// Reconnected says that the link has reconnected and renewed the subscriptions
	// that the broker had lost. A connection that ends before that gets no
	// Reconnected, only Up and Down.
	Reconnected(r Reconnect)
}

// Reconnect describes an outage that is over.
type Reconnect struct {
	Client   *Client
	Cause    error         // why the earlier connection was lost
	Attempts int           // to connect, including the one that succeeded
	Down     time.Duration // from the loss to the CONNACK
	Resumed  Resumed
}

// A Link is a connection that reconnects by itself. While it is connected it costs
// nothing beyond its [Client].
type Link struct {
	cfg     LinkConfig
	handler Handler
	ctx     context.Context // ends with the link
	cancel  context.CancelCauseFunc
	client  atomic.Pointer[Client]
	done    chan struct{}

	// events is held during calls of Up, Down, Reconnected and Closed. Lock it
	// before mu.
	events sync.Mutex

	mu        sync.Mutex
	opened    bool      // Open has returned or is about to
	connected bool      // the reader has not yet reported the client's end
	owed      bool      // the broker's session may lack subscriptions: SUBACK has not come
	since     time.Time // when the connection was made
	stopped   error     // why this side has ended the link
	err       error
}

// MaxReferences bounds how many Server References are followed in a row.
const MaxReferences = 5

// Open connects and subscribes. It does not retry: the first attempt must succeed,
// within ctx. After that ctx has no effect. The errors are those of [Connect] and
// [Client.Subscribe].
func Open(ctx context.Context, cfg LinkConfig) (*Link, error) {
	if cfg.Handler == nil {
		cfg.Handler = NopHandler{}
	}
	if cfg.ConnectTimeout <= 0 {
		cfg.ConnectTimeout = 10 * time.Second
	}
	l := &Link{cfg: cfg, handler: cfg.Handler, done: make(chan struct{})}
	l.cfg.Config.link = l
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	c, err := l.connect(ctx)
	if err != nil {
		l.cancel(err)
		return nil, err
	}
	if err = l.subscribe(ctx, c); err == nil {
		err = l.open(c)
	}
	if err != nil {
		l.stop(err)
		<-l.done
		return nil, err
	}
	return l, nil
}

// open marks the link as open, so that the loss of c leads to a reconnection.
func (l *Link) open(c *Client) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened = true
	if !l.connected {
		return c.Err()
	}
	return nil
}

// Client returns the current connection, or during an outage the last one.
func (l *Link) Client() *Client { return l.client.Load() }

// Done is closed when the link has ended and Handler.Closed has returned.
func (l *Link) Done() <-chan struct{} { return l.done }

// Err returns why the link has ended, or nil.
func (l *Link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close ends the link at once, without DISCONNECT, and waits for its goroutines. A
// handler must not call it.
func (l *Link) Close() {
	l.stop(ErrClosed)
	<-l.done
}

// Disconnect ends the link with [Client.Disconnect]. A handler must not call it.
func (l *Link) Disconnect(ctx context.Context, code packet.ReasonCode) error {
	l.mu.Lock()
	connected := l.connected
	if l.stopped == nil {
		l.stopped = ErrClosed
	}
	l.mu.Unlock()
	if !connected {
		l.Close()
		return nil
	}
	if err := l.Client().Disconnect(ctx, code); err != nil {
		l.Close()
		return err
	}
	<-l.done
	return nil
}

// stop ends the link because of err. Attempts and requests in progress fail.
func (l *Link) stop(err error) {
	l.mu.Lock()
	if l.stopped == nil {
		l.stopped = err
	}
	l.mu.Unlock()
	l.cancel(ErrClosed)
	if c := l.client.Load(); c != nil {
		c.Abort()
	}
}

// connect makes one attempt.
func (l *Link) connect(ctx context.Context) (*Client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.cfg.ConnectTimeout, ErrConnectTimeout)
	defer cancel()
	return Connect(ctx, l.cfg.Config)
}

// up is called by Connect before the reader starts. It prepares the Config for the
// next reconnection.
func (l *Link) up(c *Client) {
	// [MQTT-3.1.3-2] The broker keeps the session under the identifier that it has
	// assigned.
	l.cfg.ClientID = c.ClientID()
	if l.cfg.Session != nil && l.cfg.Version == packet.V5 {
		l.cfg.CleanStart = false // the clean start was for the first connection
	}
	l.client.Store(c)
	l.mu.Lock()
	l.connected, l.since = true, time.Now()
	stopped := l.stopped != nil
	l.mu.Unlock()
	if stopped {
		c.Abort() // stop has aborted only the connection before this one
	}
	if h, ok := l.handler.(LinkHandler); ok {
		l.events.Lock()
		defer l.events.Unlock()
		h.Up(c)
	}
}

func (l *Link) subscribe(ctx context.Context, c *Client) error {
	if len(l.cfg.Subscriptions) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.cfg.ConnectTimeout, ErrConnectTimeout)
	defer cancel()
	_, err := c.Subscribe(ctx, l.cfg.Subscriptions, l.cfg.SubscribeProperties)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client.Load() == c {
		l.owed = err != nil
	}
	return err
}

// mustSubscribe reports whether the broker may lack subscriptions on the new
// connection c: it has not kept the session, or the connection that made the
// session was lost before its SUBACK.
func (l *Link) mustSubscribe(c *Client) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owed = l.owed || !c.connack.SessionPresent
	return l.owed
}

// lost is called by the reader of a connection that has ended.
func (l *Link) lost(err error) {
	l.events.Lock()
	defer l.events.Unlock()
	l.mu.Lock()
	l.connected = false
	if l.stopped != nil {
		err = l.stopped
	}
	reconnect := l.stopped == nil && l.opened && l.cfg.Reconnect && mayReconnect(err, l.cfg.Refer != nil)
	lasted := time.Since(l.since)
	l.mu.Unlock()
	if !reconnect {
		l.end(err)
		return
	}
	if h, ok := l.handler.(LinkHandler); ok {
		h.Down(err)
	}
	// After a connection that was lost at once, the backoff goes on growing.
	if lasted >= stableAfter {
		l.cfg.Backoff.Reset()
	}
	go (&outage{Link: l, cause: err, start: time.Now()}).run()
}

// stableAfter is how long a connection must last to reset the backoff.
const stableAfter = 10 * time.Second

// end is called once, with events held, by the last goroutine that uses the link.
func (l *Link) end(err error) {
	l.cancel(ErrClosed)
	l.mu.Lock()
	l.err = err
	l.mu.Unlock()
	l.handler.Closed(err)
	close(l.done)
}

// mayReconnect reports whether a link reconnects after its connection ended with
// err. follow says whether it follows Server References.
func mayReconnect(err error, follow bool) bool {
	var de *DisconnectedError
	if !errors.As(err, &de) {
		return true
	}
	switch de.Code {
	// [MQTT-3.1.4-3] Another connection has the session now.
	case packet.ReasonSessionTakenOver, packet.ReasonNotAuthorized, packet.ReasonBanned,
		packet.ReasonBadAuthenticationMethod, packet.ReasonRetainNotSupported, packet.ReasonQoSNotSupported,
		packet.ReasonSharedSubNotSupported, packet.ReasonSubIDsNotSupported, packet.ReasonWildcardSubNotSupported:
		return false
	case packet.ReasonUseAnotherServer, packet.ReasonServerMoved:
		return follow && de.ServerReference != ""
	}
	return true
}

// outage is the time between two connections of a link.
type outage struct {
	*Link
	cause      error
	start      time.Time
	attempts   int
	references int
}

// run tries to reconnect until it succeeds or the link must end.
func (o *outage) run() {
	c, err := o.retry()
	if err != nil {
		o.fail(err)
		return
	}
	r := Reconnect{Client: c, Cause: o.cause, Attempts: o.attempts, Down: time.Since(o.start), Resumed: c.Resumed()}
	// If c is lost from here on, that is another outage with its own goroutine.
	if o.mustSubscribe(c) {
		if err := o.subscribe(o.ctx, c); err != nil {
			o.subscribeFailed(c, err)
			return
		}
	}
	o.events.Lock()
	defer o.events.Unlock()
	if h, ok := o.handler.(LinkHandler); ok && c.Err() == nil {
		h.Reconnected(r)
	}
}

// fail ends the link because of err, or because of stop's error if it was called.
func (o *outage) fail(err error) {
	o.events.Lock()
	defer o.events.Unlock()
	o.mu.Lock()
	if o.stopped != nil {
		err = o.stopped
	}
	o.mu.Unlock()
	o.end(err)
}

// subscribeFailed ends the link if a subscription was refused. Any other error ends
// only the connection c.
func (o *outage) subscribeFailed(c *Client, err error) {
	var refused *SubscribeError
	var limit *LimitError
	if errors.As(err, &refused) || errors.As(err, &limit) {
		o.stop(err)
		return
	}
	_ = c.conn.CloseWith(fmt.Errorf("resubscribe: %w", err))
}

// retry tries to connect until it succeeds. Its error ends the link.
func (o *outage) retry() (*Client, error) {
	if err := o.follow(o.cause); err != nil {
		return nil, err
	}
	ctx := o.ctx
	if o.cfg.GiveUp > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.cfg.GiveUp)
		defer cancel()
	}
	last := o.cause
	for {
		if !wait(ctx, o.cfg.Backoff.Next()) {
			return nil, &GaveUpError{o.cfg.GiveUp, o.attempts, last}
		}
		o.attempts++
		c, err := o.connect(ctx)
		if err == nil {
			return c, nil
		}
		last = err
		if err := o.checkRetry(err); err != nil {
			return nil, err
		}
	}
}

// checkRetry returns nil if another attempt may succeed after one failed with err.
// Otherwise it returns the error that ends the link.
func (o *outage) checkRetry(err error) error {
	var refused *RefusedError
	var limit *LimitError
	switch {
	case errors.As(err, &limit):
		return err
	case !errors.As(err, &refused), refused.Temporary():
		return nil
	}
	if refused.ServerReference != "" && o.cfg.Refer != nil {
		return o.follow(err)
	}
	return err
}

// follow makes the next attempts go to the server that err refers to, if it refers
// to one. [MQTT5 4.11]
func (o *outage) follow(err error) error {
	ref := serverReference(err)
	if ref == "" || o.cfg.Refer == nil {
		return nil
	}
	if o.references++; o.references > MaxReferences {
		return fmt.Errorf("more than %d server references in a row: %w", MaxReferences, err)
	}
	dial, e := o.cfg.Refer(ref)
	if e != nil {
		return fmt.Errorf("follow the broker to %q: %w", ref, e)
	}
	o.cfg.Dial = dial
	return nil
}

func serverReference(err error) string {
	var refused *RefusedError
	var de *DisconnectedError
	switch {
	case errors.As(err, &refused):
		return refused.ServerReference
	case errors.As(err, &de):
		return de.ServerReference
	}
	return ""
}

// wait waits for d and reports whether it has passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
