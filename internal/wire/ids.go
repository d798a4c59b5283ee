package wire

// IDs is the set of packet identifiers that one side has in use, and what it
// keeps with each. Identifiers walk 1..65535 and wrap; one lies in the slot
// of its low bits, so that giving, finding and freeing it costs no search and
// no allocation, and an identifier whose slot is taken is passed over. Two in
// use never share a slot, so doubling the table never makes any collide. It
// starts small: a connection that sends nothing holds nothing.
type IDs[T any] struct {
	slots []Slot[T] // the length is a power of two
	used  int
	last  uint16 // identifier given last
}

// Slot is the place of one packet identifier.
type Slot[T any] struct {
	ID    uint16
	State uint8 // 0: the slot is free
	Value T
}

// MaxIDs is how many packet identifiers there are: 0 is none. [MQTT-2.2.1-3]
const MaxIDs = 65_535

const (
	firstSlots = 8
	maxSlots   = MaxIDs + 1
)

// Used is how many identifiers are in use.
func (s *IDs[T]) Used() int { return s.used }

// Slots are all places there are, taken and free. A later Take may replace them.
func (s *IDs[T]) Slots() []Slot[T] { return s.slots }

// Take gives the next free identifier, in the given state, which is not 0. It
// returns nil when all are in use.
func (s *IDs[T]) Take(state uint8) *Slot[T] {
	if 2*s.used >= len(s.slots) && len(s.slots) < maxSlots {
		s.grow()
	}
	if s.used == MaxIDs {
		return nil
	}
	mask := len(s.slots) - 1
	for {
		s.last++
		// [MQTT-2.2.1-3] A packet id is non-zero and not in use.
		if at := &s.slots[int(s.last)&mask]; s.last != 0 && at.State == 0 {
			at.ID, at.State = s.last, state
			s.used++
			return at
		}
	}
}

// Find returns the slot of an identifier in use, or nil.
func (s *IDs[T]) Find(id uint16) *Slot[T] {
	if len(s.slots) == 0 {
		return nil
	}
	at := &s.slots[int(id)&(len(s.slots)-1)]
	if at.State == 0 || at.ID != id {
		return nil
	}
	return at
}

// Free ends the use of an identifier.
func (s *IDs[T]) Free(at *Slot[T]) {
	*at = Slot[T]{}
	s.used--
}

func (s *IDs[T]) grow() {
	old := s.slots
	s.slots = make([]Slot[T], max(firstSlots, 2*len(old)))
	for _, at := range old {
		if at.State != 0 {
			s.slots[int(at.ID)&(len(s.slots)-1)] = at
		}
	}
}
