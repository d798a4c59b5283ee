package bench

import (
	"slices"
	"testing"

	"github.com/mqttload/mqttload/internal/preflight"
)

func TestClassOf(t *testing.T) {
	line := func(s preflight.Status, c preflight.Cause) preflight.Line { return preflight.Line{Status: s, Cause: c} }
	for _, c := range []struct {
		lines []preflight.Line
		want  Class
	}{
		{nil, 0},
		{[]preflight.Line{line(preflight.OK, preflight.None), line(preflight.Warn, preflight.None)}, 0},
		{[]preflight.Line{line(preflight.Fail, preflight.Delivery)}, Delivery},
		{[]preflight.Line{line(preflight.Fail, preflight.Delivery), line(preflight.Fail, preflight.Incomplete)}, Delivery},
		{[]preflight.Line{line(preflight.Fail, preflight.Incomplete), line(preflight.Fail, preflight.Unreachable)}, Unreachable},
		{[]preflight.Line{line(preflight.Fail, preflight.Unreachable), line(preflight.Fail, preflight.Here)}, Usage},
	} {
		if got := classOf(c.lines); got != c.want {
			t.Errorf("%v: class %d, want %d", c.lines, got, c.want)
		}
	}
}

func TestCannotRun(t *testing.T) {
	got := CannotRun([]preflight.Cell{{ID: "a", Reason: "x"}, {ID: "b", Runs: true}, {ID: "c", Reason: "y"}, {ID: "d", Reason: "x"}})
	if want := []string{"cannot run a, d: x", "cannot run c: y"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	got = CannotRun(preflight.NoCells(nil, "x"))
	if len(got) != 0 {
		t.Errorf("no case: %q", got)
	}
}
