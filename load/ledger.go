package load

import "github.com/mqttload/mqttload/result"

// ledger accounts for every delivery of one flow to one receiver. It remembers
// in a bitmap of fixed size which of the latest sequence numbers are missing; a
// missing number that falls out of the bitmap stays lost. The bitmap is
// allocated when the first number is missing. One goroutine at a time.
type ledger struct {
	base     uint64 // first sequence number of this iteration: lower ones are late
	measured uint64 // open loop: lower numbers are of the warm-up, and count apart
	next     uint64 // one above the highest seen
	size     uint64 // numbers remembered, a power of two of at least 1,024
	missing  []uint64
	gaps     bool // a bit of missing has been set in this iteration
	// unordered is set where several members of a shared group are one receiver:
	// there is no order between them.
	unordered bool

	counts
	warm counts
	lost span // numbers that fell out of the bitmap while missing
}

// counts are what a ledger knows of one stretch of a flow.
type counts struct {
	delivered, duplicated, flagged, reordered, corrupted, late int64
	bytes                                                      int64 // of the payloads delivered
	// untimed were delivered after their time of sending was discarded.
	untimed int64
	// timed have a latency; latencyNS is the sum. A float also holds the sum of a
	// backlog of minutes.
	timed     int64
	latencyNS float64
}

// span is the lowest and the highest of a set of sequence numbers.
type span struct {
	any         bool
	first, last uint64
}

func (s *span) add(seq uint64) {
	if !s.any {
		*s = span{true, seq, seq}
		return
	}
	s.first, s.last = min(s.first, seq), max(s.last, seq)
}

// newLedger remembers at least the latest 4 x window sequence numbers.
func newLedger(window int) ledger {
	n := uint64(1024)
	for n < 4*uint64(window) {
		n *= 2
	}
	return ledger{size: n}
}

func (l *ledger) word(seq uint64) (*uint64, uint64) {
	return &l.missing[seq/64&uint64(len(l.missing)-1)], 1 << (seq % 64)
}

// begin starts an iteration whose first message is seq.
func (l *ledger) begin(seq uint64) {
	missing := l.missing
	if l.gaps {
		clear(missing)
	}
	*l = ledger{base: seq, next: seq, size: l.size, missing: missing, unordered: l.unordered}
}

// swap exchanges the counts of measured messages with those of the warm-up.
func (l *ledger) swap() { l.counts, l.warm = l.warm, l.counts }

// arrive records the delivery of seq and reports whether it is the first one,
// in time, which counts for latency.
func (l *ledger) arrive(seq uint64) bool {
	switch {
	case seq == l.next:
		if l.gaps {
			l.forget(seq, seq)
		}
		l.next++
		l.delivered++
		return true
	case seq > l.next:
		l.skipTo(seq)
		l.delivered++
		return true
	case seq < l.base:
		l.late++
		return false
	}
	return l.arriveAgain(seq)
}

// forget clears the bit of seq. If it was set, it stood for a number one lap or
// more below that is out of reach now: the latest of its kind below next.
func (l *ledger) forget(seq, next uint64) {
	w, b := l.word(seq)
	if *w&b != 0 {
		*w &^= b
		l.lost.add(next - 1 - (next-1-seq)&(l.size-1))
	}
}

// skipTo marks everything from next up to seq as missing.
func (l *ledger) skipTo(seq uint64) {
	if l.missing == nil {
		l.missing = make([]uint64, l.size/64)
	}
	l.gaps = true
	from, next := l.next, l.next
	if seq-from > l.size {
		from = seq - l.size
		l.lost.add(next)
		l.lost.add(from - 1)
	}
	for ; from < seq; from++ {
		l.forget(from, next)
		w, b := l.word(from)
		*w |= b
	}
	if seq-next < l.size {
		l.forget(seq, next)
	} else {
		// The bit of seq has just been set for the number one lap below.
		l.forget(seq, seq)
	}
	l.next = seq + 1
}

// arriveAgain records a number below next: out of order, or a duplicate.
func (l *ledger) arriveAgain(seq uint64) bool {
	if l.next-seq > l.size {
		// Too old to know: it has counted as missing or as delivered.
		l.late++
		return false
	}
	if l.missing == nil {
		l.duplicated++
		return false
	}
	w, b := l.word(seq)
	if *w&b == 0 {
		l.duplicated++
		return false
	}
	*w &^= b
	l.delivered++
	if !l.unordered {
		l.reordered++
	}
	return true
}

// count records a delivery without a stamp. The n-th to come counts as the n-th
// sent, so only totals are known. It reports false where as many have come as
// were sent.
func (l *ledger) count(sent uint64, size int) bool {
	if l.next < sent {
		l.next++
		l.delivered++
		l.bytes += int64(size)
		return true
	}
	return false
}

// missed returns the lowest and the highest number that has not come, of those
// from the first that counts up to end, which were all sent.
func (l *ledger) missed(end uint64) span {
	low := max(l.base, l.measured)
	var s span
	if l.lost.any && l.lost.last >= low {
		s.add(max(l.lost.first, low))
		s.add(l.lost.last)
	}
	if l.gaps {
		for seq := max(low, l.next-min(l.next, l.size)); seq < l.next; seq++ {
			if w, b := l.word(seq); *w&b != 0 {
				s.add(seq)
			}
		}
	}
	if l.next < end {
		s.add(max(l.next, low))
		s.add(end - 1)
	}
	return s
}

// add adds the iteration's deliveries to d; sent messages were expected here.
func (c *counts) add(d *result.Delivery, sent int64) {
	d.Expected += sent
	d.Received += c.delivered + c.duplicated
	d.Delivered += c.delivered
	d.Lost += sent - c.delivered
	d.Duplicated += c.duplicated
	d.Redelivered += c.flagged
	d.Reordered += c.reordered
	d.Corrupted += c.corrupted
	d.Late += c.late
}
