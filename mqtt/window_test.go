package mqtt

import (
	"math/rand/v2"
	"testing"
)

func TestWindowWraps(t *testing.T) {
	w := window{limit: 10}
	stuck := w.take(idPublish1, 7)
	if stuck != 1 {
		t.Fatalf("first id %d, want 1", stuck)
	}
	for i := range 200_000 {
		id := w.take(idPublish1, int64(i))
		if id == 0 || id == stuck {
			t.Fatalf("message %d got id %d", i, id)
		}
		at := w.find(id)
		if at < 0 || w.stamp[at] != int64(i) {
			t.Fatalf("id %d not found", id)
		}
		w.free(at)
	}
	if i := w.find(stuck); i < 0 || w.stamp[i] != 7 {
		t.Error("the stuck id was lost")
	}
	if len(w.id) > 16 {
		t.Errorf("%d slots for 2 ids in use", len(w.id))
	}
}

func TestWindowFull(t *testing.T) {
	w := window{limit: 65535}
	seen := make(map[uint16]bool)
	for range 65535 {
		id := w.take(idPublish2, 0)
		if id == 0 || seen[id] {
			t.Fatalf("id %d", id)
		}
		seen[id] = true
	}
	if !w.full() || w.take(idControl, 0) != 0 {
		t.Error("a 65,536th id")
	}
	w.free(w.find(40000))
	if id := w.take(idControl, 0); id != 40000 {
		t.Errorf("got id %d, the free one is 40000", id)
	}
}

// TestWindowRandom compares with a map.
func TestWindowRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	w := window{limit: 65535}
	model := map[uint16]int64{}
	var ids []uint16
	for i := range int64(300_000) {
		if len(ids) > 0 && (r.IntN(2) == 0 || len(ids) > 3000) {
			k := r.IntN(len(ids))
			id := ids[k]
			ids[k] = ids[len(ids)-1]
			ids = ids[:len(ids)-1]
			at := w.find(id)
			if at < 0 || w.stamp[at] != model[id] {
				t.Fatalf("id %d: slot %d", id, at)
			}
			w.free(at)
			delete(model, id)
			continue
		}
		id := w.take(idPublish1, i)
		if _, used := model[id]; used || id == 0 {
			t.Fatalf("id %d is in use", id)
		}
		model[id] = i
		ids = append(ids, id)
	}
	if w.used != len(model) || w.taken != len(model) {
		t.Errorf("used %d taken %d, want %d", w.used, w.taken, len(model))
	}
}

func TestIDSet(t *testing.T) {
	var s idSet
	if s.remove(5) || !s.add(5) || s.add(5) || !s.add(65535) || s.n != 2 {
		t.Error("add")
	}
	if !s.remove(5) || s.remove(5) || !s.remove(65535) || s.n != 0 {
		t.Error("remove")
	}
}
