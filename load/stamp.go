package load

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

const (
	seqBits    = 24
	streamBits = 20
	tagBits    = 64 - seqBits - streamBits

	// maxStreams is how many streams one run can tell apart.
	maxStreams = 1 << streamBits
)

// stamp is the head of every message, big endian: 20 bits of run tag, 20 of
// stream, the low 24 of the sequence number. The receiver knows the rest of
// the sequence number from what it expects, for a window is at most 65,535.
type stamp uint64

// newTag makes the tag that distinguishes the messages of this launch from
// those of other runs and of earlier launches.
func newTag(runID string, launch int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", runID, launch)
	// FNV's last bytes hardly reach its high bits: mix them (MurmurHash3's finalizer).
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x >> (64 - tagBits)
}

func newStamp(tag uint64, stream uint32) stamp {
	return stamp(tag<<(seqBits+streamBits) | uint64(stream)<<seqBits)
}

// of is the stamp of sequence number seq.
func (s stamp) of(seq uint64) uint64 { return uint64(s) | seq&(1<<seqBits-1) }

// put writes the stamp of sequence number seq over p's first bytes.
func (s stamp) put(p []byte, seq uint64) { binary.BigEndian.PutUint64(p, s.of(seq)) }

// streamOf is the stream number in the stamp v.
func streamOf(v uint64) uint32 { return uint32(v>>seqBits) & (maxStreams - 1) }

// parse reads the stamp v. ok is false when the message is not of s's run and
// stream. The sequence number is the one nearest to next that fits.
func (s stamp) parse(v, next uint64) (seq uint64, ok bool) {
	if v&^(1<<seqBits-1) != uint64(s) {
		return 0, false
	}
	// The sign extension of the 24-bit difference is the distance from next.
	d := int64((v-next)<<(64-seqBits)) >> (64 - seqBits)
	seq = next + uint64(d)
	return seq, d >= 0 || next >= uint64(-d)
}
