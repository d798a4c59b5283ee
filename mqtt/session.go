package mqtt

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// ErrSessionInUse: a [Session] belongs to one connection at a time.
var ErrSessionInUse = errors.New("session: another connection of this process still uses it; close that one first")

// ErrSessionPresent: the broker has a session of the client identifier, and this
// client has not. [MQTT-3.2.2-4] It is the cause of a [ProtocolError].
var ErrSessionPresent = errors.New("session present, but this client has none; connect once with a clean start")

// A Session is the state that outlives a connection: the QoS 1 and 2 messages
// on their way to the broker, with their bytes, and the ids of inbound QoS 2
// messages. [MQTT5 4.1] Topic aliases and unanswered SUBSCRIBEs are not part of
// it. Make one with [NewSession], give it to [Connect] in [Config.Session], and
// give the same one to the next Connect once the first connection is done.
type Session struct {
	mu   sync.Mutex // taken before the lock of conn.Begin
	busy bool       // a connection has it, or is being made with it
	user *Client    // has win and in2 in fields of its own
	win  window
	in2  idSet

	// The user's, under the lock of its conn.Begin.
	stands bool   // the broker has had the session once
	kept   []kept // by slot of the window
	order  uint64 // of the last packet
	// plain holds, for a template with a topic alias, the one to resend with.
	plain map[*packet.Template]*packet.Template
}

// kept is what a packet id in flight is resent as.
type kept struct {
	id     uint16
	order  uint64 // when the PUBLISH, or the PUBREL in its place, was first sent
	packet []byte
}

// NewSession returns a Session without any state.
func NewSession() *Session { return new(Session) }

// AdoptSession returns the Session of a client that an earlier process was, and
// that left nothing in flight of its own: the broker may have its subscriptions
// and what is queued for them.
func AdoptSession() *Session { return &Session{stands: true} }

// InFlight is how many QoS 1 and 2 messages are without their last
// acknowledgement.
func (s *Session) InFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.user == nil {
		return s.win.used
	}
	out := s.user.conn.Begin()
	n := s.user.win.used
	s.user.conn.End(out)
	return n
}

// Resumed is what a connection has made of its [Session].
type Resumed struct {
	// Present: the broker had the session too.
	Present bool
	// Resent is how many messages in flight go again, as PUBLISH or as PUBREL,
	// under their packet ids.
	Resent int
	// Dropped are the stamps, in order, of messages in flight that have ended
	// without an acknowledgement because the broker no longer had the session,
	// or because of a clean start. They may be published again as new ones.
	Dropped []int64
}

// Resumed returns what became of [Config.Session] when this connection began.
// Without one it only says what the broker had.
func (c *Client) Resumed() Resumed {
	if c.session == nil {
		return Resumed{Present: c.connack.SessionPresent}
	}
	return c.session.resumed
}

// attachment is a Session and what this connection does with it. But for
// resumed it is under the lock of conn.Begin.
type attachment struct {
	*Session
	resumed Resumed
	pending []uint16 // yet to be sent again
	carried int      // inbound QoS 2 messages of earlier connections
}

// acquire reserves the session for a connection that is being made.
func (s *Session) acquire() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return ErrSessionInUse
	}
	s.busy = true
	return nil
}

func (s *Session) release() {
	s.mu.Lock()
	s.busy, s.user = false, nil
	s.mu.Unlock()
}

// resume takes the session over after CONNACK and sends what goes again.
func (c *Client) resume() error {
	a := c.session
	// [MQTT-3.2.2-4] 3.1.1 has no such rule, and 3.1 no Session Present.
	if c.cfg.Version == packet.V5 && c.connack.SessionPresent && (a == nil || !a.stands) {
		return c.sayGoodbye(&ProtocolError{packet.ReasonProtocolError, ErrSessionPresent})
	}
	if a == nil {
		return nil
	}
	a.resumed.Present = c.connack.SessionPresent
	if c.cfg.Version == packet.V31 {
		// CONNACK of 3.1 does not tell: it is there unless a clean start was asked.
		a.resumed.Present = a.stands && !c.cfg.CleanStart
	}
	if err := c.mayResend(); err != nil {
		return err
	}
	c.attach()
	_ = c.conn.Flush() // the reader learns of an error, and gives the state back
	return nil
}

// mayResend holds what is in flight to the limits of this CONNACK, which need not
// be those of the one before: a [*LimitError] leaves it with the session.
func (c *Client) mayResend() error {
	a := c.session
	if !a.resumed.Present {
		return nil // nothing goes again
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range a.inFlight(&a.win) {
		if a.win.find(id).State == idRelease {
			continue
		}
		p := a.at(id).packet
		err := c.checkFlags(p[0]>>1&3, p[0]&1 != 0)
		if err == nil {
			err = c.checkSize(len(p))
		}
		if err != nil {
			return fmt.Errorf("send message %d of the session again: %w", id, err)
		}
	}
	return nil
}

// attach moves the state into c and appends what goes again.
func (c *Client) attach() {
	a := c.session
	a.mu.Lock()
	defer a.mu.Unlock()
	out := c.conn.Begin()
	// [MQTT-3.2.2-5, MQTT-3.1.2-4], [MQTT-3.1.2-6] of 3.1.1
	if !a.resumed.Present {
		a.resumed.Dropped = a.discard()
	}
	a.user, a.stands = c, true
	limit := c.win.limit
	c.win, c.inbound2 = a.win, a.in2
	c.win.limit, a.carried = limit, c.inbound2.n
	a.pending = a.inFlight(&c.win)
	a.resumed.Resent = len(a.pending)
	c.conn.End(c.resend(out))
}

// carriedOver is how many inbound QoS 2 messages come from earlier connections.
// The broker's send quota of this one need not count them. [MQTT5 4.9]
func (c *Client) carriedOver() int {
	if c.session == nil {
		return 0
	}
	return c.session.carried
}

// detach gives the state back when the connection has ended. From then on
// nothing more is taken for sending.
func (c *Client) detach() {
	a := c.session
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
	}
	out := c.conn.Begin()
	c.closing = true
	if a != nil {
		// A SUBSCRIBE without an answer is not part of the session.
		c.win.dropControl()
		// [MQTT-3.1.2-23]
		a.win, a.in2, a.plain = c.win, c.inbound2, nil
		a.busy, a.user = false, nil
	}
	c.conn.End(out)
}

// discard forgets everything and returns the stamps of what was in flight.
func (s *Session) discard() []int64 {
	var stamps []int64
	for _, id := range s.inFlight(&s.win) {
		stamps = append(stamps, s.win.find(id).Value)
	}
	s.win, s.in2 = window{}, idSet{}
	return stamps
}

// inFlight returns the ids of w in the order in which their PUBLISH or PUBREL
// was first sent.
func (s *Session) inFlight(w *window) []uint16 {
	s.fit(len(w.ids.Slots()))
	var ids []uint16
	for _, at := range w.ids.Slots() {
		if at.State != idFree && at.State != idControl {
			ids = append(ids, at.ID)
		}
	}
	// [MQTT-4.6.0-1, MQTT-4.6.0-4]
	slices.SortFunc(ids, func(a, b uint16) int { return cmp.Compare(s.at(a).order, s.at(b).order) })
	return ids
}

// at returns the slot of an id.
func (s *Session) at(id uint16) *kept { return &s.kept[int(id)&(len(s.kept)-1)] }

// fit gives every slot of the window its place.
func (s *Session) fit(slots int) {
	if slots <= len(s.kept) {
		return
	}
	old := s.kept
	s.kept = make([]kept, slots)
	for _, k := range old {
		if k.id != 0 {
			*s.at(k.id) = k
		}
	}
}

// keep remembers copies of t that have just been appended: packets holds
// nothing else. The lock of c.conn.Begin is held.
func (c *Client) keep(t *packet.Template, packets []byte) {
	s := c.session
	s.fit(len(c.win.ids.Slots()))
	plain := s.plain[t]
	for n := t.Size(); len(packets) >= n; packets = packets[n:] {
		p := packets[:n]
		k := s.at(publishID(p))
		s.order++
		k.id, k.order = publishID(p), s.order
		if plain == nil {
			k.packet = append(k.packet[:0], p...)
			continue
		}
		// [MQTT-3.3.2-7] An alias means nothing on the next connection.
		k.packet = plain.Append(k.packet[:0], k.id)
		copy(k.packet[plain.PayloadOffset():], p[t.PayloadOffset():])
	}
}

// resendAs makes the copies of templates with a topic alias go again without it.
func (c *Client) resendAs(plain *packet.Template, aliased ...*packet.Template) {
	out := c.conn.Begin()
	if c.session.plain == nil {
		c.session.plain = make(map[*packet.Template]*packet.Template)
	}
	for _, t := range aliased {
		c.session.plain[t] = plain
	}
	c.conn.End(out)
}

// released notes that id goes on as PUBREL. The lock of c.conn.Begin is held.
func (s *Session) released(id uint16) {
	s.order++
	s.at(id).order = s.order
}

// publishID reads the packet id of an encoded PUBLISH of QoS 1 or 2.
func publishID(p []byte) uint16 {
	n := 1
	for p[n]&0x80 != 0 {
		n++
	}
	n++
	n += 2 + int(binary.BigEndian.Uint16(p[n:]))
	return binary.BigEndian.Uint16(p[n:])
}

// resend appends what waits to go again, as far as the send quota and the out
// buffer allow. Until all of it has gone, more is in flight than the window
// holds, so that nothing new overtakes it. The lock of c.conn.Begin is held.
//
// [MQTT-4.4.0-1] It begins in Connect: that, and nothing else, makes a client resend.
// [MQTT-2.3.1-3] of 3.1.1: with the ids they had.
func (c *Client) resend(out []byte) []byte {
	a := c.session
	a.pending = slices.DeleteFunc(a.pending, func(id uint16) bool { return c.win.find(id) == nil })
	for len(a.pending) > 0 && c.win.used-len(a.pending) < c.win.limit && c.conn.Room(out) > 0 {
		id := a.pending[0]
		a.pending = a.pending[1:]
		// [MQTT-4.3.3-6] After PUBREC the PUBREL goes again, never the PUBLISH.
		if c.win.find(id).State == idRelease {
			out = packet.AppendAck(out, packet.PUBREL, id)
			continue
		}
		at := len(out)
		out = append(out, a.at(id).packet...)
		// [MQTT-3.3.1-1]
		out[at] |= flagDup
	}
	return out
}

const flagDup = 0x08

// room goes on with resending before the handler may publish.
func (c *Client) room() {
	out := c.conn.Begin()
	resending := len(c.session.pending) > 0 && !c.closing
	if resending {
		out = c.resend(out)
	}
	c.conn.End(out)
	if resending {
		_ = c.conn.Flush() // the reader learns of an error
	}
	c.handler.Room()
}
