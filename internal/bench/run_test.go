package bench

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// TestRunID: the id comes from the seed alone, and neighbours differ.
func TestRunID(t *testing.T) {
	seen := map[string]uint64{}
	for seed := range uint64(10_000) {
		id := RunID(seed)
		if len(id) != 8 || strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyz") != "" || id != RunID(seed) {
			t.Fatalf("RunID(%d) = %q", seed, id)
		}
		if other, ok := seen[id]; ok {
			t.Fatalf("seeds %d and %d have the same run id %s", other, seed, id)
		}
		seen[id] = seed
	}
}

// config is a small run of the default scenario against the embedded broker.
func config(t *testing.T, settings ...string) Config {
	t.Helper()
	sc, err := scenarios.Open("default")
	if err != nil {
		t.Fatal(err)
	}
	sc.Seed = 1
	settings = append([]string{"qos", "1", "payload", "10", "protocol", "5", "messages", "500", "warmup", "0", "iterations", "2"}, settings...)
	for i := 0; i < len(settings); i += 2 {
		if err := sc.Set(settings[i], settings[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	cases, err := sc.Cases()
	if err != nil {
		t.Fatal(err)
	}
	return Config{Cases: cases, Report: NewReport(sc, result.Tool{Version: "test"}, nil)}
}

// TestRun: from settings to a judged report, over both transports of the
// embedded broker.
func TestRun(t *testing.T) {
	cfg := config(t, "transport", "tcp,tls")
	gate, err := result.ParseGate("lost == 1", false)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Judge.Gates = []result.Gate{gate}
	launches := 0
	cfg.Observer.LaunchDone = func(int, *result.Case) {
		if launches++; len(cfg.Report.Cases) != launches {
			t.Errorf("%d cases in the report after launch %d", len(cfg.Report.Cases), launches)
		}
	}
	r, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := r.Run(t.Context())
	rep := cfg.Report
	if len(rep.Cases) != len(cfg.Cases) || launches != len(cfg.Cases) || rep.Run.Status != result.StatusComplete || rep.Run.Finished == nil || !rep.Target.Embedded {
		t.Errorf("%d launches, %+v, %+v", launches, rep.Run, rep.Target)
	}
	if len(out.Faults) != 1 || out.Faults[0].Class != Gate || len(rep.Gates) != len(cfg.Cases) {
		t.Errorf("faults %v of gates %+v", out.Faults, rep.Gates)
	}
	if len(cfg.Cases[0].Target.URLs) != 0 {
		t.Errorf("the settled case was changed: %v", cfg.Cases[0].Target.URLs)
	}
}

// TestRunStopped: a run that is stopped at the barrier before it publishes says
// so, and nothing of it failed.
func TestRunStopped(t *testing.T) {
	cfg := config(t)
	ctx, stop := context.WithCancelCause(t.Context())
	cfg.Observer.Phase = func(ctx context.Context, p load.Phase, _ load.Launch) error {
		if p == load.Publishing {
			stop(ErrInterrupted)
			<-ctx.Done()
		}
		return nil
	}
	r, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := r.Run(ctx)
	if len(out.Faults) != 1 || out.Faults[0].Class != Interrupted || cfg.Report.Run.Status != result.StatusPartial || cfg.Report.Cases[0].Delivery.Sent != 0 {
		t.Errorf("%v, %+v", out.Faults, cfg.Report)
	}
}

// TestRunUnreachable: where no target can be reached nothing is sent, and the
// report says why.
func TestRunUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "mqtt://" + l.Addr().String()
	l.Close()
	cfg := config(t, "url", url)
	r, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	out := r.Run(t.Context())
	if len(out.Faults) != 1 || out.Faults[0].Class != Unreachable || !strings.Contains(out.Faults[0].Msg, "connection refused") || cfg.Report.Run.Status != result.StatusFailed {
		t.Errorf("%v, %+v", out.Faults, cfg.Report.Run)
	}
}
