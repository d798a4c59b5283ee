package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// The test binary is also the program of its child processes.
func TestMain(m *testing.M) {
	if done, err := runAsChild(os.Args[1:]); done {
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestSmoke runs one work of each kind with every Go library, briefly. A row with
// figures means that client and server agree on all messages.
func TestSmoke(t *testing.T) {
	r := &runner{self: os.Args[0], rounds: 1, span: time.Millisecond, least: 100, log: io.Discard}
	works := map[string]bool{
		"work=burst/qos=2/payload=10": true, "work=publish/qos=0/payload=8192": true, "work=receive/qos=0/payload=1024": true,
		"work=publish/qos=1/payload=10/window=100": true, "work=pair/qos=0/payload=1024/window=100": true,
		"work=pair/qos=1/payload=1024/window=100": true, "work=connect/transport=tls": true,
	}
	for _, w := range allWorks(10) {
		if !works[w.id] {
			continue
		}
		delete(works, w.id)
		rows, err := r.runWork(t.Context(), &w, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if want := len(w.clients) - 2; len(rows) != want { // without those in C and JavaScript
			t.Errorf("%s: %d rows, want %d", w.id, len(rows), want)
		}
		for _, x := range rows {
			if x.Failed != "" || len(x.Samples) != 1 || x.Samples[0].CPUNS <= 0 || x.Samples[0].Units <= 0 {
				t.Errorf("%s, %s: %+v, %s", w.id, x.Client, x.Samples, x.Failed)
			}
		}
	}
	for id := range works {
		t.Errorf("there is no %s", id)
	}
}

// TestMismatch: a count that differs from the expected one gives no figure.
func TestMismatch(t *testing.T) {
	s, err := startServer(os.Args[0], "sink", "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	c := conf{client: ourClient, work: "publish", addr: s.addr, payload: 10, window: 10}
	p, err := start(1, append([]string{os.Args[0]}, c.args()...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	if err := p.ask("", "ready"); err != nil {
		t.Fatal(err)
	}
	s.patience = 100 * time.Millisecond
	if s.want, err = s.count(); err != nil {
		t.Fatal(err)
	}
	w := work{units: 2, conf: c} // expects two messages for each one sent
	if _, err := turn(&w, s, p, ourClient, 1); err == nil || !strings.Contains(err.Error(), "counted {in:1 out:0 connections:1}, expected {in:2 ") {
		t.Errorf("one message of two: %v", err)
	}
	w.units = 0
	if _, err := turn(&w, s, p, ourClient, 2); err != nil && !strings.Contains(err.Error(), "counted {in:3 ") {
		t.Errorf("three messages of two: %v", err)
	}
	p.stop()
	if err := s.await(); err == nil || !strings.Contains(err.Error(), "counted {in:3 out:0 connections:1}, expected {in:2 ") {
		t.Errorf("three messages of two, in the end: %v", err)
	}
}

func rowOf(client string, cpu ...float64) row {
	x := row{Work: "work=x", Client: client}
	for _, ns := range cpu {
		x.Samples = append(x.Samples, sample{Units: 1, CPUNS: ns, RSSBytes: 7 << 10})
	}
	return x
}

func TestJudge(t *testing.T) {
	failed := rowOf("paho.golang", 1)
	failed.Failed = "lost 1"
	rows := []row{rowOf(ourClient, 10, 30, 20), rowOf("paho.mqtt.golang", 900, 1000, 1100), rowOf("gomqtt", 90, 100, 110), failed}
	w := &work{id: "work=x"}
	for _, c := range []struct {
		g    goal
		want string
	}{
		{goal{ours: ourClient, peers: paho, must: 50, aim: 51}, "CPU of mqttload less than that of paho.mqtt.golang 50x 51x 50x holds"},
		{goal{ours: ourClient, peers: paho, must: 20, aim: 50}, "CPU of mqttload less than that of paho.mqtt.golang 20x 50x 50x holds, aim too"},
		{goal{ours: ourClient, must: 6, aim: 7}, "CPU of mqttload less than that of gomqtt 6x 7x 5x MISSED"},
		{goal{ours: ourClient, peers: []string{"paho.golang"}, must: 6, aim: 7}, "CPU of mqttload less than that of the best peer 6x 7x  not measured"},
		{goal{ours: engine, must: 6, aim: 7}, "CPU of mqttload, engine less than that of the best peer 6x 7x  not measured"},
		{goal{ours: ourClient, rss: 7}, "memory per idle connection 7 KiB  7.0 KiB holds"},
		{goal{ours: ourClient, rss: 6}, "memory per idle connection 6 KiB  7.0 KiB MISSED"},
	} {
		v, ok := judge(w, c.g, rows)
		if got := strings.Join([]string{v.text, v.must, v.aim, v.seen, v.verdict}, " "); got != c.want || !ok {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if _, ok := judge(&work{id: "work=y"}, goal{must: 1}, rows); ok {
		t.Error("a work that was left out is judged")
	}
}

func TestRender(t *testing.T) {
	x := rowOf(ourClient, 1234.4, 20, 30_000)
	x.Work, x.Samples[1].Writes = "work=publish/qos=0/payload=10", 0.25
	y := rowOf("gomqtt")
	y.Work, y.Version, y.Failed = x.Work, "v1", "a|b"
	var b bytes.Buffer
	if err := render(&b, &runner{rounds: 3}, []row{x, y}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"3 rounds, median (min-max)",
		"| work=publish/qos=0/payload=10 | mqttload | 1,234 (20-30,000) |  | 0 | 7.0 | 1x |\n",
		"| work=publish/qos=0/payload=10 | gomqtt v1 | FAILED: a\\|b | | | | |\n",
		"| CPU per message or connection | mqttload | gomqtt |\n|---|---:|---:|\n| work=publish/qos=0/payload=10 | 1,234 ns | FAILED |\n",
		"| work=publish/qos=0/payload=10 | CPU of mqttload less than that of the best peer | 4x | 10x |  | not measured |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestInTurn(t *testing.T) {
	for _, c := range []struct{ n, window, most int }{{10, 3, 3}, {2, 5, 2}, {7, 7, 7}, {1, 1, 1}} {
		open, most, ended := 0, 0, map[int]int{}
		next := 0
		err := inTurn(c.n, c.window, func() (int, error) {
			next++
			open++
			most = max(most, open)
			return next, nil
		}, func(i int) error {
			open--
			ended[i]++
			return nil
		})
		if err != nil || next != c.n || open != 0 || most != c.most || len(ended) != c.n {
			t.Errorf("%+v: sent %d, open %d, at most %d, ended %d, %v", c, next, open, most, len(ended), err)
		}
	}
}

func TestLineReader(t *testing.T) {
	b, err := io.ReadAll(&lineReader{left: 3 * (toolPayload + 1)})
	if want := strings.Repeat(strings.Repeat("x", toolPayload)+"\n", 3); err != nil || string(b) != want {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestConf(t *testing.T) {
	c := conf{"gomqtt, no delay", "pair", "127.0.0.1:1", "/ca", 2, 10, 100}
	if got, err := parseConf(c.args()); err != nil || got != c {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"qos=x", "colour=red"} {
		if _, err := parseConf([]string{bad}); err == nil {
			t.Error(fmt.Sprintf("%s is taken", bad))
		}
	}
}
