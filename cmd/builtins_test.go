package cmd

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// shrunk are the flags that make a built-in scenario a matter of a second, and
// how many clients its last case then has.
var shrunk = map[string]struct {
	flags   string
	clients int64
}{
	"default":      {"--qos 1 --payload 10 --protocol 3.1.1,5 --messages 20", 2},
	"quick":        {"--qos 0,2 --payload 10 --messages 20", 2},
	"tls":          {"--qos 1 --payload 1KiB --messages 20", 2},
	"turbomqtt":    {"--qos 0,1,2 --payload 10 --messages 20 --launches 1", 2}, // one for each iteration
	"fan-out":      {"--qos 1 --subscribers 1,5 --messages 20", 6},
	"fan-in":       {"--qos 1 --publishers 5 --messages 20", 6},
	"many-to-many": {"--qos 0 --publishers 3 --subscribers 3 --messages 20", 6},
	"shared":       {"--publishers 2 --subscribers 1,3 --messages 20", 5},
	"publish":      {"--qos 0,1,2 --publishers 3 --messages 20", 3},
	"connect":      {"--idle 20 --launches 2", 40},
	"churn":        {"--rate 0 --pairs 3 --messages 20", 40}, // one for each turn
	"offline":      {"--qos 1,2 --payload 10 --pairs 3 --messages 20", 6},
	// A second of an open loop fits into the window: a busy machine only makes it late.
	"idle":   {"--idle 5 --rate 60 --duration 1s", 7},
	"steady": {"--qos 1 --pairs 2 --rate 60 --duration 1s", 4},
	"ramp":   {"--pairs 2 --stages 500ms:100,500ms:0", 4},
}

func TestBuiltinsRun(t *testing.T) {
	for _, s := range scenarios.Builtins() {
		want, ok := shrunk[s.Name]
		if !ok {
			t.Errorf("%s has no shrunk form", s.Name)
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "r.json")
			args := append([]string{"run", s.Name, "--quiet", "-o", path, "--warmup", "0"}, strings.Fields(want.flags)...)
			if !strings.Contains(want.flags, "--duration") && !strings.Contains(want.flags, "--stages") {
				args = append(args, "--iterations", "2")
			}
			var stdout, stderr bytes.Buffer
			if code := Main(context.Background(), Process{Args: args, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}); code != 0 {
				t.Fatalf("exit code %d\n%s%s", code, &stderr, &stdout)
			}
			r, err := result.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			checkShrunk(t, r, want.clients)
		})
	}
}

func checkShrunk(t *testing.T, r *result.Report, clients int64) {
	last := r.Cases[len(r.Cases)-1]
	if r.Run.Status != result.StatusComplete || last.Clients.Connected != clients || last.Clients.Planned != clients {
		t.Errorf("%s, clients %+v, want %d", r.Run.Status, last.Clients, clients)
	}
	for _, c := range r.Cases {
		d := c.Delivery
		if err := d.Check(); err != nil || d.Lost != 0 || d.Duplicated != 0 || d.Unsent != 0 || d.Delivered != d.Expected {
			t.Errorf("%s: %+v %v", c.ID, d, err)
		}
		if c.Summary.MeanNS == nil || r.Scenario == nil {
			t.Errorf("%s: nothing measured", c.ID)
		}
		if offered := c.Offered; offered != nil && offered.MessagesPerSec <= 0 {
			t.Errorf("%s: offered %+v", c.ID, offered)
		}
	}
}
