package mqtt

import "github.com/mqttload/mqttload/internal/wire"

// States of a packet id that this side uses.
const (
	idFree     = iota
	idPublish1 // QoS 1 PUBLISH sent, PUBACK awaited
	idPublish2 // QoS 2 PUBLISH sent, PUBREC awaited
	idRelease  // PUBREL sent, PUBCOMP awaited
	idControl  // SUBSCRIBE or UNSUBSCRIBE sent, its acknowledgement awaited
)

// slot is a packet id in use; its value is the stamp of the message.
type slot = wire.Slot[int64]

// window holds the packet ids in use and enforces the send quota.
type window struct {
	limit int // of PUBLISH packets in flight: see Client.Window
	used  int // PUBLISH packets in flight
	ids   wire.IDs[int64]
}

// full reports whether the send quota is used up. [MQTT-4.9.0-2]
func (w *window) full() bool { return w.used >= w.limit }

// reserve returns the next free id, or 0 if all are in use.
func (w *window) reserve(state uint8, stamp int64) uint16 {
	at := w.ids.Reserve(state)
	if at == nil {
		return 0
	}
	at.Value = stamp
	if state != idControl {
		w.used++
	}
	return at.ID
}

// find returns the slot of an id in use, or nil.
func (w *window) find(id uint16) *slot { return w.ids.Find(id) }

// free makes an id available again.
func (w *window) free(at *slot) {
	if at.State != idControl {
		w.used--
	}
	w.ids.Free(at)
}

// dropControl frees all ids of SUBSCRIBE and UNSUBSCRIBE packets.
func (w *window) dropControl() {
	slots := w.ids.Slots()
	for i := range slots {
		if slots[i].State == idControl {
			w.free(&slots[i])
		}
	}
}

// idSet is a set of packet ids: those of inbound QoS 2 messages between PUBLISH
// and PUBREL. Its 8 KiB are allocated when the first id is added.
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

// remove reports whether id was in the set.
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
