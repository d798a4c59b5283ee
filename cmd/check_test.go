//go:build unix

package cmd

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/preflight"
	"github.com/mqttload/mqttload/tlsconf"
)

// expired serves TLS with a certificate that ended yesterday, sets a variable to
// its URL and writes its CA: expired NAME FILE
func expired(ts *testscript.TestScript, _ bool, args []string) {
	b, err := tlsconf.ThrowAway(nil, time.Now().Add(-31*24*time.Hour))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.CAPEM(), 0o644))
	l, err := broker.Listen("mqtts", "127.0.0.1:0", b.ServerConfig())
	ts.Check(err)
	srv := broker.New(broker.Config{})
	go func() { _ = srv.Serve(l) }()
	ts.Defer(func() { _ = srv.Close() })
	ts.Setenv(args[0], "mqtts://"+l.Addr().String())
}

func TestExitOf(t *testing.T) {
	line := func(s preflight.Status, c preflight.Cause) preflight.Line { return preflight.Line{Status: s, Cause: c} }
	for _, c := range []struct {
		lines []preflight.Line
		want  int
	}{
		{nil, 0},
		{[]preflight.Line{line(preflight.OK, preflight.None), line(preflight.Warn, preflight.None)}, 0},
		{[]preflight.Line{line(preflight.Fail, preflight.Delivery)}, 5},
		{[]preflight.Line{line(preflight.Fail, preflight.Delivery), line(preflight.Fail, preflight.Incomplete)}, 4},
		{[]preflight.Line{line(preflight.Fail, preflight.Incomplete), line(preflight.Fail, preflight.Unreachable)}, 3},
		{[]preflight.Line{line(preflight.Fail, preflight.Unreachable), line(preflight.Fail, preflight.Here)}, 2},
	} {
		if got := exitCodes[classOf(c.lines)]; got != c.want {
			t.Errorf("%v: exit %d, want %d", c.lines, got, c.want)
		}
	}
}

func TestCannotRun(t *testing.T) {
	got := cannotRun([]preflight.Cell{{ID: "a", Reason: "x"}, {ID: "b", Runs: true}, {ID: "c", Reason: "y"}, {ID: "d", Reason: "x"}})
	if want := []string{"cannot run a, d: x", "cannot run c: y"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	got = cannotRun(preflight.NoCells(nil, "x"))
	if len(got) != 0 {
		t.Errorf("no case: %q", got)
	}
}
