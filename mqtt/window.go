package mqtt

// States of a packet id that this side has in use.
const (
	idFree     = iota
	idPublish1 // QoS 1 PUBLISH sent, PUBACK awaited
	idPublish2 // QoS 2 PUBLISH sent, PUBREC awaited
	idRelease  // PUBREL sent, PUBCOMP awaited
	idControl  // SUBSCRIBE or UNSUBSCRIBE sent, its acknowledgement awaited
)

// window is the set of packet ids in use and the send quota. Ids walk 1..65535
// and wrap; the slot of an id is its low bits, so that look-up is an index and
// an id whose slot is taken is skipped. Two ids in use never share a slot, so
// doubling the table never makes any collide. It starts small: an idle client
// holds a few bytes.
type window struct {
	limit int // most PUBLISH packets in flight: min(asked, Receive Maximum)
	used  int // PUBLISH packets in flight
	taken int // ids in use, SUBSCRIBE and UNSUBSCRIBE included
	last  uint16
	id    []uint16
	state []uint8
	stamp []int64
}

const maxSlots = 1 << 16

// full reports whether the send quota is used up. [MQTT-4.9.0-2]
func (w *window) full() bool { return w.used >= w.limit }

// take reserves the next free id; 0 means that all are in use.
func (w *window) take(state uint8, stamp int64) uint16 {
	if 2*w.taken >= len(w.id) && len(w.id) < maxSlots {
		w.grow()
	}
	mask := uint16(len(w.id) - 1)
	for range len(w.id) + 1 {
		w.last++
		// [MQTT-2.2.1-3] A packet id is non-zero and not in use.
		if w.last == 0 {
			w.last = 1
		}
		i := w.last & mask
		if w.state[i] == idFree {
			w.id[i], w.state[i], w.stamp[i] = w.last, state, stamp
			w.taken++
			if state != idControl {
				w.used++
			}
			return w.last
		}
	}
	return 0
}

// find returns the slot of an id in use, or -1.
func (w *window) find(id uint16) int {
	if len(w.id) == 0 {
		return -1
	}
	i := int(id) & (len(w.id) - 1)
	if w.state[i] == idFree || w.id[i] != id {
		return -1
	}
	return i
}

// free ends the use of slot i's id.
func (w *window) free(i int) {
	if w.state[i] != idControl {
		w.used--
	}
	w.taken--
	w.state[i] = idFree
}

func (w *window) grow() {
	old := *w
	n := max(8, 2*len(old.id))
	w.id, w.state, w.stamp = make([]uint16, n), make([]uint8, n), make([]int64, n)
	for i, s := range old.state {
		if s != idFree {
			j := int(old.id[i]) & (n - 1)
			w.id[j], w.state[j], w.stamp[j] = old.id[i], s, old.stamp[i]
		}
	}
}

// idSet is a set of packet ids: those of inbound QoS 2 messages between
// PUBLISH and PUBREL. Its 8 KiB are there only once an id has been added.
type idSet struct {
	bits *[1 << 16 / 64]uint64
	n    int
}

// add reports whether id was new.
func (s *idSet) add(id uint16) bool {
	if s.bits == nil {
		s.bits = new([1 << 16 / 64]uint64)
	}
	w, b := &s.bits[id/64], uint64(1)<<(id%64)
	if *w&b != 0 {
		return false
	}
	*w |= b
	s.n++
	return true
}

// remove reports whether id was there.
func (s *idSet) remove(id uint16) bool {
	if s.bits == nil {
		return false
	}
	w, b := &s.bits[id/64], uint64(1)<<(id%64)
	if *w&b == 0 {
		return false
	}
	*w &^= b
	s.n--
	return true
}
