package load

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// account runs the sequence numbers through a ledger of which sent were sent.
func account(window int, sent int64, seqs []uint64) result.Delivery {
	l := newLedger(window)
	for _, s := range seqs {
		l.arrive(s)
	}
	var d result.Delivery
	d.Scheduled, d.Sent = sent, sent
	l.add(&d, sent)
	return d
}

func upTo(n uint64) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = uint64(i)
	}
	return out
}

// TestLedgerKnownAnswers: a drop of each 1,000th, a duplicate of each 100th, a
// swap of each pair in the first 1,000, each with exact figures.
func TestLedgerKnownAnswers(t *testing.T) {
	const n = 60_000
	var dropped, doubled []uint64
	swapped := upTo(n)
	for i := uint64(0); i < n; i++ {
		if i%1000 != 999 {
			dropped = append(dropped, i)
		}
		doubled = append(doubled, i)
		if i%100 == 99 {
			doubled = append(doubled, i)
		}
		if i < 1000 && i%2 == 0 {
			swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
		}
	}
	for name, tt := range map[string]struct {
		seqs                                 []uint64
		delivered, lost, duplicated, reorder int64
	}{
		"all":     {upTo(n), n, 0, 0, 0},
		"none":    {nil, 0, n, 0, 0},
		"drop":    {dropped, 59_940, 60, 0, 0},
		"double":  {doubled, n, 0, 600, 0},
		"swap":    {swapped, n, 0, 0, 500},
		"tail":    {upTo(n - 7), n - 7, 7, 0, 0},
		"last":    {[]uint64{n - 1}, 1, n - 1, 0, 0},
		"reverse": {[]uint64{3, 2, 1, 0}, 4, n - 4, 0, 3},
	} {
		d := account(100, n, tt.seqs)
		if err := d.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d.Delivered != tt.delivered || d.Lost != tt.lost || d.Duplicated != tt.duplicated || d.Reordered != tt.reorder {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestLedgerLate(t *testing.T) {
	l := newLedger(10)
	for _, s := range []uint64{0, 1, 2, 5} {
		l.arrive(s)
	}
	l.begin(10)
	for _, s := range []uint64{3, 10, 4, 11, 9} {
		l.arrive(s)
	}
	if l.late != 3 || l.delivered != 2 || l.duplicated != 0 {
		t.Errorf("%+v", l)
	}
}

// TestLedgerRandom compares with a map while numbers stay within the memory of
// the ledger; the identities hold whatever comes.
func TestLedgerRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		l := newLedger(100)
		seen := map[uint64]bool{}
		var top uint64
		var delivered, duplicated, reordered int64
		for range 5000 {
			seq := top + uint64(r.IntN(4))
			if r.IntN(4) == 0 && top > 0 {
				seq = top - min(top, uint64(r.IntN(900)))
			}
			switch {
			case seen[seq]:
				duplicated++
			case seq < top:
				reordered++
				delivered++
			default:
				delivered++
			}
			seen[seq] = true
			top = max(top, seq+1)
			l.arrive(seq)
		}
		if l.delivered != delivered || l.duplicated != duplicated || l.reordered != reordered || l.late != 0 {
			t.Fatalf("delivered %d/%d duplicated %d/%d reordered %d/%d late %d", l.delivered, delivered, l.duplicated, duplicated, l.reordered, reordered, l.late)
		}
	}
}

func TestStamp(t *testing.T) {
	tag := newTag("abc", 1)
	s, other, foreign := newStamp(tag, 5), newStamp(tag, 6), newStamp(newTag("abc", 2), 5)
	if other == s || foreign == s {
		t.Fatal("stamps of different streams or runs are the same")
	}
	var p [scenarios.StampSize]byte
	for _, tt := range []struct{ seq, next uint64 }{
		{0, 0}, {0, 65535}, {65535, 0}, {1<<24 - 1, 1<<24 + 3}, {1<<24 + 3, 1<<24 - 1},
		{1 << 40, 1<<40 + 65535}, {1<<40 + 65535, 1 << 40}, {1<<23 - 1, 0},
	} {
		s.put(p[:], tt.seq)
		if got, ok := s.parse(binary.BigEndian.Uint64(p[:]), tt.next); !ok || got != tt.seq {
			t.Errorf("seq %d from %d: got %d %v", tt.seq, tt.next, got, ok)
		}
		if _, ok := other.parse(binary.BigEndian.Uint64(p[:]), tt.next); ok {
			t.Error("taken for another stream's")
		}
		if _, ok := foreign.parse(binary.BigEndian.Uint64(p[:]), tt.next); ok {
			t.Error("taken for another run's")
		}
	}
	// Below zero there is nothing.
	s.put(p[:], 1<<24-1)
	if seq, ok := s.parse(binary.BigEndian.Uint64(p[:]), 0); ok {
		t.Errorf("got %d", seq)
	}
}
