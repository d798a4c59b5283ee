package packet

import (
	"bytes"
	"runtime"
	"testing"
)

// A decoded packet is larger than its bytes: a User Property of five bytes becomes two
// strings, and a growing list is copied into an array a quarter larger. All of that may
// take this much per byte of the packet, in addition to what an empty packet takes.
const (
	memoryPerByte = 40
	memoryFixed   = 4096
)

// allocated returns the number of bytes that f allocates: the least of several calls,
// because allocations of other goroutines count too.
func allocated(f func()) uint64 {
	least := ^uint64(0)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

func checkMemory(t *testing.T, raw []byte, v Version) {
	t.Helper()
	f, ok, err := scan(raw, v)
	if err != nil || !ok {
		return
	}
	limit := uint64(memoryPerByte*f.Size() + memoryFixed)
	if f.Type() == PUBLISH {
		limit = 256 // for the error, if there is one
	}
	c := newCodec(f.Type())
	if n := allocated(func() { _ = c.Decode(f, v) }); n > limit {
		t.Errorf("decoding %s of %d bytes takes %d, over %d: %x", f.Type(), f.Size(), n, limit, raw[:min(len(raw), 64)])
	}
	// The scanner takes at most twice the input, which the allocator rounds up by an
	// eighth, whatever length the input claims.
	if n := allocated(func() { _, _, _ = scan(raw, v) }); n > uint64(9*len(raw)/4+2*firstBuffer) {
		t.Errorf("cutting %d bytes takes %d", len(raw), n)
	}
}

// TestMemory decodes packets that take the most memory per byte.
func TestMemory(t *testing.T) {
	const n = 60_000
	list := func(t Type, item string) []byte {
		body := append([]byte{0, 1, 0}, bytes.Repeat([]byte(item), n/len(item))...)
		return append(AppendVarint([]byte{firstByte(t)}, len(body)), body...)
	}
	properties := func(t Type, head, item string) []byte {
		props := bytes.Repeat([]byte(item), n/len(item))
		body := append(AppendVarint([]byte(head), len(props)), props...)
		return append(AppendVarint([]byte{firstByte(t)}, len(body)), body...)
	}
	for name, raw := range map[string][]byte{
		"User Properties":         properties(CONNACK, "\x00\x00", "\x26\x00\x00\x00\x00"),
		"named User Properties":   properties(CONNACK, "\x00\x00", "\x26\x00\x01a\x00\x01b"),
		"filters":                 list(SUBSCRIBE, "\x00\x01a\x00"),
		"filters to unsubscribe":  list(UNSUBSCRIBE, "\x00\x01a"),
		"reason codes":            list(SUBACK, "\x00"),
		"Subscription Identifier": append([]byte{0x30, 0x06, 0, 1, 'a', 2, 11, 1}, 0)[:8],
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := decode(raw, V5); err != nil {
				t.Fatal(err)
			}
			checkMemory(t, raw, V5)
		})
	}
	// A packet that claims 268,435,455 B but ends after its header.
	checkMemory(t, []byte("\x82\xff\xff\xff\x7f\x00\x01"), V5)
	for _, g := range readGoldens(t) {
		checkMemory(t, g.raw, g.v)
	}
}

// FuzzMemory looks for a packet that takes more memory than [TestMemory] allows.
func FuzzMemory(f *testing.F) {
	addSeeds(f, func(raw []byte, v Version) { f.Add(raw, byte(v)) })
	f.Fuzz(func(t *testing.T, raw []byte, version byte) { checkMemory(t, raw, V31+Version(version)%3) })
}
