package load

import "github.com/mqttload/mqttload/result"

// ledger accounts for every delivery of one stream to one subscriber. It
// remembers, in a bitmap of fixed size, which of the latest sequence numbers
// are missing; what falls out of it unseen stays lost. One goroutine at a time.
type ledger struct {
	base    uint64 // first sequence number of this iteration: what is below came late
	next    uint64 // one above the highest seen
	missing []uint64
	gaps    bool // a bit of missing has been set in this iteration

	delivered, duplicated, reordered, corrupted, foreign, late int64

	untimed int64 // delivered so late that the time of sending is forgotten
}

// newLedger remembers the latest 4 x window sequence numbers, a power of two
// of at least 1,024.
func newLedger(window int) ledger {
	n := 1024
	for n < 4*window {
		n *= 2
	}
	return ledger{missing: make([]uint64, n/64)}
}

func (l *ledger) size() uint64 { return uint64(len(l.missing)) * 64 }

func (l *ledger) word(seq uint64) (*uint64, uint64) {
	return &l.missing[seq/64&uint64(len(l.missing)-1)], 1 << (seq % 64)
}

// begin starts an iteration whose first message is seq.
func (l *ledger) begin(seq uint64) {
	missing := l.missing
	if l.gaps {
		clear(missing)
	}
	*l = ledger{base: seq, next: seq, missing: missing}
}

// arrive records the delivery of seq and reports whether it is the first one
// in time, the one that counts for latency.
func (l *ledger) arrive(seq uint64) bool {
	switch {
	case seq == l.next:
		// A lap ago the same bit stood for a number that is out of reach now.
		if l.gaps {
			w, b := l.word(seq)
			*w &^= b
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

// skipTo marks everything from next up to seq as missing.
func (l *ledger) skipTo(seq uint64) {
	from := l.next
	l.gaps = true
	if seq-from > l.size() {
		from = seq - l.size()
	}
	for ; from < seq; from++ {
		w, b := l.word(from)
		*w |= b
	}
	w, b := l.word(seq)
	*w &^= b
	l.next = seq + 1
}

// arriveAgain is a number below next: late in order, or seen before.
func (l *ledger) arriveAgain(seq uint64) bool {
	if l.next-seq > l.size() {
		// Too old to know; it was counted as missing or as delivered.
		l.late++
		return false
	}
	w, b := l.word(seq)
	if *w&b == 0 {
		l.duplicated++
		return false
	}
	*w &^= b
	l.delivered++
	l.reordered++
	return true
}

// count records a delivery without a stamp: the n-th to come is taken for the
// n-th sent, so that only totals can be known.
func (l *ledger) count(sent uint64) {
	if l.next < sent {
		l.next++
		l.delivered++
		return
	}
	l.duplicated++
}

// add puts the iteration's deliveries into d, of which sent messages were
// expected here.
func (l *ledger) add(d *result.Delivery, sent int64) {
	d.Expected += sent
	d.Received += l.delivered + l.duplicated
	d.Delivered += l.delivered
	d.Lost += sent - l.delivered
	d.Duplicated += l.duplicated
	d.Reordered += l.reordered
	d.Corrupted += l.corrupted
	d.Foreign += l.foreign
	d.Late += l.late
}
