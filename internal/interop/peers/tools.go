package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// toolWork is one program that publishes, with the command line that users give it.
// For a program that reads messages from standard input, reading is part of the
// work.
var toolWork = work{
	id: "work=tool/qos=0/payload=1024", unit: "message", server: "sink",
	goals: []goal{{ours: "mqttload run", must: 10, aim: 20}},
}

const toolPayload = 1024

// tool is a program that publishes n messages. The difference of two runs, with few
// and with many messages, removes the cost of its start.
type tool struct {
	name  string
	few   int
	many  int
	lines bool // reads one message per line
	argv  func(host, port string, n int) []string
}

// tools returns the installed tools, and the names of the missing ones.
func (r *runner) tools() (found []tool, missing []string) {
	if r.mqttload != "" {
		found = append(found, tool{"mqttload run", 20_000, 2_000_000, false, func(host, port string, n int) []string {
			return []string{r.mqttload, "run", "--url", "mqtt://" + net.JoinHostPort(host, port), "--shape", "publish", "--qos", "0", "--protocol", "3.1.1",
				"--payload", fmt.Sprint(toolPayload), "--messages", fmt.Sprint(n), "--warmup", "0", "--iterations", "1", "--launches", "1", "--no-progress"}
		}})
	}
	if path, err := exec.LookPath("mosquitto_pub"); err == nil {
		found = append(found, tool{"mosquitto_pub -l", 20_000, 220_000, true, func(host, port string, _ int) []string {
			return []string{path, "-h", host, "-p", port, "-t", topic, "-q", "0", "-l"}
		}})
	} else {
		missing = append(missing, "mosquitto_pub")
	}
	if r.mqttjs != "" {
		found = append(found, tool{"mqtt pub --multiline (mqtt.js)", 5_000, 55_000, true, func(host, port string, _ int) []string {
			return []string{"node", filepath.Join(r.mqttjs, "node_modules/mqtt/build/bin/mqtt.js"), "pub", "-h", host, "-p", port, "-t", topic, "-q", "0", "-M", "-s"}
		}})
	}
	return found, missing
}

// runTools measures every tool in every round, in turns.
func (r *runner) runTools(ctx context.Context) ([]row, error) {
	if !strings.Contains(toolWork.id, r.only) {
		return nil, nil
	}
	found, missing := r.tools()
	for _, name := range missing {
		fmt.Fprintf(r.log, "SKIPPED: %s is not installed\n", name)
	}
	found = slices.DeleteFunc(found, func(t tool) bool { return !strings.Contains(t.name, r.onlyClient) })
	rows := make([]row, len(found))
	for i := range found {
		rows[i] = row{Work: toolWork.id, Unit: toolWork.unit, Client: found[i].name}
	}
	for round := range r.rounds {
		for i, t := range found {
			if rows[i].Failed != "" {
				continue
			}
			fmt.Fprintf(r.log, "%s, round %d of %d: %s\n", toolWork.id, round+1, r.rounds, t.name)
			s, err := r.slope(ctx, t)
			if ctx.Err() != nil {
				return nil, errors.New("interrupted")
			}
			if err != nil {
				rows[i].Failed = err.Error()
				fmt.Fprintf(r.log, "FAILED: %s: %v\n", t.name, err)
				continue
			}
			rows[i].Samples = append(rows[i].Samples, s)
		}
	}
	return rows, nil
}

// slope is the cost of a message from two runs of a tool.
func (r *runner) slope(ctx context.Context, t tool) (sample, error) {
	s, err := startServer(r.self, toolWork.server, "")
	if err != nil {
		return sample{}, fmt.Errorf("server: %w", err)
	}
	defer s.stop()
	var cpu, elapsed [2]time.Duration
	for i, n := range []int{t.few, t.many} {
		if cpu[i], elapsed[i], err = runTool(ctx, t, s, n); err != nil {
			return sample{}, err
		}
	}
	units := float64(t.many - t.few)
	return sample{
		Units: t.many - t.few, CPUNS: float64(cpu[1]-cpu[0]) / units,
		UnitsPerSec: units / (elapsed[1] - elapsed[0]).Seconds(),
	}, nil
}

func runTool(ctx context.Context, t tool, s *server, n int) (cpu, elapsed time.Duration, err error) {
	host, port, _ := net.SplitHostPort(s.addr)
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	cmd := pinned(ctx, 1, t.argv(host, port, n))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if t.lines {
		cmd.Stdin = &lineReader{left: n * (toolPayload + 1)}
	}
	began := time.Now()
	if err := cmd.Run(); err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
		return 0, 0, fmt.Errorf("%w: %s", err, line)
	}
	elapsed = time.Since(began)
	s.want.add(counts{in: int64(n), connections: anyNumber})
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), elapsed, s.await()
}

// lineReader produces messages of toolPayload bytes, one per line.
type lineReader struct{ left int }

func (l *lineReader) Read(p []byte) (int, error) {
	if l.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), l.left)
	for i := range p[:n] {
		p[i] = 'x'
		if (l.left-i-1)%(toolPayload+1) == 0 {
			p[i] = '\n'
		}
	}
	l.left -= n
	return n, nil
}
