package calibrate

import (
	"fmt"
	"slices"
	"testing"
	"time"

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
		Options: Options{Idle: 100}, cal: &result.Calibration{}, transports: []scenarios.Transport{scenarios.TCP},
		connects:   map[scenarios.Transport]*connects{scenarios.TCP: {bare: []float64{50, 40}, exchange: []float64{75, 50}, ours: []float64{60, 60}}},
		idle:       map[scenarios.Transport]idle{scenarios.TCP: {bytes: 9000}},
		recordings: []recording{{loop: "closed loop", goal: recordGoal, cost: []float64{30, 50}}, {loop: "open loop", goal: recordGoal, cost: []float64{-2, 4}}},
		allocs:     map[byte]float64{0: 0.5},
		pacers:     []pacing{{rate: 1000, kind: "sleep", p50: []float64{200e3}, p99: []float64{1e6}, missed: []float64{0.0005}}},
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
		{"CPU per message, client", 2.5, result.FigureAim}, // 100/50, 300/100
		{"CPU per message, client", 2.5, result.FigureHolds},
		{"CPU per message, broker", 0.5, result.FigureAim},
		{"CPU per message, client, MQTT 5", 1.15, result.FigureMisses},
		{"writes per message", 0.002, result.FigureAim},
		{"CPU per message, broker", 0.5, result.FigureAim},
		{"writes per message", 0.002, result.FigureAim},
		{"recording per message", 40, result.FigureHolds},
		{"recording per message", 1, result.FigureNotMeasured},
		{"allocations per message, client and broker", 0.5, result.FigureMisses},
		{"pacer's lateness, p50", 200e3, result.FigureMisses},
		{"pacer's lateness, p99", 1e6, result.FigureNoGoal},
		{"rate missed by", 0.05, result.FigureHolds},
		{"CPU per connection, CONNECT and CONNACK included", 1.35, result.FigureMisses},
		{"CPU per connection, one write and one read of raw bytes included", 1.375, result.FigureNoGoal}, // 75/50, 50/40
		{"CPU per connection, CONNECT and CONNACK included", 1, result.FigureNoGoal},                     // 60/75, 60/50
		{"connections per second", 0, result.FigureNotMeasured},
		{"memory per idle connection", 9000, result.FigureMisses},
	}
	if len(m.cal.Figures) != len(want) {
		t.Fatalf("%d figures, want %d: %+v", len(m.cal.Figures), len(want), m.cal.Figures)
	}
	for i, f := range m.cal.Figures {
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
	m := &measurement{Options: Options{RunID: "r", Rounds: 9, Time: time.Millisecond, Many: 30}, cal: &result.Calibration{}, bare: []float64{40, 50}}
	m.full = &place{m: m, name: result.PlaceOwn, ends: &ends{Broker: map[scenarios.Transport]string{scenarios.TCP: "127.0.0.1:1"}}}
	if err := m.full.planFull(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, c := range m.full.cases {
		got = append(got, c.Params[0].Value+" "+c.Params[2].Value)
		if len(c.Load.Stages) == 0 || c.Load.Launches != fullRounds || c.Target.URLs[0].Port != 1 {
			t.Errorf("%s: %+v", c.ID, c.Load)
		}
		m.full.cells[i].own = []float64{float64(10 * (i + 1)), 80}
		m.full.cells[i].result = result.Case{Params: c.Params}
	}
	want := []string{"rate 1000", "rate 10000", "rate 100000", "pairs 1", "pairs 10", "many 30"}
	if !slices.Equal(got, want) {
		t.Fatalf("planned %q, want %q", got, want)
	}
	if n := m.full.cases[5].Load.Topics; n != 30 {
		t.Errorf("%d connections, want 30", n)
	}
	achieved := 9995.0
	m.full.cells[1].result.Offered = &result.Offered{MessagesPerSec: 10_000, Achieved: &achieved}
	m.fullFigures()
	figures := map[string]string{}
	for _, f := range m.cal.Figures {
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
