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

// ErrSessionInUse means that another connection uses the [Session].
var ErrSessionInUse = errors.New("session: another connection of this process still uses it; close that one first")

// ErrSessionPresent means that the broker has a session for the client identifier
// but this client has none. [MQTT-3.2.2-4] It is the cause of a [ProtocolError].
var ErrSessionPresent = errors.New("session present, but this client has none; connect once with a clean start")

// A Session is the client's part of an MQTT session, which outlives a connection:
// the unacknowledged QoS 1 and 2 messages, with their bytes, and the ids of inbound
// QoS 2 messages. [MQTT5 4.1] Topic aliases and unanswered SUBSCRIBEs are not part
// of it. Make one with [NewSession], pass it to [Connect] in [Config.Session], and
// after that connection has ended pass it to the next Connect.
type Session struct {
	mu     sync.Mutex // lock it before that of conn.Begin
	inUse  bool       // a connection has acquired it
	client *Client    // if set, its win and inbound2 are used, not win and in2
	win    window
	in2    idSet

	// Guarded by the lock of the client's conn.Begin.
	established bool   // the broker has had the session
	kept        []kept // by slot of the window
	order       uint64 // of the last packet
	// plain maps a template with a topic alias to the one to resend with.
	plain map[*packet.Template]*packet.Template
}

// kept is the packet to resend for a packet id in flight.
type kept struct {
	id     uint16
	order  uint64 // in which the PUBLISH, or the PUBREL that replaces it, was first sent
	packet []byte
}

// NewSession returns an empty Session.
func NewSession() *Session { return new(Session) }

// AdoptSession returns the Session of a client whose process has ended without
// messages in flight. The broker may still have its subscriptions, and messages
// queued for them.
func AdoptSession() *Session { return &Session{established: true} }

// InFlight returns the number of QoS 1 and 2 messages without their last
// acknowledgement.
func (s *Session) InFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		return s.win.used
	}
	out := s.client.conn.Begin()
	n := s.client.win.used
	s.client.conn.End(out)
	return n
}

// Resumed says what became of a [Session] when a connection began.
type Resumed struct {
	// Present is true if the broker had the session too.
	Present bool
	// Resent is the number of messages in flight that are resent, as PUBLISH or as
	// PUBREL, with their packet ids.
	Resent int
	// Dropped are the stamps, in order, of messages in flight that will not be
	// acknowledged, because the broker no longer had the session or because of a
	// clean start. The caller may publish them again as new messages.
	Dropped []int64
}

// Resumed returns what became of [Config.Session] when this connection began.
// Without a Session only Present is set.
func (c *Client) Resumed() Resumed {
	if c.session == nil {
		return Resumed{Present: c.connack.SessionPresent}
	}
	return c.session.resumed
}

// attachment is a Session with what its current connection needs. All fields but
// resumed are guarded by the lock of conn.Begin.
type attachment struct {
	*Session
	resumed Resumed
	pending []uint16 // packet ids still to be resent
	carried int      // inbound QoS 2 messages of earlier connections
}

// acquire reserves the session for a new connection.
func (s *Session) acquire() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse {
		return ErrSessionInUse
	}
	s.inUse = true
	return nil
}

func (s *Session) release() {
	s.mu.Lock()
	s.inUse, s.client = false, nil
	s.mu.Unlock()
}

// resume attaches the session after CONNACK and begins to resend.
func (c *Client) resume() error {
	a := c.session
	// [MQTT-3.2.2-4] 3.1.1 has no such rule, and 3.1 no Session Present.
	if c.cfg.Version == packet.V5 && c.connack.SessionPresent && (a == nil || !a.established) {
		return c.fail(&ProtocolError{packet.ReasonProtocolError, ErrSessionPresent})
	}
	if a == nil {
		return nil
	}
	a.resumed.Present = c.connack.SessionPresent
	if c.cfg.Version == packet.V31 {
		// CONNACK of 3.1 does not say: assume that a broker keeps its sessions.
		a.resumed.Present = a.established && !c.cfg.CleanStart
	}
	if err := c.checkResend(); err != nil {
		return err
	}
	c.attach()
	_ = c.conn.Flush() // on error the reader ends and detaches the session
	return nil
}

// checkResend enforces the limits of this CONNACK, which may differ from those of
// the last, on the messages in flight. After a [*LimitError] the session keeps them.
func (c *Client) checkResend() error {
	a := c.session
	if !a.resumed.Present {
		return nil // nothing is resent
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
			return fmt.Errorf("resend message %d of the session: %w", id, err)
		}
	}
	return nil
}

// attach moves the session's state into c and begins to resend.
func (c *Client) attach() {
	a := c.session
	a.mu.Lock()
	defer a.mu.Unlock()
	out := c.conn.Begin()
	// [MQTT-3.2.2-5, MQTT-3.1.2-4], [MQTT-3.1.2-6] of 3.1.1
	if !a.resumed.Present {
		a.resumed.Dropped = a.discard()
	}
	a.client, a.established = c, true
	limit := c.win.limit
	c.win, c.inbound2 = a.win, a.in2
	c.win.limit, a.carried = limit, c.inbound2.n
	a.pending = a.inFlight(&c.win)
	a.resumed.Resent = len(a.pending)
	c.conn.End(c.resend(out))
}

// carriedOver returns the number of inbound QoS 2 messages of earlier connections.
// The broker's send quota for this connection need not count them. [MQTT5 4.9]
func (c *Client) carriedOver() int {
	if c.session == nil {
		return 0
	}
	return c.session.carried
}

// detach returns the state to the session when the connection has ended, and stops
// all further appends.
func (c *Client) detach() {
	a := c.session
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
	}
	out := c.conn.Begin()
	c.closing = true
	if a != nil {
		// An unanswered SUBSCRIBE is not part of the session.
		c.win.dropControl()
		// [MQTT-3.1.2-23]
		a.win, a.in2, a.plain = c.win, c.inbound2, nil
		a.inUse, a.client = false, nil
	}
	c.conn.End(out)
}

// discard empties the session and returns the stamps of the messages in flight.
func (s *Session) discard() []int64 {
	var stamps []int64
	for _, id := range s.inFlight(&s.win) {
		stamps = append(stamps, s.win.find(id).Value)
	}
	s.win, s.in2 = window{}, idSet{}
	return stamps
}

// inFlight returns the ids of w's messages in the order in which their PUBLISH or
// PUBREL was first sent.
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

// at returns the place of an id in kept.
func (s *Session) at(id uint16) *kept { return &s.kept[int(id)&(len(s.kept)-1)] }

// fit grows kept to the number of slots of the window.
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

// keep stores the copies of t that have just been appended. packets holds these and
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
		// [MQTT-3.3.2-7] An alias does not outlive its connection: keep the topic.
		k.packet = plain.Append(k.packet[:0], k.id)
		copy(k.packet[plain.PayloadOffset():], p[t.PayloadOffset():])
	}
}

// resendAs makes copies of the aliased templates be resent as copies of plain.
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

// released records that PUBREL has replaced the PUBLISH of id. The lock of
// c.conn.Begin is held.
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

// resend appends pending packets, as far as the send quota and the out buffer
// allow. Pending packets already count as in flight, so that no new message gets
// ahead of them while they wait for the quota. The lock of c.conn.Begin is held.
//
// [MQTT-4.4.0-1] Only Connect begins to resend.
// [MQTT-2.3.1-3] of 3.1.1: resent packets keep their ids.
func (c *Client) resend(out []byte) []byte {
	a := c.session
	a.pending = slices.DeleteFunc(a.pending, func(id uint16) bool { return c.win.find(id) == nil })
	for len(a.pending) > 0 && c.win.used-len(a.pending) < c.win.limit && c.conn.Room(out) > 0 {
		id := a.pending[0]
		a.pending = a.pending[1:]
		// [MQTT-4.3.3-6] After PUBREC the PUBREL is resent, never the PUBLISH.
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

// room resends pending packets before it lets the handler publish.
func (c *Client) room() {
	out := c.conn.Begin()
	resending := len(c.session.pending) > 0 && !c.closing
	if resending {
		out = c.resend(out)
	}
	c.conn.End(out)
	if resending {
		_ = c.conn.Flush() // on error the reader ends
	}
	c.handler.Room()
}
