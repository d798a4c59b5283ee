package packet

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
	"unsafe"
)

// maxString is the longest UTF-8 Encoded String or Binary Data, in bytes.
// [MQTT5 1.5.4, 1.5.6]
const maxString = 65_535

// firstByte returns the fixed header's first byte of every type but PUBLISH.
// [MQTT5 table 2-2]
func firstByte(t Type) byte {
	switch t {
	// [MQTT-3.6.1-1, MQTT-3.8.1-1, MQTT-3.10.1-1]
	case PUBREL, SUBSCRIBE, UNSUBSCRIBE:
		return byte(t)<<4 | 0x02
	}
	return byte(t) << 4
}

// legalFirst tells the first bytes a peer may send. MQTT 3.1 does not use the
// flags of any packet but PUBLISH, except that a resent PUBREL, SUBSCRIBE or
// UNSUBSCRIBE has DUP set: legalFirst31 lets all of them through. So does
// legalFirst in CONNECT, before the version is known; its decoder looks again.
var legalFirst, legalFirst31 = legalFirstBytes()

func legalFirstBytes() (all, v31 [256]bool) {
	for t := CONNECT; t <= AUTH; t++ {
		all[firstByte(t)] = true
	}
	for flags := range 16 {
		qos, dup := flags>>1&3, flags&8 != 0
		// [MQTT-3.3.1-4] [MQTT-3.3.1-2]
		all[byte(PUBLISH)<<4|byte(flags)] = qos != 3 && !(dup && qos == 0)
	}
	v31 = all
	for first := range 256 {
		t := Type(first >> 4)
		all[first] = all[first] || t == CONNECT
		v31[first] = v31[first] || t != 0 && t != PUBLISH
	}
	return all, v31
}

// firstByteRule says what is wrong with an illegal first byte.
func firstByteRule(first byte) string {
	switch t := Type(first >> 4); {
	case t == 0:
		return "packet type 0 is reserved"
	case t != PUBLISH:
		return "reserved flags of the fixed header have the wrong value [MQTT-2.1.3-1]"
	case first>>1&3 == 3:
		return "QoS 3 does not exist [MQTT-3.3.1-4]"
	}
	return "DUP must be 0 at QoS 0 [MQTT-3.3.1-2]"
}

// VarintSize returns how many bytes n takes as a Variable Byte Integer.
// [MQTT5 1.5.5]
func VarintSize(n int) int {
	switch {
	case n < 1<<7:
		return 1
	case n < 1<<14:
		return 2
	case n < 1<<21:
		return 3
	}
	return 4
}

// AppendVarint appends n, at most MaxRemainingLength, in the fewest bytes.
// [MQTT-1.5.5-1]
func AppendVarint(dst []byte, n int) []byte {
	for n >= 0x80 {
		dst = append(dst, byte(n)|0x80)
		n >>= 7
	}
	return append(dst, byte(n))
}

// varint reads a Variable Byte Integer at the start of b: its value and size.
// A size of 0 means that b ends too early, with rule set that it is malformed.
func varint(b []byte) (n, size int, rule string) {
	for i := range 4 {
		if i == len(b) {
			return 0, 0, ""
		}
		n |= int(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			if i > 0 && b[i] == 0 {
				return 0, 0, "variable byte integer is not in its shortest form [MQTT-1.5.5-1]"
			}
			return n, i + 1, ""
		}
	}
	return 0, 0, "variable byte integer is longer than four bytes"
}

// viewBytes gives the bytes of s without a copy; they must not be written.
func viewBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// A reader walks the body of one packet. The first fault sticks, and every
// read after it gives zero, so that decoders check once at the end.
type reader struct {
	body []byte
	off  int
	base int // of body in the packet
	pkt  Type
	err  *MalformedError
}

// open starts to read f, which must be a packet of type t.
func open(f Frame, t Type, v Version) reader {
	r := reader{body: f.Body, base: f.header(), pkt: t}
	switch {
	case f.Type() != t:
		r.failAt(-r.base, ReasonProtocolError, "packet is "+f.Type().String())
	case v == V31 && legalFirst31[f.First] || f.First == firstByte(t) || t == PUBLISH && legalFirst[f.First]:
	default:
		r.failAt(-r.base, ReasonMalformedPacket, firstByteRule(f.First))
	}
	return r
}

// fail records a fault at the reading position.
func (r *reader) fail(code ReasonCode, rule string) { r.failAt(r.off, code, rule) }

func (r *reader) failAt(off int, code ReasonCode, rule string) {
	if r.err == nil {
		r.err = &MalformedError{Packet: r.pkt, Offset: r.base + off, Rule: rule, Code: code}
	}
	r.off = len(r.body)
}

// close returns the first fault; bytes left over are one.
func (r *reader) close() error {
	if r.err == nil && r.off < len(r.body) {
		r.fail(ReasonMalformedPacket, "bytes follow the end of the packet")
	}
	if r.err != nil {
		return r.err
	}
	return nil
}

func (r *reader) left() int { return len(r.body) - r.off }

// take returns the next n bytes, nil where they are missing.
func (r *reader) take(n int, what string) []byte {
	if n > r.left() {
		r.fail(ReasonMalformedPacket, what+" is cut off")
		return nil
	}
	b := r.body[r.off : r.off+n : r.off+n]
	r.off += n
	return b
}

func (r *reader) byte(what string) byte {
	if b := r.take(1, what); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16(what string) uint16 {
	if b := r.take(2, what); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) uint32(what string) uint32 {
	if b := r.take(4, what); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) varint(what string) int {
	n, size, rule := varint(r.body[r.off:])
	switch {
	case rule != "":
		r.fail(ReasonMalformedPacket, what+": "+rule)
	case size == 0:
		r.fail(ReasonMalformedPacket, what+" is cut off")
	}
	if r.err != nil {
		return 0
	}
	r.off += size
	return n
}

// binary reads Binary Data, which aliases the body. [MQTT5 1.5.6]
func (r *reader) binary(what string) []byte {
	n := int(r.uint16(what))
	if r.err != nil {
		return nil
	}
	return r.take(n, what)
}

// text reads a UTF-8 Encoded String, which aliases the body. [MQTT5 1.5.4]
func (r *reader) text(what string) []byte {
	start := r.off
	b := r.binary(what)
	if rule := utf8Rule(b); rule != "" {
		r.failAt(start, ReasonMalformedPacket, what+" "+rule)
	}
	return b
}

// name reads a UTF-8 Encoded String that names something: a client, a user, a
// topic or a filter. Names may not hold what 1.5.4 says SHOULD NOT be there,
// and a receiver may refuse; other texts, such as a Reason String, may.
func (r *reader) name(what string) []byte {
	start := r.off
	b := r.text(what)
	if rule := nameRule(b); rule != "" {
		r.failAt(start, ReasonMalformedPacket, what+" "+rule)
	}
	return b
}

// packetID reads a Packet Identifier.
func (r *reader) packetID() uint16 {
	start := r.off
	id := r.uint16("packet identifier")
	// [MQTT-2.2.1-3] [MQTT-2.2.1-4], [MQTT-2.3.1-1] of 3.1.1
	if id == 0 {
		r.failAt(start, ReasonProtocolError, "packet identifier "+ruleID)
	}
	return id
}

// reason reads a reason code that r's packet may carry.
func (r *reader) reason() ReasonCode {
	start := r.off
	c := ReasonCode(r.byte("reason code"))
	if r.err == nil && !validReasons[r.pkt].has(c) {
		// The code tells what the sender meant, whether it may say so or not.
		r.failAt(start, ReasonProtocolError, fmt.Sprintf("%s: 0x%02X, %s", ruleReason, byte(c), c))
	}
	return c
}

const (
	ruleID     = "must not be 0 [MQTT-2.2.1-3]"
	ruleReason = "reason code may not stand in this packet"
)

// utf8Rule says why b may not be a UTF-8 Encoded String; "" when it may.
// [MQTT-1.5.4-3], [MQTT-1.5.3-3] of 3.1.1: a U+FEFF in front is a character like
// any other.
func utf8Rule(b []byte) string {
	ascii, special := scanText(b)
	switch {
	// [MQTT-1.5.4-1], [MQTT-1.5.3-1] of 3.1.1
	case !ascii && !utf8.Valid(b):
		return "is not well-formed UTF-8 [MQTT-1.5.4-1]"
	// [MQTT-1.5.4-2], [MQTT-1.5.3-2] of 3.1.1
	case special && hasByte(b, 0):
		return "holds U+0000 [MQTT-1.5.4-2]"
	}
	return ""
}

// nameRule says why b, which is UTF-8, may not be a name.
func nameRule(b []byte) string {
	for len(b) > 0 {
		c, n := utf8.DecodeRune(b)
		b = b[n:]
		switch {
		case c < 0x20 || c >= 0x7f && c < 0xa0:
			return "holds a control character [MQTT5 1.5.4]"
		case c&0xfffe == 0xfffe || c >= 0xfdd0 && c <= 0xfdef:
			return "holds a Unicode non-character [MQTT5 1.5.4]"
		}
	}
	return ""
}

func hasByte(b []byte, c byte) bool {
	for _, x := range b {
		if x == c {
			return true
		}
	}
	return false
}

// scanText tells whether b is all ASCII, and whether it holds a byte that a
// topic name may not: a control character, '+', '#' or DEL. It looks at eight
// bytes at a time, because every PUBLISH pays for it.
func scanText(b []byte) (ascii, special bool) {
	var high, hit uint64
	for ; len(b) >= 8; b = b[8:] {
		h, s := scanWord(binary.LittleEndian.Uint64(b))
		high |= h
		hit |= s
	}
	for _, c := range b {
		high |= uint64(c) & 0x80
		if c < 0x20 || c == '+' || c == '#' || c == 0x7f {
			hit = 1
		}
	}
	return high == 0, hit != 0
}

// scanWord returns the high bits of w's bytes, and a hit other than 0 when one
// of them is special: (x-n)&^x has a high bit set when a byte of x is below n,
// and x^c is zero where x is c.
func scanWord(w uint64) (high, hit uint64) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	plus, hash, del := w^ones*'+', w^ones*'#', w^ones*0x7f
	hit = (w-ones*0x20)&^w | (plus-ones)&^plus | (hash-ones)&^hash | (del-ones)&^del
	return w & highs, hit & highs
}

// A writer appends one packet to dst. The first fault sticks.
type writer struct {
	dst   []byte
	start int // of the packet in dst
	pkt   Type
	err   *InvalidError
}

// begin starts a packet; one byte is kept for the remaining length.
func begin(dst []byte, t Type) writer {
	return writer{dst: append(dst, firstByte(t), 0), start: len(dst), pkt: t}
}

func (w *writer) fail(field, rule string) {
	if w.err == nil {
		w.err = &InvalidError{Packet: w.pkt, Field: field, Rule: rule}
	}
}

// end fills in the remaining length and returns the extended slice, or the
// first len(dst) bytes as they were and the first fault.
func (w *writer) end() ([]byte, error) {
	if len(w.dst)-w.start-2 > MaxRemainingLength {
		w.fail("remaining length", "is over 268435455; send less in one packet")
	}
	if w.err != nil {
		return w.dst[:w.start], w.err
	}
	w.patchLength(w.start + 1)
	return w.dst, nil
}

// patchLength writes at, where one byte was kept, the number of bytes that
// follow it as a Variable Byte Integer, and moves them up if it takes more.
func (w *writer) patchLength(at int) {
	n := len(w.dst) - at - 1
	if extra := VarintSize(n) - 1; extra > 0 {
		w.dst = append(w.dst, "\x00\x00\x00"[:extra]...)
		copy(w.dst[at+1+extra:], w.dst[at+1:at+1+n])
	}
	AppendVarint(w.dst[:at], n)
}

func (w *writer) byte(b byte)     { w.dst = append(w.dst, b) }
func (w *writer) uint16(n uint16) { w.dst = binary.BigEndian.AppendUint16(w.dst, n) }
func (w *writer) uint32(n uint32) { w.dst = binary.BigEndian.AppendUint32(w.dst, n) }

func (w *writer) binary(field string, b []byte) {
	if len(b) > maxString {
		w.fail(field, "is over 65535 bytes")
		return
	}
	w.uint16(uint16(len(b)))
	w.dst = append(w.dst, b...)
}

func (w *writer) text(field, s string) {
	if rule := utf8Rule(viewBytes(s)); rule != "" {
		w.fail(field, rule)
	}
	w.binary(field, viewBytes(s))
}

// name appends what [reader.name] reads.
func (w *writer) name(field, s string) {
	w.text(field, s)
	if rule := nameRule(viewBytes(s)); rule != "" {
		w.fail(field, rule)
	}
}

// packetID appends a Packet Identifier.
func (w *writer) packetID(id uint16) {
	// [MQTT-2.2.1-3] [MQTT-2.2.1-4]
	if id == 0 {
		w.fail("packet identifier", ruleID)
	}
	w.uint16(id)
}

// reason appends a reason code that w's packet may carry.
func (w *writer) reason(c ReasonCode) {
	if !validReasons[w.pkt].has(c) {
		w.fail("reason code", ruleReason)
	}
	w.byte(byte(c))
}
