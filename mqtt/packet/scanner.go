package packet

import "fmt"

const (
	// firstBuffer is what a Scanner that was given no buffer starts with.
	firstBuffer = 4 << 10
	// keepBuffer is the most that a Scanner holds on to when it is empty.
	keepBuffer = 1 << 20
)

// A Scanner cuts control packets out of one buffer, in place:
//
//	n, err := conn.Read(s.Space())
//	s.Advance(n)
//	for {
//		f, ok, err := s.Next()
//		...
//	}
//
// The buffer grows by doubling when it is full of one unfinished packet, so
// that its size follows the bytes that came and not a length that was claimed.
// A Scanner is for one goroutine.
type Scanner struct {
	buf  []byte // buf[r:w] is unread
	r, w int
	max  int    // largest packet taken
	home []byte // the buffer given, which buf returns to
	// legal is the set of first bytes of the version spoken.
	legal *[256]bool
}

// NewScanner returns a Scanner that reads into buf, which may be nil, and
// refuses packets over maxPacketSize bytes, fixed header included; 0 stands for
// [MaxPacketSize].
func NewScanner(buf []byte, maxPacketSize int) *Scanner {
	if maxPacketSize <= 0 {
		maxPacketSize = MaxPacketSize
	}
	s := &Scanner{max: maxPacketSize, legal: &legalFirst}
	s.Attach(buf)
	return s
}

// SetMaxPacketSize changes the limit given to [NewScanner], as a broker or
// client does once CONNECT or CONNACK is known.
func (s *Scanner) SetMaxPacketSize(n int) {
	if n <= 0 {
		n = MaxPacketSize
	}
	s.max = n
}

// SetVersion tells the version that CONNECT asked for. MQTT 3.1 leaves the
// flags of most packets unused; before, and in any other version, reserved
// flags are refused.
func (s *Scanner) SetVersion(v Version) {
	s.legal = &legalFirst
	if v == V31 {
		s.legal = &legalFirst31
	}
}

// Buffered returns how many bytes are waiting, of whole and unfinished packets.
func (s *Scanner) Buffered() int { return s.w - s.r }

// Attach gives an empty Scanner a buffer to read into.
func (s *Scanner) Attach(buf []byte) {
	s.buf = buf[:cap(buf)]
	s.home = s.buf
	s.r, s.w = 0, 0
}

// Detach takes the buffer away and returns it when nothing is buffered, and
// returns nil otherwise. It ends the life of every frame. An idle connection
// needs no buffer: the next Attach, or Space, brings a new one.
func (s *Scanner) Detach() []byte {
	if s.r != s.w {
		return nil
	}
	buf := s.home
	s.buf, s.home, s.r, s.w = nil, nil, 0, 0
	return buf
}

// Space returns the free part of the buffer, never empty, to read into. It ends
// the life of every frame.
func (s *Scanner) Space() []byte {
	switch {
	case s.r == s.w:
		s.rewind()
	// A short tail would make short reads; a long one can wait.
	case s.r > 0 && len(s.buf)-s.w < len(s.buf)/4:
		s.w = copy(s.buf, s.buf[s.r:s.w])
		s.r = 0
	}
	if s.w == len(s.buf) {
		s.grow()
	}
	return s.buf[s.w:]
}

// rewind starts an empty buffer again from its beginning.
func (s *Scanner) rewind() {
	s.r, s.w = 0, 0
	if len(s.buf) > keepBuffer && len(s.buf) > len(s.home) {
		s.buf = s.home
	}
}

// grow makes room behind a full buffer: twice the size, but no more than the
// unfinished packet in it needs.
func (s *Scanner) grow() {
	size := max(2*len(s.buf), 64)
	if len(s.buf) == 0 {
		size = firstBuffer
	}
	if need := s.pending(); need > len(s.buf) {
		size = min(size, need)
	}
	buf := make([]byte, size)
	s.w = copy(buf, s.buf[s.r:s.w])
	s.r = 0
	s.buf = buf
	if len(s.home) == 0 {
		s.home = buf
	}
}

// pending returns the size of the packet that starts at the reading position,
// 0 when that is not known yet.
func (s *Scanner) pending() int {
	if s.w-s.r < 2 {
		return 0
	}
	n, size, _ := varint(s.buf[s.r+1 : s.w])
	if size == 0 {
		return 0
	}
	return 1 + size + n
}

// Advance tells that n bytes were read into the front of Space.
func (s *Scanner) Advance(n int) {
	if n < 0 || n > len(s.buf)-s.w {
		panic("packet: Advance by more than Space")
	}
	s.w += n
}

// Next returns the next whole packet; ok is false when more bytes are needed.
// The frame is valid until Space or Detach is called. An error, which is a
// *MalformedError, stays: a packet over the limit has Code
// [ReasonPacketTooLarge] and is refused as soon as its header is there.
func (s *Scanner) Next() (f Frame, ok bool, err error) {
	b := s.buf[s.r:s.w]
	if len(b) < 2 || !s.legal[b[0]] || b[1] >= 0x80 {
		return s.nextLong(b)
	}
	size := 2 + int(b[1])
	if size > s.max {
		return s.tooLarge(b)
	}
	if size > len(b) {
		return Frame{}, false, nil
	}
	s.r += size
	return Frame{First: b[0], Body: b[2:size:size]}, true, nil
}

// nextLong is Next for a packet with more than one byte of length, an
// incomplete header, or a fault.
func (s *Scanner) nextLong(b []byte) (Frame, bool, error) {
	if len(b) == 0 {
		return Frame{}, false, nil
	}
	first := b[0]
	// [MQTT-2.1.3-1], [MQTT-2.2.2-1] and [MQTT-2.2.2-2] of 3.1.1
	if !s.legal[first] {
		return Frame{}, false, &MalformedError{Type(first >> 4), 0, firstByteRule(first), ReasonMalformedPacket}
	}
	n, header, rule := varint(b[1:])
	if rule != "" {
		return Frame{}, false, &MalformedError{Type(first >> 4), 1, "remaining length: " + rule, ReasonMalformedPacket}
	}
	if header == 0 {
		return Frame{}, false, nil
	}
	header++
	size := header + n
	if size > s.max {
		return s.tooLarge(b)
	}
	if size > len(b) {
		return Frame{}, false, nil
	}
	s.r += size
	return Frame{First: first, Body: b[header:size:size]}, true, nil
}

// Peek returns what is buffered: it ends as a frame does.
func (s *Scanner) Peek() []byte { return s.buf[s.r:s.w] }

// Skip passes over the first n bytes of Peek. Next needs them to be whole packets.
func (s *Scanner) Skip(n int) {
	if n < 0 || n > s.w-s.r {
		panic("packet: Skip by more than what is buffered")
	}
	s.r += n
}

// NextAck is Next for an acknowledgement like the one before: it returns the
// identifier of the next packet if that is a whole one that starts with first,
// the first byte of a legal PUBACK, PUBREC, PUBREL or PUBCOMP, and reports
// success in the four bytes that are the same in every version. Otherwise ok is
// false, and Next has to look.
func (s *Scanner) NextAck(first byte) (id uint16, ok bool) {
	b := s.buf[s.r:s.w]
	if len(b) < 4 || b[0] != first || b[1] != 2 || b[2]|b[3] == 0 {
		return 0, false
	}
	s.r += 4
	return uint16(b[2])<<8 | uint16(b[3]), true
}

// tooLarge refuses what the peer was told not to send. [MQTT-3.1.2-24]
func (s *Scanner) tooLarge(b []byte) (Frame, bool, error) {
	return Frame{}, false, &MalformedError{
		Type(b[0] >> 4), 1, fmt.Sprintf("packet is over the Maximum Packet Size of %d B", s.max), ReasonPacketTooLarge,
	}
}
