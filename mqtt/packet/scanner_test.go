package packet

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// stream returns packets of various sizes and their bodies.
func stream(t *testing.T) (raw []byte, sizes []int) {
	t.Helper()
	for _, n := range []int{0, 1, 119, 120, 300} {
		p := Publish{QoS: 1, PacketID: uint16(n + 1), Topic: []byte("a/b"), Payload: bytes.Repeat([]byte{byte(n)}, n)}
		at := len(raw)
		var err error
		if raw, err = p.Append(raw, V5); err != nil {
			t.Fatal(err)
		}
		raw = AppendPingresp(raw)
		sizes = append(sizes, len(raw)-at-2, 2)
	}
	return raw, sizes
}

// drain reads every whole packet and checks its position in raw.
func drain(t *testing.T, s *Scanner, raw []byte, sizes []int, done, at int) (int, int) {
	t.Helper()
	for {
		f, ok, err := s.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return done, at
		}
		if f.Size() != sizes[done] || f.First != raw[at] || !bytes.Equal(f.Body, raw[at+f.Size()-len(f.Body):at+f.Size()]) {
			t.Fatalf("packet %d: % x", done, f.Body)
		}
		done, at = done+1, at+f.Size()
	}
}

func TestScannerSplits(t *testing.T) {
	raw, sizes := stream(t)
	for cut := range len(raw) + 1 {
		for _, buf := range [][]byte{nil, make([]byte, 1), make([]byte, 7), make([]byte, 4096)} {
			s := NewScanner(buf, 0)
			done, at := 0, 0
			for _, part := range [][]byte{raw[:cut], raw[cut:]} {
				for len(part) > 0 {
					n := copy(s.Space(), part)
					s.Advance(n)
					part = part[n:]
					done, at = drain(t, s, raw, sizes, done, at)
				}
			}
			if done != len(sizes) || s.Buffered() != 0 {
				t.Fatalf("cut at %d: %d of %d packets, %d bytes left", cut, done, len(sizes), s.Buffered())
			}
		}
	}
}

func TestScannerOneByte(t *testing.T) {
	raw, sizes := stream(t)
	s := NewScanner(nil, 0)
	done, at := 0, 0
	for i := range raw {
		s.Space()[0] = raw[i]
		s.Advance(1)
		done, at = drain(t, s, raw, sizes, done, at)
	}
	if done != len(sizes) {
		t.Fatalf("%d of %d packets", done, len(sizes))
	}
}

// The limits of the remaining length, with whole packets. [MQTT5 table 1-1]
func TestScannerLengthBorders(t *testing.T) {
	for _, c := range []struct {
		n      int
		length string
	}{
		{0, "00"}, {127, "7f"}, {128, "8001"}, {16383, "ff7f"}, {16384, "808001"}, {2097151, "ffff7f"}, {2097152, "80808001"},
	} {
		length := unhex(t, c.length)
		raw := append(append([]byte{byte(CONNECT) << 4}, length...), make([]byte, c.n)...)
		f, ok, err := scan(raw, V5)
		if !ok || err != nil || len(f.Body) != c.n || f.Size() != len(raw) {
			t.Errorf("%d: ok=%v, %v, body %d, size %d", c.n, ok, err, len(f.Body), f.Size())
		}
		if got := AppendVarint(nil, c.n); !bytes.Equal(got, length) {
			t.Errorf("%d: encoded as % x", c.n, got)
		}
		if VarintSize(c.n) != len(length) {
			t.Errorf("%d: size %d", c.n, VarintSize(c.n))
		}
		if _, ok, err := scan(raw[:len(raw)-1], V5); c.n > 0 && (ok || err != nil) {
			t.Errorf("%d, one byte short: ok=%v, %v", c.n, ok, err)
		}
	}
}

// The largest remaining length is accepted, and allocates nothing before its bytes arrive.
func TestScannerLargestHeader(t *testing.T) {
	s := NewScanner(make([]byte, 16), 0)
	s.Advance(copy(s.Space(), "\x30\xff\xff\xff\x7f\x00\x01a"))
	for range 3 {
		if _, ok, err := s.Next(); ok || err != nil {
			t.Fatalf("ok=%v, %v", ok, err)
		}
		if got := len(s.Space()) + s.Buffered(); got > 64 {
			t.Fatalf("a claimed length grew the buffer to %d", got)
		}
	}
	s = NewScanner(nil, MaxPacketSize-1)
	s.Advance(copy(s.Space(), "\x30\xff\xff\xff\x7f"))
	wantTooLarge(t, s)
}

func wantTooLarge(t *testing.T, s *Scanner) {
	t.Helper()
	_, _, err := s.Next()
	if bad, ok := errors.AsType[*MalformedError](err); !ok || bad.Code != ReasonPacketTooLarge {
		t.Errorf("got %v, want Packet too large", err)
	}
}

func TestScannerMaxPacketSize(t *testing.T) {
	for _, size := range []int{4, 100, 129, 130, 20000} {
		raw := make([]byte, 0, size)
		n := size - 2
		for 1+VarintSize(n)+n > size {
			n--
		}
		raw = append(AppendVarint(append(raw, byte(CONNECT)<<4), n), make([]byte, n)...)
		s := NewScanner(make([]byte, 32<<10), len(raw))
		s.Advance(copy(s.Space(), raw))
		if _, ok, err := s.Next(); !ok || err != nil {
			t.Errorf("size %d at the limit: ok=%v, %v", len(raw), ok, err)
		}
		s = NewScanner(nil, 0)
		s.SetMaxPacketSize(len(raw) - 1)
		s.Advance(copy(s.Space(), raw[:1+VarintSize(n)]))
		wantTooLarge(t, s)
	}
}

// feed passes raw through s in reads of at most 4 KiB. It returns the number of packets
// and the size of the largest buffer.
func feed(t *testing.T, s *Scanner, raw []byte) (packets, largest int) {
	for len(raw) > 0 {
		space := s.Space()
		n := copy(space[:min(len(space), 4096)], raw)
		s.Advance(n)
		raw = raw[n:]
		largest = max(largest, len(s.buf))
		for {
			_, ok, err := s.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			packets++
		}
	}
	return packets, largest
}

// A large packet makes the buffer grow to the size of the packet; after it the memory is
// freed.
func TestScannerHugePacket(t *testing.T) {
	p := Publish{Topic: []byte("t"), Payload: make([]byte, 3<<20)}
	raw, err := p.Append(nil, V311)
	if err != nil {
		t.Fatal(err)
	}
	home := make([]byte, 8<<10)
	s := NewScanner(home, 0)
	packets, largest := feed(t, s, raw)
	if packets != 1 || largest != len(raw) {
		t.Errorf("%d packets, buffer of %d for a packet of %d bytes", packets, largest, len(raw))
	}
	if space := s.Space(); &space[0] != &home[0] {
		t.Errorf("an empty scanner keeps %d bytes", len(space))
	}
	if got := s.Detach(); &got[0] != &home[0] || len(got) != len(home) {
		t.Error("Detach did not return the buffer it was given")
	}
}

// Many incomplete packets at the end of reads must not make a large enough buffer grow.
func TestScannerCompacts(t *testing.T) {
	raw, sizes := stream(t)
	for range 6 {
		raw, sizes = append(raw, raw...), append(sizes, sizes...)
	}
	s := NewScanner(make([]byte, 1000), 0)
	packets, largest := feed(t, s, raw)
	if packets != len(sizes) || largest != 1000 {
		t.Errorf("%d of %d packets, buffer of %d", packets, len(sizes), largest)
	}
}

func TestScannerDetach(t *testing.T) {
	buf := make([]byte, 64)
	s := NewScanner(buf, 0)
	s.Advance(copy(s.Space(), "\xc0"))
	if s.Detach() != nil {
		t.Fatal("Detach gave up a buffer with a byte in it")
	}
	s.Advance(copy(s.Space(), "\x00"))
	if f, ok, err := s.Next(); !ok || err != nil || f.Type() != PINGREQ {
		t.Fatalf("%v %v %v", f, ok, err)
	}
	if got := s.Detach(); len(got) != 64 || &got[0] != &buf[0] {
		t.Fatal("Detach did not return the buffer")
	}
	if s.Detach() != nil {
		t.Fatal("there is nothing to detach twice")
	}
	if _, ok, err := s.Next(); ok || err != nil {
		t.Fatalf("without a buffer: ok=%v, %v", ok, err)
	}
	s.Attach(buf)
	s.Advance(copy(s.Space(), "\xd0\x00"))
	if f, ok, _ := s.Next(); !ok || f.Type() != PINGRESP {
		t.Fatal("no packet after Attach")
	}
	s.Detach()
	if len(s.Space()) != firstBuffer {
		t.Fatal("Space must bring a buffer of its own")
	}
}

func TestScannerAdvanceTooFar(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Advance beyond Space must panic")
		}
	}()
	s := NewScanner(make([]byte, 8), 0)
	s.Advance(9)
}

// After an error, every call returns it, and no later packet is returned.
func TestScannerErrorStays(t *testing.T) {
	s := NewScanner(nil, 0)
	s.Advance(copy(s.Space(), "\xc0\x00\x00\x00\xc0\x00"))
	if _, ok, err := s.Next(); !ok || err != nil {
		t.Fatal("the packet before the fault is good")
	}
	for range 2 {
		if _, ok, err := s.Next(); ok || err == nil {
			t.Fatal("no error")
		}
	}
}

// The flags of each type, written out from table 2-2 and section 3.3.1.
func TestScannerFlags(t *testing.T) {
	legal := map[Type]string{
		CONNACK: "0", PUBLISH: "012345abcd", PUBACK: "0", PUBREC: "0", PUBREL: "2", PUBCOMP: "0", SUBSCRIBE: "2",
		SUBACK: "0", UNSUBSCRIBE: "2", UNSUBACK: "0", PINGREQ: "0", PINGRESP: "0", DISCONNECT: "0", AUTH: "0",
		CONNECT: "0123456789abcdef", // its decoder checks the flags
	}
	for first := range 256 {
		digit := hex.EncodeToString([]byte{byte(first)})[1:]
		t.Run(fmt.Sprintf("%02x", first), func(t *testing.T) {
			s := NewScanner(nil, 0)
			s.Advance(copy(s.Space(), []byte{byte(first)}))
			_, _, err := s.Next()
			if want := bytes.Contains([]byte(legal[Type(first>>4)]), []byte(digit)); (err == nil) != want {
				t.Errorf("got %v, want legal=%v", err, want)
			}
		})
	}
}

// TestRunsRead: Scanner.NextAck and PublishDecoder.Next give the same results as Next and
// Decode, and leave to them all packets that are in error.
func TestRunsRead(t *testing.T) {
	var raw []byte
	for _, s := range []string{
		"30 05 0001 61 7879", "30 05 0001 61 7a7a", "30 05 0001 61 7879", "30 04 0001 61 78", // the same topic
		"30 05 0001 62 7879", "30 05 0001 62 7879", "31 05 0001 62 7879", // another one
		"32 06 0001 62 0001 78", "32 06 0001 62 0002 78", "32 06 0001 62 0003 79", "3a 06 0001 62 0003 79",
		"40 02 0001", "40 02 0002", "40 02 0003", "50 02 0003", "50 02 0004", "62 02 0004", "62 02 0005",
		"32 06 0001 62 0004 78", "30 05 0001 61 7879", "30 05 0001 61 7879",
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, b...)
	}
	for _, tail := range []string{"", "3206000162000078", "40020000", "400200", "300500016178", "3203000162"} {
		b, _ := hex.DecodeString(tail)
		all := append(raw[:len(raw):len(raw)], b...)
		want, wantErr := readAll(all, V311, false)
		got, gotErr := readAll(all, V311, true)
		if want != got || fmt.Sprint(wantErr) != fmt.Sprint(gotErr) {
			t.Errorf("tail %q:\n got %s, %v\nwant %s, %v", tail, got, gotErr, want, wantErr)
		}
	}
}

// readAll describes the PUBLISH and acknowledgement packets of raw, read in runs or one by
// one.
func readAll(raw []byte, v Version, runs bool) (string, error) {
	s := NewScanner(append([]byte(nil), raw...), 0)
	s.Advance(len(raw))
	var said strings.Builder
	var d PublishDecoder
	var p Publish
	for {
		f, ok, err := s.Next()
		if err != nil || !ok {
			return said.String(), err
		}
		switch {
		case f.Type() == PUBLISH:
			if err := d.Decode(&p, f, v); err != nil {
				return said.String(), err
			}
			fmt.Fprintf(&said, "%+v\n", p)
			for runs && d.Next(&p, s) {
				fmt.Fprintf(&said, "%+v\n", p)
			}
		case isAck(f.Type()):
			var a Ack
			if err := a.Decode(f, v); err != nil {
				return said.String(), err
			}
			fmt.Fprintf(&said, "%s %d %d\n", a.Type, a.PacketID, a.Code)
			for runs {
				id, ok := s.NextAck(f.First)
				if !ok {
					break
				}
				fmt.Fprintf(&said, "%s %d %d\n", f.Type(), id, 0)
			}
		}
	}
}

// FuzzRuns is TestRunsRead for any bytes.
func FuzzRuns(f *testing.F) {
	f.Add([]byte("\x30\x05\x00\x01axy\x30\x05\x00\x01axy\x30\x05\x00\x01azz"), byte(1))
	f.Add([]byte("\x32\x07\x00\x01a\x00\x01\x00x\x32\x07\x00\x01a\x00\x02\x00x\x32\x07\x00\x01a\x00\x03\x00x"), byte(2))
	f.Add([]byte("\x40\x02\x00\x01\x40\x02\x00\x02\x62\x02\x00\x02\x62\x02\x00\x00"), byte(1))
	f.Fuzz(func(t *testing.T, raw []byte, version byte) {
		v := V31 + Version(version)%3
		want, wantErr := readAll(raw, v, false)
		got, gotErr := readAll(raw, v, true)
		if want != got || fmt.Sprint(wantErr) != fmt.Sprint(gotErr) {
			t.Fatalf("\n got %s, %v\nwant %s, %v", got, gotErr, want, wantErr)
		}
	})
}
