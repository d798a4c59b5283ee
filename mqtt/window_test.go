package mqtt

import "testing"

// TestWindowQuota: a request uses a packet identifier but no place in the window.
func TestWindowQuota(t *testing.T) {
	w := window{limit: 2}
	w.reserve(idControl, 0)
	first, second := w.reserve(idPublish1, 7), w.reserve(idPublish2, 8)
	if !w.full() || w.ids.Used() != 3 || w.find(first).Value != 7 {
		t.Errorf("full %v, %d ids used", w.full(), w.ids.Used())
	}
	w.free(w.find(second))
	if w.full() {
		t.Error("full with one of two in flight")
	}
	w.dropControl()
	if w.ids.Used() != 1 || w.used != 1 {
		t.Errorf("%d ids and %d messages left, want 1 and 1", w.ids.Used(), w.used)
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
