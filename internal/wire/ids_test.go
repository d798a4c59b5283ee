package wire

import (
	"math/rand/v2"
	"testing"
)

// reserve returns an identifier with value v, or 0 if all are in use.
func reserve(s *IDs[int], v int) uint16 {
	at := s.Reserve(1)
	if at == nil {
		return 0
	}
	at.Value = v
	return at.ID
}

func TestIDsWrap(t *testing.T) {
	var s IDs[int]
	stuck := reserve(&s, 7)
	if stuck != 1 {
		t.Fatalf("first id %d, want 1", stuck)
	}
	for i := range 200_000 {
		id := reserve(&s, i)
		if id == 0 || id == stuck {
			t.Fatalf("message %d got id %d", i, id)
		}
		at := s.Find(id)
		if at == nil || at.Value != i {
			t.Fatalf("id %d not found", id)
		}
		s.Free(at)
	}
	if at := s.Find(stuck); at == nil || at.Value != 7 {
		t.Error("the stuck id was lost")
	}
	if len(s.Slots()) > 16 {
		t.Errorf("%d slots for 2 ids in use", len(s.Slots()))
	}
}

func TestIDsAllInUse(t *testing.T) {
	var s IDs[int]
	seen := make(map[uint16]bool)
	for range MaxIDs {
		id := reserve(&s, 0)
		if id == 0 || seen[id] {
			t.Fatalf("id %d", id)
		}
		seen[id] = true
	}
	if s.Reserve(1) != nil {
		t.Error("a 65,536th id")
	}
	s.Free(s.Find(40_000))
	if id := reserve(&s, 0); id != 40_000 {
		t.Errorf("got id %d, the free one is 40000", id)
	}
}

// TestIDsRandom compares IDs with a map.
func TestIDsRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s IDs[int]
	model := map[uint16]int{}
	var ids []uint16
	for i := range 300_000 {
		if len(ids) > 0 && (r.IntN(2) == 0 || len(ids) > 3000) {
			k := r.IntN(len(ids))
			id := ids[k]
			ids[k] = ids[len(ids)-1]
			ids = ids[:len(ids)-1]
			at := s.Find(id)
			if at == nil || at.Value != model[id] {
				t.Fatalf("id %d: slot %v", id, at)
			}
			s.Free(at)
			delete(model, id)
			if s.Find(id) != nil || s.Find(0) != nil {
				t.Fatalf("id %d is found once it is free", id)
			}
			continue
		}
		id := reserve(&s, i)
		if _, used := model[id]; used || id == 0 {
			t.Fatalf("id %d is in use", id)
		}
		model[id] = i
		ids = append(ids, id)
	}
	if s.Used() != len(model) {
		t.Errorf("%d used, want %d", s.Used(), len(model))
	}
}
