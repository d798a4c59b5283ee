package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/calibrate"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// engineCell is a cell of the engine with the CPU times of two rounds.
func engineCell(work string, qos byte, payload int, v packet.Version, own ...float64) cell {
	return cell{
		work: work, own: own, other: []float64{own[0] / 2, own[1] / 2}, writes: []float64{0.001, 0.003},
		c: &scenarios.Case{QoS: qos, Protocol: v, Transport: scenarios.TCP, Payload: scenarios.Payload{Size: payload}},
	}
}

// TestFigures computes the table from fixed numbers.
func TestFigures(t *testing.T) {
	m := &measurement{
		options: options{idle: 100}, transports: []scenarios.Transport{scenarios.TCP},
		conns:  map[scenarios.Transport]*connects{scenarios.TCP: {bare: []float64{50, 40}, exchange: []float64{75, 50}, ours: []float64{60, 60}}},
		idles:  map[scenarios.Transport]idle{scenarios.TCP: {bytes: 9000}},
		allocs: map[byte]float64{0: 0.5},
		pacers: []pacing{{rate: 1000, kind: "sleep", p50: []float64{200e3}, p99: []float64{1e6}, missed: []float64{0.0005}}},
	}
	in, own := &place{m: m, name: result.PlaceIn}, &place{m: m, name: result.PlaceOwn, peer: &peer{}}
	m.places = []*place{in, own}
	own.cells = []cell{
		engineCell(result.WorkEngine, 0, 10, packet.V311, 100, 300),
		engineCell(result.WorkEngine, 1, 10, packet.V311, 300, 600),
		engineCell(result.WorkEngine, 0, 10, packet.V5, 120, 330),
	}
	echo := engineCell(workEcho, 0, 10, packet.V311, 50, 100)
	own.echoes = []*cell{&echo}
	m.figures()
	want := []struct {
		name    string
		median  float64 // of the ratio, or of the value where there is none
		verdict string
	}{
		{"CPU per message, client", 2.5, verdictAim}, // 100/50, 300/100
		{"CPU per message, client", 2.5, verdictHolds},
		{"CPU per message, broker", 0.5, verdictAim},
		{"CPU per message, client, MQTT 5", 1.15, verdictMisses},
		{"writes per message", 0.002, verdictAim},
		{"CPU per message, broker", 0.5, verdictAim},
		{"writes per message", 0.002, verdictAim},
		{"allocations per message, client and broker", 0.5, verdictMisses},
		{"pacer's lateness, p50", 200e3, verdictMisses},
		{"pacer's lateness, p99", 1e6, verdictNoGoal},
		{"rate missed by", 0.05, verdictHolds},
		{"CPU per connection, CONNECT and CONNACK included", 1.35, verdictMisses},
		{"CPU per connection, one write and one read of raw bytes included", 1.375, verdictNoGoal}, // 75/50, 50/40
		{"CPU per connection, CONNECT and CONNACK included", 1, verdictNoGoal},                     // 60/75, 60/50
		{"connections per second", 0, verdictNotMeasured},
		{"memory per idle connection", 9000, verdictMisses},
	}
	if len(m.table) != len(want) {
		t.Fatalf("%d figures, want %d: %+v", len(m.table), len(want), m.table)
	}
	for i, f := range m.table {
		s := f.Ratio
		if f.Against == "" {
			s = f.Value
		}
		median := 0.0
		if s != nil {
			median = s.Median
		}
		if f.Name != want[i].name || f.Verdict != want[i].verdict || median < want[i].median*0.9999 || median > want[i].median*1.0001 {
			t.Errorf("figure %d is %s: %v, %s; want %+v", i, f.Name, median, f.Verdict, want[i])
		}
	}
}

// TestFull plans a full calibration and computes its table from fixed numbers.
func TestFull(t *testing.T) {
	m := &measurement{options: options{many: 30, Options: calibrate.Options{RunID: "r", Rounds: 9, Time: time.Millisecond}}, bare: []float64{40, 50}}
	m.open = &place{m: m, name: result.PlaceOwn, ends: &ends{Broker: map[scenarios.Transport]string{scenarios.TCP: "127.0.0.1:1"}}}
	if err := m.open.planFull(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, c := range m.open.cases {
		got = append(got, c.Params[0].Value+" "+c.Params[2].Value)
		if len(c.Load.Stages) == 0 || c.Load.Launches != fullRounds || c.Target.URLs[0].Port != 1 {
			t.Errorf("%s: %+v", c.ID, c.Load)
		}
		m.open.cells[i].own = []float64{float64(10 * (i + 1)), 80}
		m.open.cells[i].result = result.Case{Params: c.Params}
	}
	want := []string{"rate 1000", "rate 10000", "rate 100000", "pairs 1", "pairs 10", "many 30"}
	if !slices.Equal(got, want) {
		t.Fatalf("planned %q, want %q", got, want)
	}
	if n := m.open.cases[5].Load.Topics; n != 30 {
		t.Errorf("%d connections, want 30", n)
	}
	achieved := 9995.0
	m.open.cells[1].result.Offered = &result.Offered{MessagesPerSec: 10_000, Achieved: &achieved}
	m.fullFigures()
	figures := map[string]string{}
	for _, f := range m.table {
		s := f.Value
		if f.Against != "" {
			s = f.Ratio
		}
		if s != nil {
			figures[f.Name+" "+f.Params[0].Value] = fmt.Sprintf("%.4g %s", s.Median, f.Verdict)
		}
	}
	for what, want := range map[string]string{
		"open loop's rate missed by 10000":       "0.05 holds",
		"CPU per message, client, at 20000/s 1":  "1 -",
		"CPU per message, client, at 20000/s 10": "1.125 -",     // 50/40, 80/80
		"CPU per message, client, at 10000/s 30": "1.55 misses", // 60/40, 80/50
		"open loop's rate missed by 1000":        "",
	} {
		if figures[what] != want {
			t.Errorf("%s: %q, want %q", what, figures[what], want)
		}
	}
}

func TestPacketSize(t *testing.T) {
	for payload, want := range map[int]int{10: 2 + 2 + 6 + 10, 119: 2 + 127, 120: 3 + 128, 8192: 3 + 8200} {
		c := &scenarios.Case{Payload: scenarios.Payload{Size: payload}, Clients: scenarios.Clients{Topic: "t/r1/%i"}}
		topic := packet.Publish{Topic: []byte("t/r1/1"), Payload: make([]byte, payload)}
		b, err := topic.Append(nil, packet.V311)
		if err != nil {
			t.Fatal(err)
		}
		if got := packetSize(c); got != want || len(b) != want {
			t.Errorf("payload %d: %d bytes, the codec makes %d, want %d", payload, got, len(b), want)
		}
	}
}

func TestFigureVerdicts(t *testing.T) {
	must, aim := 2.0, 1.5
	value := func(v float64) *spread { return &spread{v, v, v} }
	for _, c := range []struct {
		name string
		f    figure
		want string
	}{
		{"aim reached", figure{Value: value(1.5), Must: &must, Aim: &aim}, verdictAim},
		{"between", figure{Value: value(1.6), Must: &must, Aim: &aim}, verdictHolds},
		{"exactly must", figure{Value: value(2), Must: &must, Aim: &aim}, verdictHolds},
		{"beyond", figure{Value: value(2.01), Must: &must, Aim: &aim}, verdictMisses},
		{"no aim", figure{Value: value(0), Must: &must}, verdictHolds},
		{"no goal", figure{Value: value(9)}, verdictNoGoal},
		{"the ratio counts", figure{Value: value(900), Ratio: value(1.9), Against: "x", Must: &must}, verdictHolds},
		{"no ratio", figure{Value: value(1), Against: "x", Must: &must}, verdictNotMeasured},
		{"a value in doubt", figure{Value: value(1), Must: &must, Reason: "why"}, verdictNotMeasured},
		{"nothing", figure{Must: &must, Reason: "why"}, verdictNotMeasured},
	} {
		c.f.judge()
		if c.f.Verdict != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.f.Verdict, c.want)
		}
		if (c.f.Reason != "") != (c.want == verdictNotMeasured) {
			t.Errorf("%s: reason %q", c.name, c.f.Reason)
		}
	}
}

func TestSpreadAndratios(t *testing.T) {
	if s := spreadOf([]float64{30, 10, 20, 40}); *s != (spread{25, 10, 40}) {
		t.Errorf("spread %+v", *s)
	}
	if s := spreadOf(nil); s != nil {
		t.Errorf("the spread of nothing is %+v", *s)
	}
	// Round by round: 10/5, 30/10; 8/0 has no ratio, the last no partner.
	if s := spreadOf(ratios([]float64{10, 30, 8, 7}, []float64{5, 10, 0})); *s != (spread{2.5, 2, 3}) {
		t.Errorf("ratios %+v", *s)
	}
}

func TestRender(t *testing.T) {
	must, aim, memory := 4.0, 2.5, 8192.0
	m := &measurement{options: options{Options: calibrate.Options{Rounds: 5}}, table: []figure{
		{
			Name: "CPU per message, client", Unit: "ns", Against: "raw echo", Must: &must, Aim: &aim,
			Params: []result.Param{param("place", "own-process"), param("transport", "tcp"), param("payload", 10), param("qos", 0)},
			Value:  &spread{Median: 151.26, Min: 120, Max: 1834}, Ratio: &spread{Median: 4.126, Min: 3, Max: 5.5},
		},
		{Name: "memory per idle connection", Unit: "bytes", Must: &memory, Value: &spread{Median: 6144, Min: 6144, Max: 6144}},
		{Name: "difference", Params: []result.Param{param("pairs", 1)}, Unit: "ns", Value: &spread{Median: -5.25, Min: -1200, Max: 3}},
		{Name: "unknown", Must: &must, Reason: "no /proc here"},
	}}
	for i := range m.table {
		m.table[i].judge()
	}
	var b strings.Builder
	if err := render(&b, m); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"5 interleaved rounds, medians (least-most); CPU is that of getrusage.",
		"| CPU per message, client | own-process, tcp, 10 B, QoS 0 | 151 ns (120 ns-1.83 μs) | 4.13x raw echo (3.00-5.50) | at most 4x, aim 2.5x | misses |",
		"| memory per idle connection |  | 6.0 KiB |  | at most 8.0 KiB | holds |",
		"| difference | 1 pair | -5.25 ns (-1.2 μs-3 ns) |  |  | - |",
		"| unknown |  | NA |  | at most 4 | not measured: no /proc here |",
		"1 of 3 goals hold, 0 of them reach the aim; 1 missed, 1 not measured.",
		"- missed: CPU per message, client (own-process, tcp, 10 B, QoS 0): 4.13x raw echo (3.00-5.50), at most 4x, aim 2.5x",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in:\n%s", want, &b)
		}
	}
}
