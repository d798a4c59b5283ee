package packet

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// addSeeds seeds f with the golden packets and, if they are installed, with the public
// vectors.
func addSeeds(f *testing.F, add func(raw []byte, v Version)) {
	for _, g := range readGoldens(f) {
		add(g.raw, g.v)
	}
	for _, name := range []string{"client.jsonl", "broker.jsonl"} {
		for _, v := range readVectors(f, name) {
			add(v.sent(), v.version())
		}
	}
	files, _ := filepath.Glob(filepath.Join(vectorDir, "seeds", "*.raw"))
	for _, name := range files {
		if raw, err := os.ReadFile(name); err == nil {
			add(raw, V311)
		}
	}
}

// FuzzScanner feeds bytes in pieces of a size that the input determines. The scanner must
// not panic, must not use more memory than twice the input, must return the same packets
// as in one piece, and must not lose a byte.
func FuzzScanner(f *testing.F) {
	addSeeds(f, func(raw []byte, v Version) { f.Add(raw, uint8(len(raw)%7+1), v == V31) })
	f.Fuzz(func(t *testing.T, raw []byte, piece uint8, v31 bool) {
		v := V5
		if v31 {
			v = V31
		}
		whole, wholeErr := cut(t, raw, len(raw)+1, v)
		parts, partsErr := cut(t, raw, int(piece)+1, v)
		if !bytes.Equal(whole, parts) || (wholeErr == nil) != (partsErr == nil) {
			t.Fatalf("in one piece %x, %v; in pieces of %d: %x, %v", whole, wholeErr, piece+1, parts, partsErr)
		}
		if !bytes.HasPrefix(raw, whole) {
			t.Fatalf("packets %x are no prefix of the input", whole)
		}
	})
}

// cut returns the packets of raw, end to end, read in pieces of n bytes.
func cut(t *testing.T, raw []byte, n int, v Version) (packets []byte, err error) {
	s := NewScanner(make([]byte, 16), 1<<20)
	s.SetVersion(v)
	for limit := 2*len(raw) + 64; len(raw) > 0; {
		space := s.Space()
		n := copy(space[:min(n, len(space))], raw)
		s.Advance(n)
		if len(s.buf) > limit {
			t.Fatalf("buffer of %d bytes", len(s.buf))
		}
		raw = raw[n:]
		for {
			at := s.r
			f, ok, err := s.Next()
			if err != nil {
				return packets, err
			}
			if !ok {
				break
			}
			packets = append(packets, s.buf[at:at+f.Size()]...)
		}
	}
	return packets, nil
}

// FuzzRoundTrip decodes each packet in each version. A packet that decodes must encode,
// and the result must decode to a packet with the same encoding.
func FuzzRoundTrip(f *testing.F) {
	addSeeds(f, func(raw []byte, v Version) { f.Add(raw, byte(v)) })
	f.Fuzz(func(t *testing.T, raw []byte, version byte) {
		v := V31 + Version(version)%3
		c, err := decode(raw, v)
		if err != nil {
			return
		}
		if u, ok := c.(*Unsuback); ok && v == V5 && len(u.Codes) == 0 {
			return // read, and never sent
		}
		first, err := c.Append(nil, v)
		if err != nil {
			t.Fatalf("decoded, but not encoded: %v\n%x", err, raw)
		}
		again, err := decode(first, v)
		if err != nil {
			t.Fatalf("encoded, but not decoded: %v\n%x", err, first)
		}
		second, err := again.Append(nil, v)
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("not stable: %v\n%x\n%x", err, first, second)
		}
		checkLine(t, raw, first, v)
	})
}

// checkLine compares the results of Format for both forms. If there are properties, their
// order may differ, so it compares only the lengths.
func checkLine(t *testing.T, raw, canonical []byte, v Version) {
	a, _, _ := scan(raw, v)
	b, _, _ := scan(canonical, v)
	if got, want := Format(b, v), Format(a, v); len(got) != len(want) {
		t.Fatalf("\n got %s\nwant %s", got, want)
	}
}
