package packet

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
	"unsafe"
)

// maxString is the largest size in bytes of a UTF-8 Encoded String or Binary Data.
// [MQTT5 1.5.4, 1.5.6]
const maxString = 65_535

// firstByte returns the first byte of the fixed header of any type but PUBLISH.
// [MQTT5 table 2-2]
func firstByte(t Type) byte {
	switch t {
	// [MQTT-3.6.1-1, MQTT-3.8.1-1, MQTT-3.10.1-1]
	case PUBREL, SUBSCRIBE, UNSUBSCRIBE:
		return byte(t)<<4 | 0x02
	}
	return byte(t) << 4
}

// legalFirst says which first bytes a peer may send, legalFirst31 which ones in MQTT
// 3.1. That version uses flags only in PUBLISH, and DUP in a resent PUBREL, SUBSCRIBE or
// UNSUBSCRIBE, so legalFirst31 allows any flags in all packets but PUBLISH. legalFirst
// allows any flags in CONNECT: its decoder checks them once it knows the version.
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

// firstByteRule returns the rule that an illegal first byte breaks.
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

// VarintSize returns the size in bytes of n as a Variable Byte Integer. [MQTT5 1.5.5]
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

// AppendVarint appends n, at most MaxRemainingLength, as a Variable Byte Integer of the
// fewest bytes. [MQTT-1.5.5-1]
func AppendVarint(dst []byte, n int) []byte {
	for n >= 0x80 {
		dst = append(dst, byte(n)|0x80)
		n >>= 7
	}
	return append(dst, byte(n))
}

// varint decodes the Variable Byte Integer at the start of b and returns its value and
// size. A size of 0 means that it is malformed if rule is set, otherwise that b ends too
// early.
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

// viewBytes returns the bytes of s without copying them. They must not be changed.
func viewBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// A reader decodes the body of one packet. It keeps the first fault, after which every
// read returns a zero value, so that a decoder needs to check for faults only once, in
// close.
type reader struct {
	body []byte
	off  int
	base int // offset of body in the packet
	pkt  Type
	err  *MalformedError
}

// open returns a reader of f, which must be a packet of type t.
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

// fail records a fault at the current offset.
func (r *reader) fail(code ReasonCode, rule string) { r.failAt(r.off, code, rule) }

// failAt records a fault at offset off of the body.
func (r *reader) failAt(off int, code ReasonCode, rule string) {
	if r.err == nil {
		r.err = &MalformedError{Packet: r.pkt, Offset: r.base + off, Rule: rule, Code: code}
	}
	r.off = len(r.body)
}

// close returns the first fault. Unread bytes are a fault too.
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

// bytes returns the next n bytes, or nil if there are fewer. what names the field.
func (r *reader) bytes(n int, what string) []byte {
	if n > r.left() {
		r.fail(ReasonMalformedPacket, what+" is cut off")
		return nil
	}
	b := r.body[r.off : r.off+n : r.off+n]
	r.off += n
	return b
}

func (r *reader) byte(what string) byte {
	if b := r.bytes(1, what); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16(what string) uint16 {
	if b := r.bytes(2, what); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) uint32(what string) uint32 {
	if b := r.bytes(4, what); b != nil {
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

// binary reads Binary Data. The result points into the body. [MQTT5 1.5.6]
func (r *reader) binary(what string) []byte {
	n := int(r.uint16(what))
	if r.err != nil {
		return nil
	}
	return r.bytes(n, what)
}

// text reads a UTF-8 Encoded String. The result points into the body. [MQTT5 1.5.4]
func (r *reader) text(what string) []byte {
	start := r.off
	b := r.binary(what)
	if rule := utf8Rule(b); rule != "" {
		r.failAt(start, ReasonMalformedPacket, what+" "+rule)
	}
	return b
}

// name reads a UTF-8 Encoded String that is a client identifier, user name, topic or
// filter. Section 1.5.4 lists characters that SHOULD NOT be used and that a receiver
// may reject: they are rejected in names, but allowed in other texts, such as a Reason
// String.
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

// reason reads a reason code and checks that the packet may have it.
func (r *reader) reason() ReasonCode {
	start := r.off
	c := ReasonCode(r.byte("reason code"))
	if r.err == nil && !validReasons[r.pkt].has(c) {
		// Name the code: it says what the sender meant, even if it is not allowed here.
		r.failAt(start, ReasonProtocolError, fmt.Sprintf("%s: 0x%02X, %s", ruleReason, byte(c), c))
	}
	return c
}

const (
	ruleID     = "must not be 0 [MQTT-2.2.1-3]"
	ruleReason = "reason code is not allowed in this packet"
)

// utf8Rule returns the rule that b breaks as a UTF-8 Encoded String, or "".
// [MQTT-1.5.4-3], [MQTT-1.5.3-3] of 3.1.1: a leading U+FEFF is a character like any
// other.
func utf8Rule(b []byte) string {
	ascii, special := scanText(b)
	switch {
	// [MQTT-1.5.4-1], [MQTT-1.5.3-1] of 3.1.1
	case !ascii && !utf8.Valid(b):
		return "is not well-formed UTF-8 [MQTT-1.5.4-1]"
	// [MQTT-1.5.4-2], [MQTT-1.5.3-2] of 3.1.1
	case special && hasByte(b, 0):
		return "contains U+0000 [MQTT-1.5.4-2]"
	}
	return ""
}

// nameRule returns the rule that b, which is UTF-8, breaks as a name, or "".
func nameRule(b []byte) string {
	for len(b) > 0 {
		c, n := utf8.DecodeRune(b)
		b = b[n:]
		switch {
		case c < 0x20 || c >= 0x7f && c < 0xa0:
			return "contains a control character [MQTT5 1.5.4]"
		case c&0xfffe == 0xfffe || c >= 0xfdd0 && c <= 0xfdef:
			return "contains a Unicode non-character [MQTT5 1.5.4]"
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

// scanText reports whether b is ASCII, and whether it contains a byte that a topic name
// must not: a control character, '+', '#' or DEL. It checks eight bytes at a time,
// because it runs for every PUBLISH.
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

// scanWord returns the high bits of the bytes of w, and a hit that is not 0 if one of
// them is special. It uses that (x-n)&^x has a high bit set if a byte of x is below n,
// and that a byte of x^c is 0 if that byte of x is c.
func scanWord(w uint64) (high, hit uint64) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	plus, hash, del := w^ones*'+', w^ones*'#', w^ones*0x7f
	hit = (w-ones*0x20)&^w | (plus-ones)&^plus | (hash-ones)&^hash | (del-ones)&^del
	return w & highs, hit & highs
}

// A writer appends one packet to dst. It keeps the first fault.
type writer struct {
	dst   []byte
	start int // offset of the packet in dst
	pkt   Type
	err   *InvalidError
}

// begin starts a packet, with one byte reserved for the remaining length.
func begin(dst []byte, t Type) writer {
	return writer{dst: append(dst, firstByte(t), 0), start: len(dst), pkt: t}
}

// fail records a fault of a field.
func (w *writer) fail(field, rule string) {
	if w.err == nil {
		w.err = &InvalidError{Packet: w.pkt, Field: field, Rule: rule}
	}
}

// end sets the remaining length and returns dst with the packet. After a fault it
// returns dst without the packet, and the fault.
func (w *writer) end() ([]byte, error) {
	if len(w.dst)-w.start-2 > MaxRemainingLength {
		w.fail("remaining length", "is larger than 268435455; send less in one packet")
	}
	if w.err != nil {
		return w.dst[:w.start], w.err
	}
	w.patchLength(w.start + 1)
	return w.dst, nil
}

// patchLength sets the reserved byte at offset at to the number of bytes that follow it,
// as a Variable Byte Integer. If that takes several bytes, it moves the following ones.
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
		w.fail(field, "is longer than 65535 bytes")
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

// name appends a text that [reader.name] accepts.
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

// reason appends a reason code after checking that the packet may have it.
func (w *writer) reason(c ReasonCode) {
	if !validReasons[w.pkt].has(c) {
		w.fail("reason code", ruleReason)
	}
	w.byte(byte(c))
}
