package broker

import (
	"sort"

	"github.com/mqttload/mqttload/internal/wire"
)

// maxPacketIDs is the number of packet identifiers: 1 to 65,535.
const maxPacketIDs = wire.MaxIDs

// States of a packet identifier used for a subscriber.
const (
	awaitPuback byte = iota + 1
	awaitPubrec
	awaitPubcomp
)

// slot is a packet identifier in use.
type slot = wire.Slot[struct{}]

// window holds the messages in flight to one subscriber.
type window struct {
	ids   wire.IDs[struct{}]
	kept  []delivery // by the low bits of the identifier; of sessions that outlive their connection
	seq   uint64
	quota int // how many more may be sent [MQTT5 4.9]
	max   int // the quota at the start
}

// open starts a connection: nothing is in flight on it yet. [MQTT-4.9.0-1]
func (w *window) open(limit int) { w.quota, w.max = limit, limit }

func (w *window) hasRoom() bool { return w.quota > 0 && w.ids.Used() < maxPacketIDs }

// take returns a free identifier. hasRoom must be true.
//
// [MQTT-2.2.1-4] [MQTT-4.3.2-1] [MQTT-4.3.3-1], [MQTT-2.3.1-4] of 3.1.1
func (w *window) take(state byte) uint16 {
	w.quota--
	return w.ids.Reserve(state).ID
}

// keep stores the delivery that identifier id stands for.
func (w *window) keep(id uint16, d delivery) {
	if n := len(w.ids.Slots()); len(w.kept) < n {
		old := w.kept
		w.kept = make([]delivery, n)
		for _, d := range old {
			if d.id != 0 {
				*w.place(d.id) = d
			}
		}
	}
	w.seq++
	d.seq, d.id = w.seq, id
	*w.place(id) = d
}

func (w *window) place(id uint16) *delivery { return &w.kept[int(id)&(len(w.kept)-1)] }

// held returns the delivery that identifier id stands for, or nil if it is not kept.
func (w *window) held(id uint16) *delivery {
	if w.kept == nil {
		return nil
	}
	if d := w.place(id); d.id == id {
		return d
	}
	return nil
}

// find returns the slot of id, or nil.
func (w *window) find(id uint16) *slot { return w.ids.Find(id) }

// released drops the message of id, which has reached its receiver, and returns
// the bytes to credit. The identifier stays in use until PUBCOMP.
func (w *window) released(id uint16) (cost int) {
	d := w.held(id)
	if d == nil {
		return 0
	}
	cost = d.cost
	d.msg, d.ids, d.cost, d.pubrel = nil, nil, 0, true
	return cost
}

// free ends the exchange in slot s and returns the bytes to credit.
func (w *window) free(s *slot) (cost int) {
	if d := w.held(s.ID); d != nil {
		cost = d.cost
		*d = delivery{}
	}
	w.ids.Free(s)
	// [MQTT5 4.9] The quota never rises above what it was at the start.
	w.quota = min(w.quota+1, w.max)
	return cost
}

// unfinished returns the deliveries to be resent on a new connection, in the
// order in which they were sent first. [MQTT-4.6.0-1]
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
