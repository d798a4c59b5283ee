package wire

// IDs is a table of the packet identifiers that one side has in use, with a value
// for each. The zero value is empty and holds no memory.
//
// Identifiers are reserved in turn from 1 to 65535, then from 1 again. The low bits
// of an identifier are the number of its slot, so that reserving, finding and
// freeing it need no search and no allocation. An identifier whose slot is in use
// is skipped. So no two identifiers share a slot, and none will after the table is
// doubled.
type IDs[T any] struct {
	slots []Slot[T] // the length is a power of two
	used  int
	last  uint16 // the identifier reserved last
}

// Slot is the place of one packet identifier.
type Slot[T any] struct {
	ID    uint16
	State uint8 // 0: the slot is free
	Value T
}

// MaxIDs is the number of packet identifiers; 0 is not one. [MQTT-2.2.1-3]
const MaxIDs = 65_535

const (
	firstSlots = 8
	maxSlots   = MaxIDs + 1
)

// Used returns the number of identifiers in use.
func (s *IDs[T]) Used() int { return s.used }

// Slots returns all slots, free ones too. They are valid until the next Reserve.
func (s *IDs[T]) Slots() []Slot[T] { return s.slots }

// Reserve returns the slot of the next free identifier and sets its state, which
// must not be 0. It returns nil if all identifiers are in use. The slot is valid
// until the next Reserve.
func (s *IDs[T]) Reserve(state uint8) *Slot[T] {
	if 2*s.used >= len(s.slots) && len(s.slots) < maxSlots {
		s.grow()
	}
	if s.used == MaxIDs {
		return nil
	}
	mask := len(s.slots) - 1
	for {
		s.last++
		// [MQTT-2.2.1-3] A new packet id is not 0 and not in use.
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

// Free makes the identifier of slot at available again.
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
