package mqtttest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// A Probe is one control packet, and how the standard wants it treated. Probes are
// made from copies of the standard's tables below, not from those of the codec, so
// that one mistake cannot be in both.
type Probe struct {
	Name   string
	Packet []byte
	// Codes are the MQTT 5 reason codes with which the receiver may end the
	// connection. 0 means that it ends without a DISCONNECT, as always in 3.1.1.
	// Without codes the connection stays open.
	Codes []byte
}

// Reason codes that probes expect.
const (
	malformed = 0x81
	protocol  = 0x82
	badAlias  = 0x94
)

const (
	textMark = "\x00\x01a"
	probeID  = "\x00\x01"
)

// properties5 is table 2-4 of MQTT 5: identifier, type, and the packets that may
// carry it. C is CONNECT, W the Will Properties, N CONNACK, P PUBLISH, A PUBACK,
// R PUBREC, L PUBREL, K PUBCOMP, S SUBSCRIBE, B SUBACK, U UNSUBSCRIBE, Q
// UNSUBACK, D DISCONNECT, H AUTH.
const properties5 = `
1  bool   PW
2  four   PW
3  text   PW
8  text   PW
9  binary PW
11 varint PS
17 four   CND
18 text   N
19 two    N
21 text   CNH
22 binary CNH
23 bool   C
24 four   W
25 bool   C
26 text   N
28 text   ND
31 text   NARLKBQDH
33 two    CN
34 two    CN
35 two    P
36 bool   N
37 bool   N
38 pair   CNPWARLKSBUQDH
39 four   CN
40 bool   N
41 bool   N
42 bool   N`

// notZero are properties that must not be 0: 3.8.2.1.2, 3.1.2.11.3,
// 3.1.2.11.4 and 3.3.2.3.4.
var notZero = []byte{11, 33, 39, 35}

type property5 struct {
	id    byte
	kind  string
	where string
}

func table24() (list []property5) {
	for line := range strings.Lines(strings.TrimSpace(properties5)) {
		f := strings.Fields(line)
		var id byte
		_, _ = fmt.Sscan(f[0], &id)
		list = append(list, property5{id, f[1], f[2]})
	}
	return list
}

// good is the property with a valid value.
func (p property5) good() string { return string(p.id) + p.value(1) }

func (p property5) value(n byte) string {
	switch p.kind {
	case "bool", "varint":
		return string([]byte{n})
	case "two":
		return string([]byte{0, n})
	case "four":
		return string([]byte{0, 0, n, n})
	case "pair":
		return textMark + textMark
	}
	return textMark
}

// A carrier is a packet that can have properties.
type carrier struct {
	letter string
	first  byte
	before string // of the property length in the body
	after  string
	plain  bool // of 3.1.1: no properties
	// good are the lengths of the body without properties that are packets too,
	// where it is cut off; protocol those that lack what must be there.
	good, protocol []int
}

// carriers are the packets that a client sends, and those that a server does.
// Their identifiers are probeID.
var carriers = map[string][]carrier{
	"client": {
		{letter: "C", first: 0x10, before: "\x00\x04MQTT\x05\x02\x00\x3c", after: textMark},
		{letter: "W", first: 0x10, before: "\x00\x04MQTT\x05\x06\x00\x3c\x00" + textMark, after: textMark + textMark},
		{letter: "P", first: 0x32, before: textMark + probeID, after: "x", good: []int{6}},
		{letter: "A", first: 0x40, before: probeID + "\x00", good: []int{2, 3}},
		{letter: "R", first: 0x50, before: probeID + "\x00", good: []int{2, 3}},
		{letter: "L", first: 0x62, before: probeID + "\x00", good: []int{2, 3}},
		{letter: "K", first: 0x70, before: probeID + "\x00", good: []int{2, 3}},
		{letter: "S", first: 0x82, before: probeID, after: textMark + "\x01", protocol: []int{3}},
		{letter: "U", first: 0xa2, before: probeID, after: textMark, protocol: []int{3}},
		{letter: "D", first: 0xe0, before: "\x00", good: []int{0, 1}},
	},
	"server": {
		{letter: "N", first: 0x20, before: "\x00\x00"},
		{letter: "P", first: 0x32, before: textMark + probeID, after: "x", good: []int{6}},
		{letter: "A", first: 0x40, before: probeID + "\x00", good: []int{2, 3}},
		{letter: "R", first: 0x50, before: probeID + "\x00", good: []int{2, 3}},
		{letter: "L", first: 0x62, before: probeID + "\x00", good: []int{2, 3}},
		{letter: "K", first: 0x70, before: probeID + "\x00", good: []int{2, 3}},
		{letter: "B", first: 0x90, before: probeID, after: "\x00", protocol: []int{3}},
		// 3.11.3 demands codes, but does not call their absence an error.
		{letter: "Q", first: 0xb0, before: probeID, after: "\x00", good: []int{3}},
		{letter: "D", first: 0xe0, before: "\x00", good: []int{0, 1}},
	},
	"client 3.1.1": {
		{plain: true, letter: "C", first: 0x10, before: "\x00\x04MQTT\x04\x02\x00\x3c", after: textMark},
		{plain: true, letter: "W", first: 0x10, before: "\x00\x04MQTT\x04\x06\x00\x3c", after: textMark + textMark + textMark},
		{plain: true, letter: "P", first: 0x32, before: textMark + probeID, after: "x", good: []int{5}},
		{plain: true, letter: "A", first: 0x40, before: probeID},
		{plain: true, letter: "R", first: 0x50, before: probeID},
		{plain: true, letter: "L", first: 0x62, before: probeID},
		{plain: true, letter: "K", first: 0x70, before: probeID},
		{plain: true, letter: "S", first: 0x82, before: probeID, after: textMark + "\x01"},
		{plain: true, letter: "U", first: 0xa2, before: probeID, after: textMark},
		{plain: true, letter: "-", first: 0xc0},
		{plain: true, letter: "D", first: 0xe0},
	},
	"server 3.1.1": {
		{plain: true, letter: "N", first: 0x20, before: "\x00\x00"},
		{plain: true, letter: "P", first: 0x32, before: textMark + probeID, after: "x", good: []int{5}},
		{plain: true, letter: "A", first: 0x40, before: probeID},
		{plain: true, letter: "R", first: 0x50, before: probeID},
		{plain: true, letter: "L", first: 0x62, before: probeID},
		{plain: true, letter: "K", first: 0x70, before: probeID},
		{plain: true, letter: "B", first: 0x90, before: probeID, after: "\x00"},
		{plain: true, letter: "Q", first: 0xb0, before: probeID},
		{plain: true, letter: "-", first: 0xd0},
	},
}

// packet makes a packet of c with properties and a property length, which may be
// wrong.
func (c carrier) packet(props string, longer int) []byte {
	if c.plain {
		return frame(c.first, c.before+c.after)
	}
	return frame(c.first, c.before+string(varint5(len(props)+longer))+props+c.after)
}

func frame(first byte, body string) []byte {
	return append(append([]byte{first}, varint5(len(body))...), body...)
}

func varint5(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// PropertyProbes puts every property into every packet of side, which is
// "client" or "server": as it may be, twice, cut off, with values out of its
// range; and properties that do not exist.
func PropertyProbes(side string) (list []Probe) {
	for _, c := range carriers[side] {
		add := func(name string, packet []byte, codes ...byte) {
			list = append(list, Probe{c.letter + " " + name, packet, codes})
		}
		for _, p := range table24() {
			name := fmt.Sprintf("property %d", p.id)
			good := p.good()
			if !strings.Contains(p.where, c.letter) {
				// 2.2.2.2: an identifier not valid for its packet type is malformed.
				add(name+" not allowed", c.packet(good, 0), malformed)
				continue
			}
			c.allowed(side, p, name, add)
		}
		for _, id := range []int{0, 4, 5, 6, 7, 10, 12, 16, 20, 27, 29, 30, 32, 43, 127, 128, 255, 16384} {
			add(fmt.Sprintf("property %d unknown", id), c.packet(string(varint5(id))+"\x01", 0), malformed)
		}
		add("property length cut off", frame(c.first, c.before+"\x80"), malformed)
		add("property length not minimal", frame(c.first, c.before+"\x80\x00"+c.after), malformed)
		add("property identifier not minimal", c.packet("\xa6\x00"+textMark+textMark, 0), malformed)
	}
	return list
}

// allowed makes the probes of a property that c may carry.
func (c carrier) allowed(side string, p property5, name string, add func(string, []byte, ...byte)) {
	good := p.good()
	verdict := c.verdict(side, p)
	add(name, c.packet(good, 0), verdict...)
	twice := []byte{protocol}
	if p.id == 38 || p.id == 11 && c.letter == "P" && side == "server" {
		twice = nil
	}
	add(name+" twice", c.packet(good+good, 0), twice...)
	for n := 1; n < len(good); n++ {
		add(fmt.Sprintf("%s cut to %d", name, n), c.packet(good[:n], 0), malformed)
	}
	add(name+" beyond the properties", c.packet(good, -1), malformed)
	zero := verdict
	switch {
	case p.id == 35:
		zero = []byte{badAlias, protocol}
	case slices.Contains(notZero, p.id):
		zero = []byte{protocol}
	}
	switch p.kind {
	case "bool":
		add(name+" = 0", c.packet(string(p.id)+p.value(0), 0), verdict...)
		add(name+" = 2", c.packet(string(p.id)+p.value(2), 0), protocol)
		add(name+" = 255", c.packet(string(p.id)+"\xff", 0), protocol)
	case "two", "four", "varint":
		add(name+" = 0", c.packet(string(p.id)+p.value(0), 0), zero...)
	case "text", "pair":
		tail := ""
		if p.kind == "pair" {
			tail = textMark
		}
		for _, bad := range []string{"\x00\x01\x00", "\x00\x03\xed\xa0\x80", "\x00\x01\xff", "\x00\x02\xc0\x80"} {
			add(fmt.Sprintf("%s with %x", name, bad[2:]), c.packet(string(p.id)+bad+tail, 0), malformed)
		}
	}
	if p.id == 8 {
		// [MQTT-3.3.2-14]
		add(name+" with a wildcard", c.packet("\x08\x00\x03a/#", 0), malformed, protocol)
	}
	if p.id == 11 {
		add(name+" not minimal", c.packet("\x0b\x81\x00", 0), malformed)
		add(name+" of five bytes", c.packet("\x0b\x80\x80\x80\x80\x01", 0), malformed)
	}
}

// verdict has the codes of a valid property that is wrong for another reason.
func (c carrier) verdict(side string, p property5) []byte {
	switch {
	case side == "client" && c.letter == "P" && p.id == 11:
		return []byte{protocol} // [MQTT-3.3.4-6]
	case c.letter == "C" && p.id == 22:
		return []byte{protocol} // 3.1.2.11.10: data without a method
	case side == "server" && c.letter == "D" && p.id == 17:
		return []byte{protocol} // [MQTT-3.14.2-2]
	case c.letter == "N" && p.id == 21:
		return []byte{protocol} // [MQTT-4.12.0-6]
	case c.letter == "C" && p.id == 21:
		return []byte{0x8c, 0x87} // [MQTT-4.12.0-1]
	}
	return nil
}

// LengthProbes cuts every packet of side, "client", "server", or these with
// " 3.1.1" behind, off after each byte of its body, with a remaining length that
// says so, and makes it one byte longer.
func LengthProbes(side string) (list []Probe) {
	for _, c := range carriers[side] {
		whole := c.packet("", 0)
		body := string(whole[2:])
		for n := range len(body) {
			codes := []byte{malformed}
			switch {
			case slices.Contains(c.good, n):
				codes = nil
			case slices.Contains(c.protocol, n):
				codes = []byte{protocol}
			case n < len("..MQTT5") && c.first == 0x10:
				codes = append(codes, 0) // the version for an answer is unknown
			}
			list = append(list, Probe{fmt.Sprintf("%s cut to %d", c.letter, n), frame(c.first, body[:n]), codes})
		}
		list = append(list, Probe{c.letter + " whole", whole, nil})
		if c.letter != "P" && c.letter != "B" && (c.letter != "Q" || c.plain) {
			list = append(list, Probe{c.letter + " longer by a byte", frame(c.first, body+"\x00"), []byte{malformed}})
		}
	}
	return list
}

// FlagProbes have every first byte that table 2-2 does not allow, before a valid
// body for the packet type. Type 15 exists in MQTT 5 only.
func FlagProbes(v byte) (list []Probe) {
	for first := range 256 {
		kind, flags := first>>4, first&15
		want := map[int]int{6: 2, 8: 2, 10: 2}[kind]
		// PUBLISH: [MQTT-3.3.1-4] and [MQTT-3.3.1-2].
		if kind == 3 && flags>>1&3 != 3 && flags&14 != 8 || kind != 3 && kind != 0 && flags == want && (kind != 15 || v == 5) {
			continue
		}
		codes := []byte{malformed}
		if kind == 1 {
			codes = append(codes, protocol) // a second CONNECT, too
		}
		list = append(list, Probe{fmt.Sprintf("first byte %02x", first), frame(byte(first), body(kind, flags, v)), codes})
	}
	return list
}

// body is the valid body of a packet with an identifier, or of a PUBLISH.
func body(kind, flags int, v byte) string {
	switch kind {
	case 3:
		if flags&6 == 0 {
			return textMark + empty(v)
		}
		return textMark + probeID + empty(v)
	case 8:
		return probeID + empty(v) + textMark + "\x00"
	case 9:
		return probeID + empty(v) + "\x00"
	case 10:
		return probeID + empty(v) + textMark
	case 12, 13, 14:
		return ""
	}
	return probeID
}

// reasons5 is table 2-6 of MQTT 5 by packet. DISCONNECT has those of both sides.
var reasons5 = map[string]string{
	"N": "00 80 81 82 83 84 85 86 87 88 89 8a 8c 90 95 97 99 9a 9b 9c 9d 9f",
	"A": "00 10 80 83 87 90 91 97 99",
	"R": "00 10 80 83 87 90 91 97 99",
	"L": "00 92",
	"K": "00 92",
	"B": "00 01 02 80 83 87 8f 91 97 9e a1 a2",
	"Q": "00 11 80 83 87 8f 91",
	"D": "00 04 80 81 82 83 87 89 8b 8c 8d 8e 8f 90 93 94 95 96 97 98 99 9a 9b 9c 9d 9e 9f a0 a1 a2",
}

// ReasonProbes are the packets of side that have a reason code, each with every
// invalid one.
func ReasonProbes(side string) (list []Probe) {
	for _, c := range carriers[side] {
		known := reasons5[c.letter]
		for code := range 256 {
			if known == "" || strings.Contains(known, fmt.Sprintf("%02x", code)) {
				continue
			}
			body := c.before[:max(len(c.before)-1, 0)] + string([]byte{byte(code), 0})
			if c.letter == "B" || c.letter == "Q" {
				body = c.before + string([]byte{0, byte(code)})
			}
			list = append(list, Probe{fmt.Sprintf("%s reason %02x", c.letter, code), frame(c.first, body), []byte{protocol, malformed}})
		}
	}
	return list
}

// OptionProbes are SUBSCRIBE with every byte of Subscription Options, and with No
// Local on a shared subscription.
func OptionProbes(v byte) (list []Probe) {
	for options := range 256 {
		var codes []byte
		switch {
		case v < 5 && options > 2:
			codes = []byte{0} // [MQTT-3-8.3-4]
		case options&0xc0 != 0:
			codes = []byte{malformed, protocol} // [MQTT-3.8.3-5], and perhaps more
		case options&3 == 3, options>>4 == 3:
			codes = []byte{protocol} // 3.8.3.1
		}
		body := probeID + empty(v) + textMark + string([]byte{byte(options)})
		list = append(list, Probe{fmt.Sprintf("options %02x", options), frame(0x82, body), codes})
	}
	if v < 5 {
		return list
	}
	shared := probeID + "\x00\x00\x0a$share/g/a\x04"
	return append(list, Probe{"No Local, shared", frame(0x82, shared), []byte{protocol}}) // [MQTT-3.8.3-4]
}

// ConnectFlagProbes are CONNECT with every byte of Connect Flags, and the payload
// that these demand.
func ConnectFlagProbes(v byte) (list []Probe) {
	for flags := range 256 {
		will, qos := flags&4 != 0, flags>>3&3
		payload := textMark
		if will {
			payload += empty(v) + textMark + textMark
		}
		for _, field := range []int{0x80, 0x40} {
			if flags&field != 0 {
				payload += textMark
			}
		}
		var codes []byte
		// [MQTT-3.1.2-3] [MQTT-3.1.2-11] [MQTT-3.1.2-12] [MQTT-3.1.2-13]
		bad := flags&1 != 0 || !will && (qos != 0 || flags&0x20 != 0) || qos == 3
		if bad || v < 5 && flags&0xc0 == 0x40 { // [MQTT-3.1.2-22] of 3.1.1
			codes = []byte{malformed}
		}
		body := "\x00\x04MQTT" + string([]byte{v, byte(flags)}) + "\x00\x3c" + empty(v) + payload
		list = append(list, Probe{fmt.Sprintf("connect flags %02x", flags), frame(0x10, body), codes})
	}
	return list
}

// ForeignProperty reports whether the first property of a client's MQTT 5 packet
// that table 2-4 does not allow there is valid in another packet.
func ForeignProperty(packet []byte) bool {
	body := packet[2:]
	text := func() string { return string(body[:2+int(body[0])<<8+int(body[1])]) }
	letter, at := "", 0
	switch packet[0] >> 4 {
	case 1:
		letter, at = "C", 10
	case 3:
		letter, at = "P", len(text())+2
	case 4, 5, 6, 7:
		letter, at = string("ARLK"[packet[0]>>4-4]), 3
	case 14:
		letter, at = "D", 1
	default:
		return false
	}
	if at >= len(body) {
		return false
	}
	props, rest := body[at+1:at+1+int(body[at])], body[at+1+int(body[at]):]
	if letter == "C" && len(props) == 0 && body[7]&4 != 0 {
		at = 2 + int(rest[1])
		props, letter = rest[at+1:at+1+int(rest[at])], "W"
	}
	for len(props) > 0 {
		i := slices.IndexFunc(table24(), func(p property5) bool { return p.id == props[0] })
		if i < 0 {
			return false
		}
		p := table24()[i]
		if !strings.Contains(p.where, letter) {
			return true
		}
		props = props[1+p.size(props[1:]):]
	}
	return false
}

// size is the length of the value of p at the start of b.
func (p property5) size(b []byte) int {
	text := func(b []byte) int { return 2 + int(b[0])<<8 + int(b[1]) }
	switch p.kind {
	case "bool":
		return 1
	case "two":
		return 2
	case "four":
		return 4
	case "varint":
		return slices.IndexFunc(b, func(c byte) bool { return c < 0x80 }) + 1
	case "pair":
		n := text(b)
		return n + text(b[n:])
	}
	return text(b)
}
