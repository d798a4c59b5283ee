package packet

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A golden is one packet of testdata: its bytes, with a comment after each field, and the
// expected result.
type golden struct {
	name string
	v    Version
	raw  []byte
	line string // the result of Format, if the packet is legal
	// again is the canonical form if it differs from raw. It is empty but not nil for a
	// packet that is never sent.
	again []byte
	fault string // "0x81 rule", if the packet is not legal
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatalf("testdata: %q: %v", s, err)
	}
	return b
}

var versions = map[string]Version{"3.1": V31, "3.1.1": V311, "5": V5}

// readGoldens parses every file of testdata.
func readGoldens(t testing.TB) (all []golden) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata: %d files, %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			all = addGolden(t, all, line)
		}
	}
	return all
}

func addGolden(t testing.TB, all []golden, line string) []golden {
	last := len(all) - 1
	switch word, rest, _ := strings.Cut(line, " "); word {
	case "", "#":
	case "packet", "malformed":
		name, v, _ := strings.Cut(rest, " v=")
		if versions[v] == 0 {
			t.Fatalf("testdata: %q: no version", line)
		}
		return append(all, golden{name: name, v: versions[v]})
	case "=":
		all[last].line = rest
	case "!":
		all[last].fault = rest
	case "~":
		all[last].again = append([]byte{}, unhex(t, rest)...)
	default:
		field, _, _ := strings.Cut(line, "#")
		all[last].raw = append(all[last].raw, unhex(t, field)...)
	}
	return all
}

// A codec is a packet type with the version as an argument.
type codec interface {
	Append(dst []byte, v Version) ([]byte, error)
	Decode(f Frame, v Version) error
}

// connectCodec makes a codec of Connect, which has its version in a field.
type connectCodec struct{ Connect }

func (c *connectCodec) Append(dst []byte, _ Version) ([]byte, error) { return c.Connect.Append(dst) }
func (c *connectCodec) Decode(f Frame, _ Version) error              { return c.Connect.Decode(f) }

// pingCodec makes a codec of the packets without fields.
type pingCodec struct{ t Type }

func (p *pingCodec) Append(dst []byte, _ Version) ([]byte, error) {
	if p.t == PINGREQ {
		return AppendPingreq(dst), nil
	}
	return AppendPingresp(dst), nil
}
func (p *pingCodec) Decode(f Frame, v Version) error { return DecodePing(f, v) }

func newCodec(t Type) codec {
	switch t {
	case CONNECT:
		return new(connectCodec)
	case CONNACK:
		return new(Connack)
	case PUBLISH:
		return new(Publish)
	case PUBACK, PUBREC, PUBREL, PUBCOMP:
		return new(Ack)
	case SUBSCRIBE:
		return new(Subscribe)
	case SUBACK:
		return new(Suback)
	case UNSUBSCRIBE:
		return new(Unsubscribe)
	case UNSUBACK:
		return new(Unsuback)
	case DISCONNECT:
		return new(Disconnect)
	case AUTH:
		return new(Auth)
	}
	return &pingCodec{t}
}

// scan returns the first packet of raw.
func scan(raw []byte, v Version) (Frame, bool, error) {
	s := NewScanner(nil, 0)
	s.SetVersion(v)
	for len(raw) > 0 {
		n := copy(s.Space(), raw)
		s.Advance(n)
		raw = raw[n:]
	}
	return s.Next()
}

// decode decodes the first packet of raw.
func decode(raw []byte, v Version) (codec, error) {
	f, ok, err := scan(raw, v)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errIncomplete
	}
	c := newCodec(f.Type())
	return c, c.Decode(f, v)
}

var errIncomplete = errors.New("incomplete packet")

func TestGolden(t *testing.T) {
	seen := map[string]bool{}
	all := readGoldens(t)
	for _, g := range all {
		if seen[g.name] || (g.line == "") == (g.fault == "") {
			t.Errorf("%s: name used twice, or not one expectation", g.name)
		}
		seen[g.name] = true
		t.Run(g.name, func(t *testing.T) {
			checkPrefixes(t, g)
			if g.fault != "" {
				checkFault(t, g)
				return
			}
			checkPacket(t, g)
			fresh, _ := decode(g.raw, g.v)
			checkReuse(t, fresh, fullest(all, g), g.raw, g.v)
		})
	}
}

func checkPacket(t *testing.T, g golden) {
	f, ok, err := scan(g.raw, g.v)
	if err != nil || !ok {
		t.Fatalf("scan: ok=%v, %v", ok, err)
	}
	if got := Format(f, g.v); got != g.line {
		t.Errorf("Format:\n got %s\nwant %s", got, g.line)
	}
	c := newCodec(f.Type())
	if err := c.Decode(f, g.v); err != nil {
		t.Fatal(err)
	}
	want := g.raw
	if g.again != nil {
		want = g.again
	}
	got, err := c.Append([]byte("before"), g.v)
	if len(want) == 0 {
		if err == nil {
			t.Error("Append: no error for a packet that is never sent")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if want = append([]byte("before"), want...); !bytes.Equal(got, want) {
		t.Errorf("Append:\n got % x\nwant % x", got[6:], want[6:])
	}
}

// checkReuse decodes into a struct that holds another packet.
func checkReuse(t *testing.T, fresh codec, full, raw []byte, v Version) {
	used, err := decode(full, v)
	if err != nil {
		t.Fatal(err)
	}
	f, _, _ := scan(raw, v)
	if err := used.Decode(f, v); err != nil {
		t.Fatal(err)
	}
	a, _ := used.Append(nil, v)
	b, _ := fresh.Append(nil, v)
	if !bytes.Equal(a, b) {
		t.Errorf("decoded into a used struct:\n got % x\nwant % x", a, b)
	}
}

// fullest returns the longest legal golden of the type and version of g.
func fullest(all []golden, g golden) (best []byte) {
	for _, o := range all {
		if o.fault == "" && o.v == g.v && o.raw[0]>>4 == g.raw[0]>>4 && len(o.raw) > len(best) {
			best = o.raw
		}
	}
	return best
}

func checkFault(t *testing.T, g golden) {
	_, err := decode(g.raw, g.v)
	bad, ok := errors.AsType[*MalformedError](err)
	if !ok {
		t.Fatalf("got %v, want a *MalformedError with %s", err, g.fault)
	}
	got := fmt.Sprintf("0x%02x %s", byte(bad.Code), bad.Rule)
	code, rule, _ := strings.Cut(g.fault, " ")
	if !strings.HasPrefix(got, code) || !strings.Contains(got, rule) {
		t.Errorf("got %s, want %s", got, g.fault)
	}
	if bad.Offset < 0 || bad.Offset > len(g.raw) {
		t.Errorf("offset %d is outside of the packet", bad.Offset)
	}
	if bad.Packet != Type(g.raw[0]>>4) {
		t.Errorf("packet %s", bad.Packet)
	}
}

// checkPrefixes tries every strict prefix. For the scanner it is incomplete; with the
// length changed to fit, decoders must not panic.
func checkPrefixes(t *testing.T, g golden) {
	for n := range len(g.raw) {
		_, ok, err := scan(g.raw[:n], g.v)
		if ok || g.fault == "" && err != nil {
			t.Errorf("prefix of %d bytes: ok=%v, %v", n, ok, err)
		}
	}
	f, ok, _ := scan(g.raw, g.v)
	if !ok {
		return
	}
	for n := range len(f.Body) {
		short := Frame{First: f.First, Body: f.Body[:n:n]}
		_ = newCodec(f.Type()).Decode(short, g.v)
		_ = Format(short, g.v)
	}
}

// The golden files have every type in every version.
func TestGoldenIsComplete(t *testing.T) {
	type cell struct {
		t   Type
		v   Version
		bad bool
	}
	have := map[cell]int{}
	for _, g := range readGoldens(t) {
		have[cell{Type(g.raw[0] >> 4), g.v, g.fault != ""}]++
	}
	for typ := CONNECT; typ <= AUTH; typ++ {
		for _, v := range versions {
			legal := typ != AUTH || v == V5
			if legal && have[cell{typ, v, false}] == 0 || have[cell{typ, v, true}] == 0 {
				t.Errorf("%s in %s: no legal or no malformed packet", typ, v)
			}
		}
	}
}
