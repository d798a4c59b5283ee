package mqtt

import (
	"sync"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// keepAlive is what the sweeper remembers of a client, touched by it alone.
// Traffic is seen by the connection's counters, so that sending costs nothing.
type keepAlive struct {
	interval time.Duration // 0: off
	writes   int64
	reads    int64
	progress int64
	wrote    time.Time // when writes was last seen to change
	heard    time.Time // when reads was
	pinged   bool      // nothing has been heard since a PINGREQ
}

// A Sweeper keeps many clients alive with one goroutine: it looks at every
// client a few times per keep-alive interval. No timer per connection.
type Sweeper struct {
	mu      sync.Mutex
	clients map[*Client]struct{}
	period  time.Duration
	change  chan struct{}
	quit    chan struct{}
	done    chan struct{}
}

// NewSweeper starts a sweeper. Stop ends it.
func NewSweeper() *Sweeper {
	s := &Sweeper{
		clients: make(map[*Client]struct{}), period: time.Second,
		change: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go s.run()
	return s
}

// Stop ends the sweeper's goroutine and waits for it.
func (s *Sweeper) Stop() {
	close(s.quit)
	<-s.done
}

func (s *Sweeper) run() {
	defer close(s.done)
	t := time.NewTicker(time.Second) // what NewSweeper has set; add changes both
	defer t.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-s.change:
			s.mu.Lock()
			t.Reset(s.period)
			s.mu.Unlock()
		case now := <-t.C:
			s.sweep(now)
		}
	}
}

func (s *Sweeper) sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		c.keepAlive(now, s.period)
	}
}

func (s *Sweeper) add(c *Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[c] = struct{}{}
	// Eight looks per interval leave time to be early by two of them, and the
	// broker time to answer.
	if p := c.alive.interval / 8; p < s.period {
		s.period = p
		select {
		case s.change <- struct{}{}:
		default:
		}
	}
}

func (s *Sweeper) remove(c *Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
}

func (c *Client) startKeepAlive() {
	interval := (c.cfg.KeepAlive + time.Second - 1) / time.Second * time.Second
	// [MQTT-3.2.2-21, MQTT-3.1.2-21] The broker's Server Keep Alive replaces ours.
	if k := c.connack.Properties.ServerKeepAlive; k != nil {
		interval = time.Duration(*k) * time.Second
	}
	if interval == 0 {
		return
	}
	now := time.Now()
	c.alive = keepAlive{interval: interval, wrote: now, heard: now}
	c.sweeper = c.cfg.Sweeper
	if c.sweeper == nil {
		c.sweeper, c.ownSwp = NewSweeper(), true
	}
	c.sweeper.add(c)
}

func (c *Client) stopKeepAlive() {
	if c.sweeper == nil {
		return
	}
	c.sweeper.remove(c)
	if c.ownSwp {
		c.sweeper.Stop()
	}
}

// keepAlive sends PINGREQ before the interval has passed without a packet sent
// or without one received, and ends a connection on which nothing has come for
// one and a half intervals. What "wrote" and "heard" say may be late by one
// period, and the next look is a period away: hence two of them.
func (c *Client) keepAlive(now time.Time, period time.Duration) {
	k, s := &c.alive, c.conn.Stats()
	if s.Reads != k.reads {
		// Any packet proves life, so heavy traffic never delays the proof.
		k.reads, k.heard, k.pinged = s.Reads, now, false
	}
	if s.Progress != k.progress {
		// Nor does a packet that takes the peer longer than the interval to read.
		k.progress, k.heard = s.Progress, now
	}
	silent := now.Sub(k.heard)
	if k.pinged && silent >= k.interval*3/2-2*period {
		_ = c.conn.CloseWith(ErrKeepAlive)
		return
	}
	if s.Writes != k.writes {
		k.writes, k.wrote = s.Writes, now
	}
	due := k.interval - 2*period
	// [MQTT-3.1.2-20] A packet is sent within every interval. Sending alone
	// does not show that the peer lives: bytes may go to a dead one for long.
	if !k.pinged && (now.Sub(k.wrote) >= due || silent >= due) {
		k.pinged = true
		c.ping()
	}
}

func (c *Client) ping() {
	out := c.conn.Begin()
	if !c.closing {
		out = packet.AppendPingreq(out)
	}
	c.conn.End(out)
	_ = c.conn.Flush()
}
