package scenarios

// Max is the size of the largest message, in bytes.
func (p *Payload) Max() int { return p.Size }

// min is the size of the smallest message, in bytes.
func (p *Payload) min() int {
	if p.sizes == nil {
		return p.Size
	}
	return p.sizes.least
}

// Mean is the average size of a message, in bytes.
func (p *Payload) Mean() float64 {
	if p.sizes == nil {
		return float64(p.Size)
	}
	return p.sizes.mean()
}

// Fixed returns the content of every message. ok is false where messages differ: a
// [Filler] then makes them. The ledger's stamp may replace the first 8 bytes.
func (p *Payload) Fixed() (content []byte, ok bool) {
	switch p.Kind {
	case PayloadSize:
		b := make([]byte, p.Size)
		fillPattern(b)
		return b, true
	case PayloadFile, PayloadText:
		return p.Data, true
	}
	return nil, false
}

// Verifiable reports whether a receiver can compute the content of a message. It
// cannot where the content holds the time of sending.
func (p *Payload) Verifiable() bool {
	for _, f := range p.template {
		if f.verb == 't' {
			return false
		}
	}
	return true
}

// Filler makes the payloads of one stream. It is safe for concurrent use: a payload
// is a function of seed, stream, sequence number and time.
type Filler struct {
	payload *Payload
	stream  uint64
	key     uint64 // of seed and stream
}

// Filler returns the filler of a stream, nil where all messages are [Payload.Fixed].
func (p *Payload) Filler(seed, stream uint64) *Filler {
	if p.sizes == nil && p.template == nil {
		return nil
	}
	return &Filler{payload: p, stream: stream, key: scatter(seed ^ scatter(stream))}
}

// Size is the size of message seq, from 0, in bytes.
func (f *Filler) Size(seq uint64) int {
	if f.payload.sizes == nil {
		return f.payload.Size
	}
	return f.payload.sizes.draw(f.random(seq), seq)
}

// Fill writes message seq to dst, which must have the length that Size returns. now
// is the time in ns since 1970.
func (f *Filler) Fill(dst []byte, seq uint64, now int64) {
	if f.payload.template == nil {
		fillPattern(dst)
		return
	}
	copy(dst, f.payload.Data)
	random := f.random(seq)
	for i := range f.payload.template {
		one := &f.payload.template[i]
		one.fill(dst[one.at:one.at+one.width], f.stream, seq, now, scatter(random+uint64(i)))
	}
}

func (f *Filler) random(seq uint64) uint64 { return SplitMix64(f.key, seq) }

// SplitMix64 returns number n of the random sequence of a seed (Steele, Lea, Flood
// 2014). It needs no generator's state, so numbers can be drawn in any order.
func SplitMix64(seed, n uint64) uint64 { return scatter(seed + n*0x9e3779b97f4a7c15) }

// scatter is the finalizer of SplitMix64: all bits of the result depend on all of x.
func scatter(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// everyByte is repeated to fill a payload of a given size.
var everyByte = func() (b [256]byte) {
	for i := range b {
		b[i] = byte(i)
	}
	return b
}()

// fillPattern makes byte i of b i mod 256.
func fillPattern(b []byte) {
	for n := copy(b, everyByte[:]); n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}
