package packet

import "fmt"

const (
	// firstBuffer is the size of the first buffer of a Scanner that was given none.
	firstBuffer = 4 << 10
	// keepBuffer is the largest buffer that an empty Scanner keeps.
	keepBuffer = 1 << 20
)

// A Scanner splits a stream of bytes into control packets. It returns them as parts of
// its buffer, without copying:
//
//	n, err := conn.Read(s.Space())
//	s.Advance(n)
//	for {
//		f, ok, err := s.Next()
//		...
//	}
//
// When one incomplete packet fills the buffer, it is doubled: memory grows with the
// bytes received, not with the length that a peer announces. A Scanner is for one
// goroutine.
type Scanner struct {
	buf   []byte // buf[r:w] is unread
	r, w  int
	max   int        // largest packet accepted
	home  []byte     // the buffer given; buf is this or, for a large packet, another one
	legal *[256]bool // the first bytes allowed in the protocol version
}

// NewScanner returns a Scanner with the buffer buf, which may be nil. It rejects packets
// of more than maxPacketSize bytes, fixed header included; 0 means [MaxPacketSize].
func NewScanner(buf []byte, maxPacketSize int) *Scanner {
	if maxPacketSize <= 0 {
		maxPacketSize = MaxPacketSize
	}
	s := &Scanner{max: maxPacketSize, legal: &legalFirst}
	s.Attach(buf)
	return s
}

// SetMaxPacketSize changes the limit given to [NewScanner], for callers that learn it
// from CONNECT or CONNACK.
func (s *Scanner) SetMaxPacketSize(n int) {
	if n <= 0 {
		n = MaxPacketSize
	}
	s.max = n
}

// SetVersion sets the version of the connection. MQTT 3.1 does not use the flags of most
// packets, so any are accepted. In all other versions, and before SetVersion, reserved
// flags with a wrong value are an error.
func (s *Scanner) SetVersion(v Version) {
	s.legal = &legalFirst
	if v == V31 {
		s.legal = &legalFirst31
	}
}

// Buffered returns the number of unread bytes, including those of an incomplete packet.
func (s *Scanner) Buffered() int { return s.w - s.r }

// Attach gives an empty Scanner a buffer.
func (s *Scanner) Attach(buf []byte) {
	s.buf = buf[:cap(buf)]
	s.home = s.buf
	s.r, s.w = 0, 0
}

// Detach removes the buffer and returns it, so that an idle connection needs none. If
// there are unread bytes it returns nil. All frames become invalid. Attach or Space give
// the Scanner a new buffer.
func (s *Scanner) Detach() []byte {
	if s.r != s.w {
		return nil
	}
	buf := s.home
	s.buf, s.home, s.r, s.w = nil, nil, 0, 0
	return buf
}

// Space returns the free part of the buffer, to read into. It is never empty. All frames
// become invalid.
func (s *Scanner) Space() []byte {
	switch {
	case s.r == s.w:
		s.rewind()
	// Move the unread bytes to the front if the free part is so small that reads would
	// be short.
	case s.r > 0 && len(s.buf)-s.w < len(s.buf)/4:
		s.w = copy(s.buf, s.buf[s.r:s.w])
		s.r = 0
	}
	if s.w == len(s.buf) {
		s.grow()
	}
	return s.buf[s.w:]
}

// rewind makes an empty buffer be filled from its beginning.
func (s *Scanner) rewind() {
	s.r, s.w = 0, 0
	if len(s.buf) > keepBuffer && len(s.buf) > len(s.home) {
		s.buf = s.home
	}
}

// grow doubles a full buffer, but to no more than the incomplete packet in it needs.
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

// pending returns the size of the next packet, or 0 if that is not yet known.
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

// Advance says that n bytes have been read into the start of Space.
func (s *Scanner) Advance(n int) {
	if n < 0 || n > len(s.buf)-s.w {
		panic("packet: Advance by more than Space")
	}
	s.w += n
}

// Next returns the next whole packet. ok is false if more bytes are needed. The frame is
// valid until the next call of Space or Detach. After an error, which is a
// *MalformedError, every call returns that error. A packet above the limit is an error
// with Code [ReasonPacketTooLarge] as soon as its header has been received.
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

// nextLong is Next for a packet whose length takes several bytes, for an incomplete
// header, and for faults.
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

// Peek returns the unread bytes. They are valid as long as a frame.
func (s *Scanner) Peek() []byte { return s.buf[s.r:s.w] }

// Skip marks the first n bytes of Peek as read. If Next is used after it, they must be
// whole packets.
func (s *Scanner) Skip(n int) {
	if n < 0 || n > s.w-s.r {
		panic("packet: Skip by more than what is buffered")
	}
	s.r += n
}

// NextAck is a fast Next for runs of acknowledgements. first is the first byte of a legal
// PUBACK, PUBREC, PUBREL or PUBCOMP. If the next packet is whole, starts with first and
// has the four bytes that mean success in every version, NextAck returns its packet
// identifier. Otherwise ok is false and the caller must use Next.
func (s *Scanner) NextAck(first byte) (id uint16, ok bool) {
	b := s.buf[s.r:s.w]
	if len(b) < 4 || b[0] != first || b[1] != 2 || b[2]|b[3] == 0 {
		return 0, false
	}
	s.r += 4
	return uint16(b[2])<<8 | uint16(b[3]), true
}

// tooLarge is the error of a packet above the limit.
// [MQTT-3.1.2-24]
func (s *Scanner) tooLarge(b []byte) (Frame, bool, error) {
	return Frame{}, false, &MalformedError{
		Type(b[0] >> 4), 1, fmt.Sprintf("packet is larger than the Maximum Packet Size of %d B", s.max), ReasonPacketTooLarge,
	}
}
