package broker

import "sort"

// maxPacketIDs is how many packet identifiers there are: 0 is none.
const maxPacketIDs = 65_535

// State of a packet identifier towards a subscriber.
const (
	awaitPuback byte = iota + 1
	awaitPubrec
	awaitPubcomp
)

type slot struct {
	id    uint16 // 0: free
	state byte
}

// window holds the messages in flight towards one subscriber, in an array: the
// identifiers walk 1..65535 and id lies in slot id mod len, so that giving and
// freeing one costs no search and no allocation. An identifier whose slot is
// taken is passed over.
type window struct {
	slots []slot     // the length is a power of two
	kept  []delivery // beside slots, of sessions that outlive their connection
	used  int        // slots taken
	last  uint16     // identifier given last
	seq   uint64
	quota int // how many more may be sent [MQTT5 4.9]
	max   int // the quota at the start
}

const firstSlots = 32

// open starts a connection: nothing is in flight on it yet.
func (w *window) open(limit int) { w.quota, w.max = limit, limit }

func (w *window) hasRoom() bool { return w.quota > 0 && w.used < maxPacketIDs }

// take gives an identifier. hasRoom must have said so.
func (w *window) take(state byte) uint16 {
	if 2*w.used >= len(w.slots) && len(w.slots) < 1<<16 {
		w.grow()
	}
	mask := len(w.slots) - 1
	for {
		w.last++
		if s := &w.slots[int(w.last)&mask]; w.last != 0 && s.id == 0 {
			s.id, s.state = w.last, state
			w.used++
			w.quota--
			return w.last
		}
	}
}

// grow doubles the array. Identifiers in different slots stay in different ones.
func (w *window) grow() {
	n := max(2*len(w.slots), firstSlots)
	slots := make([]slot, n)
	var kept []delivery
	if w.kept != nil {
		kept = make([]delivery, n)
	}
	for i, s := range w.slots {
		if s.id == 0 {
			continue
		}
		to := int(s.id) & (n - 1)
		slots[to] = s
		if kept != nil {
			kept[to] = w.kept[i]
		}
	}
	w.slots, w.kept = slots, kept
}

// keep remembers what identifier id carries.
func (w *window) keep(id uint16, d delivery) {
	if w.kept == nil {
		w.kept = make([]delivery, len(w.slots))
	}
	w.seq++
	d.seq, d.id = w.seq, id
	w.kept[int(id)&(len(w.slots)-1)] = d
}

// find returns the slot of id, or nil.
func (w *window) find(id uint16) *slot {
	if len(w.slots) == 0 {
		return nil
	}
	if s := &w.slots[int(id)&(len(w.slots)-1)]; s.id == id {
		return s
	}
	return nil
}

// released drops the message of id, which has reached its receiver, and
// returns the bytes to credit; the identifier stays taken until PUBCOMP.
func (w *window) released(id uint16) (cost int) {
	if w.kept == nil {
		return 0
	}
	d := &w.kept[int(id)&(len(w.slots)-1)]
	cost = d.cost
	d.msg, d.ids, d.cost, d.pubrel = nil, nil, 0, true
	return cost
}

// free ends the exchange of id and returns the bytes to credit.
func (w *window) free(s *slot) (cost int) {
	if w.kept != nil {
		d := &w.kept[int(s.id)&(len(w.slots)-1)]
		cost = d.cost
		*d = delivery{}
	}
	*s = slot{}
	w.used--
	// [MQTT5 4.9] The quota never rises above what it was at the start.
	w.quota = min(w.quota+1, w.max)
	return cost
}

// unfinished returns what has to be sent again on a new connection, in the
// order of the first sending. [MQTT-4.6.0-1]
func (w *window) unfinished() []delivery {
	var list []delivery
	for _, d := range w.kept {
		if d.id != 0 {
			list = append(list, d)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].seq < list[j].seq })
	return list
}
