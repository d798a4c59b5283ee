package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// runner has the settings of a run.
type runner struct {
	self        string // this program
	rounds      int
	span        time.Duration // of one measurement, about
	least       int           // messages of one measurement
	connections int
	only        string
	onlyClient  string
	// Paths of the peers that are not Go libraries; "" leaves one out.
	libmosquitto, mqttjs, mqttload string
	out, log                       io.Writer
}

// row is one client at one work.
type row struct {
	Work    string   `json:"work"`
	Unit    string   `json:"unit"`
	Client  string   `json:"client"`
	Version string   `json:"version,omitempty"`
	Failed  string   `json:"failed,omitempty"` // why there are no figures
	Samples []sample `json:"samples"`
}

// command is how a client's process is started.
func (r *runner) command(client string, args []string) []string {
	switch client {
	case "libmosquitto":
		return append([]string{r.libmosquitto}, args...)
	case "mqtt.js":
		return append([]string{"node", "--expose-gc", filepath.Join(r.mqttjs, "mqttjs.js")}, args...)
	}
	return append([]string{r.self}, args...)
}

// has reports whether a client can be started.
func (r *runner) has(client string) bool {
	return client != "libmosquitto" && client != "mqtt.js" ||
		client == "libmosquitto" && r.libmosquitto != "" || client == "mqtt.js" && r.mqttjs != ""
}

// run does all works, one after the other.
func (r *runner) run(ctx context.Context) ([]row, error) {
	dir, err := os.MkdirTemp("", "peers-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var rows []row
	for _, w := range allWorks(r.connections) {
		if !strings.Contains(w.id, r.only) {
			continue
		}
		more, err := r.runWork(ctx, &w, dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.id, err)
		}
		rows = append(rows, more...)
	}
	tools, err := r.runTools(ctx)
	rows = append(rows, tools...)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("no work has %q in its name", r.only)
	}
	return rows, err
}

// runWork measures every client in every round, in turns.
func (r *runner) runWork(ctx context.Context, w *work, dir string) ([]row, error) {
	var rows []row
	for _, client := range w.clients {
		if r.has(client) && strings.Contains(client, r.onlyClient) {
			rows = append(rows, row{Work: w.id, Unit: w.unit, Client: client})
		}
	}
	if !w.tls {
		dir = ""
	}
	for round := range r.rounds {
		for i := range rows {
			// A peer may disturb the next one: the order changes from round to round.
			x := &rows[(i+round)%len(rows)]
			if x.Failed != "" {
				continue
			}
			fmt.Fprintf(r.log, "%s, round %d of %d: %s\n", w.id, round+1, r.rounds, x.Client)
			err := r.sampleInto(x, w, dir)
			if ctx.Err() != nil {
				return nil, errors.New("interrupted")
			}
			if err != nil {
				x.Failed = err.Error()
				fmt.Fprintf(r.log, "FAILED: %s, %s: %v\n", w.id, x.Client, err)
			}
		}
	}
	return rows, nil
}

// sampleInto measures against a new server, so that no client is affected by the
// one before.
func (r *runner) sampleInto(x *row, w *work, dir string) error {
	s, err := startServer(r.self, w.serverOf(x.Client), dir)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	defer s.stop()
	got, version, err := r.measure(w, s, x.Client)
	if err == nil {
		x.Samples, x.Version = append(x.Samples, got), version
	}
	return err
}

// spread is the median, minimum and maximum of some figures.
type spread struct{ median, min, max float64 }

func spreadOf(x *row, figure func(sample) float64) spread {
	if x.Failed != "" || len(x.Samples) == 0 {
		return spread{}
	}
	var v []float64
	for _, s := range x.Samples {
		v = append(v, figure(s))
	}
	slices.Sort(v)
	n := len(v)
	return spread{(v[(n-1)/2] + v[n/2]) / 2, v[0], v[n-1]}
}

func cpuOf(s sample) float64 { return s.CPUNS }
