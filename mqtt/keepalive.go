package mqtt

import (
	"sync"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// keepAlive is the keep-alive state of one client, for the sweeper's goroutine
// only. The sweeper compares the connection's counters with those it saw last, so
// that sending and receiving cost nothing extra.
type keepAlive struct {
	interval time.Duration // 0: off
	writes   int64         // the counters as last seen
	reads    int64
	progress int64
	wrote    time.Time // when writes was last seen to change
	heard    time.Time // when reads or progress was
	pinged   bool      // a PINGREQ has been sent and nothing received since
}

// A Sweeper does the keep-alive of many clients in one goroutine, without a timer
// per connection: it checks every client a few times per keep-alive interval.
type Sweeper struct {
	mu      sync.Mutex
	clients map[*Client]struct{}
	period  time.Duration
	change  chan struct{}
	quit    chan struct{}
	done    chan struct{}
}

// NewSweeper starts a sweeper; [Sweeper.Stop] ends it.
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
	t := time.NewTicker(time.Second) // the period set by NewSweeper; add changes both
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
		c.checkAlive(now, s.period)
	}
}

func (s *Sweeper) add(c *Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[c] = struct{}{}
	// With eight checks per interval a PINGREQ can go out two checks early, and the
	// broker still has time to answer.
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
		c.sweeper, c.ownsSweeper = NewSweeper(), true
	}
	c.sweeper.add(c)
}

func (c *Client) stopKeepAlive() {
	if c.sweeper == nil {
		return
	}
	c.sweeper.remove(c)
	if c.ownsSweeper {
		c.sweeper.Stop()
	}
}

// checkAlive sends PINGREQ before an interval passes in which nothing was sent, or
// nothing was received. It ends the connection once nothing has been received for
// one and a half intervals. Both limits are two periods early: wrote and heard may
// be late by one period, and the next check is one period away.
func (c *Client) checkAlive(now time.Time, period time.Duration) {
	k, s := &c.alive, c.conn.Stats()
	if s.Reads != k.reads {
		// Any packet proves that the broker is alive, not only PINGRESP, which may
		// be queued behind many messages.
		k.reads, k.heard, k.pinged = s.Reads, now, false
	}
	if s.Progress != k.progress {
		// So does a broker that slowly reads a large packet.
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
	// [MQTT-3.1.2-20] A packet is sent within every interval. PINGREQ is sent after
	// a silent interval too: the kernel accepts bytes for a dead peer for a long time.
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
