//go:build unix

package calibrate_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/calibrate"
	"github.com/mqttload/mqttload/internal/racing"
	"github.com/mqttload/mqttload/result"
)

// The test binary is also the other process, told by this variable.
const peerVariable = "MQTTLOAD_TEST_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(peerVariable) != "" {
		if err := calibrate.ServePeer(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func options() calibrate.Options {
	return calibrate.Options{
		RunID: "test", Rounds: 2, Time: time.Millisecond,
		Peer: func() *exec.Cmd {
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), peerVariable+"=1")
			return c
		},
	}
}

// TestRun is a whole calibration of a hundredth of the size: every case is there,
// run gets its ceilings from it, and the report is one that the other commands take.
func TestRun(t *testing.T) {
	r := &result.Report{Schema: result.Schema, Run: result.Run{ID: "test", Status: result.StatusComplete}}
	o, payloads, levels := options(), 3, 3
	if racing.Enabled {
		payloads, levels = 1, 1
		o.Settings = []calibrate.Setting{{Place: "", Key: "payload", Values: []string{"10"}}, {Place: "", Key: "qos", Values: []string{"0"}}}
	}
	if err := calibrate.Run(t.Context(), o, r); err != nil {
		t.Fatal(err)
	}
	if n := len(r.Calibration.Answers); n != 5 {
		t.Errorf("%d known answers, want 5", n)
	}
	for _, a := range r.Calibration.Answers {
		// A busy machine may delay messages.
		if !a.Passed && !strings.Contains(a.Name, "delays") {
			t.Errorf("wrong answer: %+v", a)
		}
	}
	// 2 transports x payloads x each QoS, and each QoS of MQTT 5, at two places.
	if want := 2 * (2*payloads*levels + levels); len(r.Cases) != want {
		t.Errorf("%d cases, want %d", len(r.Cases), want)
	}
	for _, c := range r.Cases {
		if c.Summary.N != 2 || !c.Delivery.Clean() || c.CPU.UserNS+c.CPU.SystemNS <= 0 {
			t.Errorf("%s: n %d, cpu %+v, delivery %+v", c.ID, c.Summary.N, c.CPU, c.Delivery)
		}
	}
	ceilings(t, r)
	roundTrip(t, r)
}

// ceilings: a run over each transport gets one, against the broker of another
// process and against the embedded one.
func ceilings(t *testing.T, r *result.Report) {
	if r.Target.TLS == nil {
		t.Errorf("the target has no TLS: %+v", r.Target)
	}
	rate := 1000.0
	for _, embedded := range []bool{false, true} {
		for _, transport := range []string{"tcp", "tls"} {
			run := &result.Report{Target: result.Target{Embedded: embedded}, Cases: []result.Case{{
				Params:  []result.Param{{Key: "transport", Value: transport}, {Key: "qos", Value: "0"}, {Key: "payload", Value: "10"}},
				Summary: result.Summary{MessagesPerSec: &rate},
			}}}
			if result.AddCeilings(r, run); run.Cases[0].Ceiling == nil {
				t.Errorf("over %s, embedded %v: no ceiling", transport, embedded)
			}
		}
	}
}

// roundTrip writes and reads the report, audits it and compares it with itself.
func roundTrip(t *testing.T, r *result.Report) {
	var b bytes.Buffer
	if err := result.Encode(&b, r); err != nil {
		t.Fatal(err)
	}
	in, err := result.ParseInput("calibration.json", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got := in.Report.Calibration; len(got.Answers) != 5 || got.Rounds != 2 {
		t.Errorf("read back: %+v", got)
	}
	for _, f := range result.Audit(in) {
		if f.Level == result.LevelFail {
			t.Errorf("audit: %+v", f)
		}
	}
	c, err := result.Compare([]*result.Input{in}, []*result.Input{in}, result.CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Complete() || c.Regressions() != 0 {
		t.Errorf("compared with itself: %s", c.Sentence())
	}
}

// TestSettings: a bad transport is refused with its place.
func TestSettings(t *testing.T) {
	o := options()
	o.Settings = []calibrate.Setting{{Place: "--transport", Key: "transport", Values: []string{"carrier-pigeon"}}}
	if _, err := o.Scenario(); err == nil || !strings.Contains(err.Error(), "--transport") {
		t.Errorf("a wrong transport: %v", err)
	}
	o.Settings[0].Values[0] = "tcp"
	if _, err := o.Scenario(); err != nil {
		t.Error(err)
	}
}

// TestInterrupted: an end of the context ends the calibration with its cause.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("told to stop")
	o := options()
	o.Progress = func(string) { cancel(cause) }
	if err := calibrate.Run(ctx, o, &result.Report{}); !errors.Is(err, cause) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestPeerGone: a process that cannot serve is an error, not a hang.
func TestPeerGone(t *testing.T) {
	o := options()
	o.Peer = func() *exec.Cmd { return exec.Command("false") }
	if err := calibrate.Run(t.Context(), o, &result.Report{}); err == nil || !strings.Contains(err.Error(), "did not say where") {
		t.Errorf("a peer that ends at once: %v", err)
	}
}
