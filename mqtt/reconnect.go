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

// ErrTakenOver: the broker has given the session to another connection. It is
// not fought for, or the two would take it from each other for ever.
var ErrTakenOver = errors.New("session taken over: another client uses this id; give every client its own")

// ErrConnectTimeout: an attempt to connect has used up its time.
var ErrConnectTimeout = errors.New("no answer within the connect timeout")

// A GaveUpError ends a link that was down for too long.
type GaveUpError struct {
	Within   time.Duration // LinkConfig.GiveUp
	Attempts int
	Err      error // of the last attempt, or what the connection was lost by
}

func (e *GaveUpError) Error() string {
	return fmt.Sprintf("not connected again within %s (%d attempts): %s", e.Within, e.Attempts, EndOf(e.Err))
}
func (e *GaveUpError) Unwrap() error { return e.Err }

// LinkConfig says how to connect and how to go on when the connection is lost.
type LinkConfig struct {
	Config // of every attempt; Handler should be a [LinkHandler]
	// Reconnect makes a lost connection again; without it the link ends with
	// its first connection.
	Reconnect bool
	// Subscriptions are made by [Open], and again after every reconnect for
	// which the broker has not kept the session.
	Subscriptions       []packet.Subscription
	SubscribeProperties packet.Properties
	// Backoff gives the waits between attempts; its zero value is usable.
	Backoff Backoff
	// ConnectTimeout bounds one attempt, SUBACK included; 0 is 10 s.
	ConnectTimeout time.Duration
	// GiveUp is how long a link may be down before it ends; 0 is for ever.
	GiveUp time.Duration
	// Refer follows a Server Reference (codes 0x9C and 0x9D): it returns the
	// way to that server, for all attempts from then on. Nil follows none: such
	// a refusal ends the link.
	Refer func(reference string) (Dialer, error)
}

// LinkHandler is the [Handler] of all connections of a [Link]. Closed comes
// once, when the link has ended for good. Room and Reconnected may come at the
// same time as other calls; Up, Down, Reconnected and Closed never do so among
// themselves. None may block.
type LinkHandler interface {
	Handler
	// Up says that a connection stands. It comes before anything of it is
	// handled: templates of the earlier connection must be made anew, and
	// c.Resumed tells what has become of the messages in flight.
	Up(c *Client)
	// Down says that the connection was lost and will be made again.
	Down(err error)
	// Reconnected says that it has been, and what is needed is subscribed
	// again. A connection that is lost before that is Up and Down only.
	Reconnected(r Reconnect)
}

// Reconnect tells of an outage that is over.
type Reconnect struct {
	Client   *Client
	Cause    error         // what the connection was lost by
	Attempts int           // to connect, the last one included
	Down     time.Duration // from the loss to the CONNACK
	Resumed  Resumed
}

// A Link is a connection that is made again when it is lost. While it stands it
// costs nothing beyond its [Client].
type Link struct {
	cfg     LinkConfig
	handler Handler
	ctx     context.Context // ends with the link
	cancel  context.CancelCauseFunc
	client  atomic.Pointer[Client]
	done    chan struct{}

	events sync.Mutex // held while the handler is told of the link; taken before mu

	mu       sync.Mutex
	opened   bool      // Open is done
	standing bool      // the client's connection has not ended, as far as is known
	owed     bool      // the broker's session may lack subscriptions: SUBACK has not come
	since    time.Time // of the connection
	stopped  error     // why this side has ended the link
	err      error
}

// maxReferences bounds how many servers in a row may refer to another one.
const maxReferences = 5

// Open connects and subscribes, at the first attempt or not at all; ctx bounds
// that and no more. The errors are those of [Connect] and [Client.Subscribe].
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

// open makes c a connection whose loss is not the end.
func (l *Link) open(c *Client) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened = true
	if !l.standing {
		return c.Err()
	}
	return nil
}

// Client returns the present connection, or while there is none the last one.
func (l *Link) Client() *Client { return l.client.Load() }

// Done is closed when the link has ended and Handler.Closed has returned.
func (l *Link) Done() <-chan struct{} { return l.done }

// Err returns why the link has ended, or nil.
func (l *Link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close ends the link at once, without DISCONNECT, and waits for its last
// goroutine. A handler must not call it.
func (l *Link) Close() {
	l.stop(ErrClosed)
	<-l.done
}

// Disconnect ends the link by [Client.Disconnect]. A handler must not call it.
func (l *Link) Disconnect(ctx context.Context, code packet.ReasonCode) error {
	l.mu.Lock()
	standing := l.standing
	if l.stopped == nil {
		l.stopped = ErrClosed
	}
	l.mu.Unlock()
	if !standing {
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

// stop ends the link because of err: whatever is under way fails.
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

// up is called by Connect before the reader starts: what the next outage uses
// is settled here.
func (l *Link) up(c *Client) {
	// [MQTT-3.1.3-2] The session is found again under the identifier that the
	// broker has assigned.
	l.cfg.ClientID = c.ClientID()
	if l.cfg.Session != nil && l.cfg.Version == packet.V5 {
		l.cfg.CleanStart = false // from the second time on
	}
	l.client.Store(c)
	l.mu.Lock()
	l.standing, l.since = true, time.Now()
	stopped := l.stopped != nil
	l.mu.Unlock()
	if stopped {
		c.Abort() // stop has ended the connection before this one
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

// mustSubscribe reports whether the broker may lack subscriptions of the link on
// its new connection c: it has kept no session, or one made by a connection that
// was lost before its SUBACK.
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
	l.standing = false
	if l.stopped != nil {
		err = l.stopped
	}
	again := l.stopped == nil && l.opened && l.cfg.Reconnect && mayReturn(err, l.cfg.Refer != nil)
	held := time.Since(l.since)
	l.mu.Unlock()
	if !again {
		l.end(err)
		return
	}
	if h, ok := l.handler.(LinkHandler); ok {
		h.Down(err)
	}
	// A connection that is lost as soon as it stands is no end of the trouble.
	if held >= stableAfter {
		l.cfg.Backoff.Reset()
	}
	go (&outage{Link: l, cause: err, start: time.Now()}).run()
}

// stableAfter is how long a connection stands for its loss to be a new trouble.
const stableAfter = 10 * time.Second

// end is called once, by the last goroutine that has to do with the link, with
// events held.
func (l *Link) end(err error) {
	l.cancel(ErrClosed)
	l.mu.Lock()
	l.err = err
	l.mu.Unlock()
	l.handler.Closed(err)
	close(l.done)
}

// mayReturn reports whether a connection that ended by err is made again.
func mayReturn(err error, follow bool) bool {
	var de *DisconnectedError
	if !errors.As(err, &de) {
		return true
	}
	switch de.Code {
	// [MQTT-3.1.4-3] The session is another connection's now.
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

// run tries until the link stands, or must end.
func (o *outage) run() {
	c, err := o.retry()
	if err != nil {
		o.fail(err)
		return
	}
	r := Reconnect{Client: c, Cause: o.cause, Attempts: o.attempts, Down: time.Since(o.start), Resumed: c.Resumed()}
	// The loss of c from here on is another outage, with a goroutine of its own.
	if o.mustSubscribe(c) {
		if err := o.subscribe(o.ctx, c); err != nil {
			o.unsubscribed(c, err)
			return
		}
	}
	o.events.Lock()
	defer o.events.Unlock()
	if h, ok := o.handler.(LinkHandler); ok && c.Err() == nil {
		h.Reconnected(r)
	}
}

// fail ends the link, over this side's own reason if it has one.
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

// unsubscribed: a refused subscription ends the link, everything else is a
// connection that did not work.
func (o *outage) unsubscribed(c *Client, err error) {
	var refused *SubscribeError
	var limit *LimitError
	if errors.As(err, &refused) || errors.As(err, &limit) {
		o.stop(err)
		return
	}
	_ = c.conn.CloseWith(fmt.Errorf("subscribe again: %w", err))
}

// retry connects, or returns the error that ends the link.
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
		if err := o.judge(err); err != nil {
			return nil, err
		}
	}
}

// judge returns err when another attempt is of no use.
func (o *outage) judge(err error) error {
	var refused *RefusedError
	var limit *LimitError
	switch {
	case errors.As(err, &limit):
		return err
	case !errors.As(err, &refused), refused.MayPass():
		return nil
	}
	if refused.ServerReference != "" && o.cfg.Refer != nil {
		return o.follow(err)
	}
	return err
}

// follow goes where err refers to, if it does. [MQTT5 4.11]
func (o *outage) follow(err error) error {
	ref := serverReference(err)
	if ref == "" || o.cfg.Refer == nil {
		return nil
	}
	if o.references++; o.references > maxReferences {
		return fmt.Errorf("referred from server to server %d times: %w", maxReferences, err)
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

// wait reports whether d has passed before ctx ended.
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
