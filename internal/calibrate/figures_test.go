package calibrate

import (
	"testing"

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
		connects: map[scenarios.Transport]*connects{scenarios.TCP: {bare: []float64{50, 40}, ours: []float64{60, 60}}},
		idle:     map[scenarios.Transport]idle{scenarios.TCP: {bytes: 9000}},
		allocs:   map[byte]float64{0: 0.5},
		pacers:   []pacing{{rate: 1000, kind: "sleep", p50: []float64{200e3}, p99: []float64{1e6}, missed: []float64{0.0005}}},
	}
	in, own := &place{m: m, name: result.PlaceIn}, &place{m: m, name: result.PlaceOwn, peer: &peer{}}
	m.places = []*place{in, own}
	own.cells = []cell{
		engineCell(result.WorkEngine, 0, 10, packet.V311, 100, 300),
		engineCell(result.WorkEngine, 1, 10, packet.V311, 300, 600),
		engineCell(result.WorkEngine, 0, 10, packet.V5, 120, 330),
		engineCell(workCounting, 0, 10, packet.V311, 50, 60),
		engineCell(workRecording, 0, 10, packet.V311, 90, 120),
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
		{"ledger and latency per message, client", 50, result.FigureHolds},
		{"allocations per message, client and broker", 0.5, result.FigureMisses},
		{"pacer's lateness, p50", 200e3, result.FigureMisses},
		{"pacer's lateness, p99", 1e6, result.FigureNoGoal},
		{"rate missed by", 0.05, result.FigureHolds},
		{"CPU per connection, CONNECT and CONNACK included", 1.35, result.FigureMisses},
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
