package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/calibrate"
)

// TestMain: the test binary is also the other process.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == peerArgument {
		if err := servePeer(context.Background(), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func smallOptions() options {
	return options{messages: 2000, connects: 8, idle: 16, many: 16, Options: calibrate.Options{
		RunID: "test", Rounds: 2, Time: time.Millisecond,
		Peer: func() *exec.Cmd { return exec.Command(os.Args[0], peerArgument) },
	}}
}

// TestRun is a whole measurement of a hundredth of the size: every figure is there.
func TestRun(t *testing.T) {
	m := &measurement{options: smallOptions()}
	if err := m.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(m.table) < 50 {
		t.Errorf("%d figures", len(m.table))
	}
	for _, f := range m.table {
		if f.Verdict == verdictNotMeasured && !strings.Contains(f.Reason, "noise") {
			t.Errorf("not measured: %+v", f)
		}
		if f.Value != nil && (f.Value.Median < f.Value.Min || f.Value.Median > f.Value.Max) {
			t.Errorf("spread out of order: %+v", f)
		}
	}
}

// TestInterrupted: an end of the context ends the measurement with its cause.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("told to stop")
	o := smallOptions()
	o.Progress = func(string) { cancel(cause) }
	if err := (&measurement{options: o}).run(ctx); !errors.Is(err, cause) {
		t.Errorf("interrupted: %v", err)
	}
}
