package result

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func oneCell(name string) *Input {
	return sampled(name, map[string][]float64{"qos=1": {10, 11, 12, 13, 14, 15}})
}

// TestUnlikeRuns changes one condition at a time: each is refused by its own key,
// and let pass, but noted, with it.
func TestUnlikeRuns(t *testing.T) {
	withTLS := func(in *Input) { in.Target.TLS = &TLS{Version: "TLS 1.3", Cipher: "A"} }
	for _, tt := range []struct {
		key        string
		base, head func(*Input)
	}{
		{"cpu", nil, func(in *Input) { in.Environment.CPU = "Other" }},
		{"cores", nil, func(in *Input) { in.Environment.Cores = 4 }},
		{"os", nil, func(in *Input) { in.Environment.OS = "windows" }},
		{"arch", nil, func(in *Input) { in.Environment.Arch = "arm64" }},
		{"gomaxprocs", nil, func(in *Input) { in.Environment.GOMAXPROCS = 1 }},
		{"target", nil, func(in *Input) { in.Target.Embedded, in.Target.URL = false, "mqtt://broker:1883" }},
		{"tls_version", nil, withTLS},
		{"tls_cipher", withTLS, func(in *Input) { in.Target.TLS = &TLS{Version: "TLS 1.3", Cipher: "B"} }},
		{"tls_verification", withTLS, func(in *Input) { in.Target.TLS = &TLS{Version: "TLS 1.3", Cipher: "A", Insecure: true} }},
		{"window", nil, func(in *Input) { in.Cells[0].Window = 10 }},
		{"operations", nil, func(in *Input) { in.Cells[0].OperationsPerMessage = 2 }},
		{"scenario", nil, func(in *Input) { in.Report.ScenarioHash = "other" }},
		{"tool", nil, func(in *Input) { in.ToolVersion = "v2.0.0" }},
	} {
		base, head := oneCell("a"), oneCell("b")
		if tt.base != nil {
			tt.base(base)
		}
		tt.head(head)
		_, err := Compare([]*Input{base}, []*Input{head}, CompareOptions{})
		var ue *UnlikeError
		if !errors.As(err, &ue) || len(ue.Differences) != 1 || ue.Differences[0].Key != tt.key || !slices.Contains(UnlikeKeys, tt.key) {
			t.Errorf("%s: error %v", tt.key, err)
			continue
		}
		c := compareFiles(t, base, head, CompareOptions{Allow: []string{tt.key}})
		if len(c.Allowed) != 1 || c.Allowed[0].Key != tt.key {
			t.Errorf("%s: allowed %v", tt.key, c.Allowed)
		}
		// Files of one side must be alike too.
		if tt.key == "cpu" {
			if _, err := Compare([]*Input{base, head}, []*Input{oneCell("c")}, CompareOptions{}); !errors.As(err, &ue) {
				t.Errorf("unlike files were pooled: %v", err)
			}
		}
	}
}

func TestUnlikeNamesEveryDifference(t *testing.T) {
	base, head := oneCell("a"), oneCell("b")
	base.Report.Scenario = map[string]any{"name": "x", "load": map[string]any{"inflight": 100, "iterations": 15}}
	head.Report.Scenario = map[string]any{"name": "y", "load": map[string]any{"inflight": 10, "iterations": 15}}
	head.Report.ScenarioHash, head.Environment.CPU, head.Cells[0].Window = "other", "Other", 10
	_, err := Compare([]*Input{base}, []*Input{head}, CompareOptions{})
	want := "compare: the runs differ (cpu: Example, Other; scenario: load.inflight=100, load.inflight=10; window: 100, 10 (qos=1)): " +
		"compare runs made under the same conditions, or allow cpu, scenario, window"
	if err == nil || err.Error() != want {
		t.Errorf("error %v\nwant  %s", err, want)
	}
}

func TestAlike(t *testing.T) {
	base, head := oneCell("a"), oneCell("b")
	head.Target.URL = "mqtt://127.0.0.1:2" // another port of the embedded broker
	base.Environment = Environment{OS: "Windows 11", Arch: "X64", CPU: "Intel(R) Core(TM)  i7", Cores: 16}
	head.Environment = Environment{OS: "windows", Arch: "amd64", CPU: "Intel Core i7", Cores: 16}
	base.ToolVersion = "devel"
	if _, err := Compare([]*Input{base}, []*Input{head}, CompareOptions{}); err != nil {
		t.Error(err)
	}
}

func TestNotices(t *testing.T) {
	base, head := oneCell("a"), oneCell("b")
	head.Started = base.Started.Add(-time.Hour)
	head.Status = StatusPartial
	head.Report.Environment.Kernel, base.Report.Environment.Kernel = "6.2", "6.1"
	base.Environment.CPU = ""
	c := compareFiles(t, base, head, CompareOptions{})
	var codes []string
	for _, w := range c.Warnings {
		codes = append(codes, w.Code)
		if w.Message == "" || w.Hint == "" {
			t.Errorf("%s says nothing", w.Code)
		}
	}
	if want := []string{CodeSwapped, CodePartialRun, CodeUnknownHost, CodeUnlike}; !slices.Equal(codes, want) {
		t.Errorf("warnings %v, want %v", codes, want)
	}
}

func TestDeliveryChanges(t *testing.T) {
	input := func(source, qos string, d Delivery) *Input {
		d.Scheduled, d.Sent, d.Expected, d.Delivered, d.Received = 1000, 1000, 1000, 1000-d.Lost, 1000-d.Lost+d.Duplicated
		c, in := Case{QoS: new(qos[0] - '0'), Delivery: d}, oneCell(source)
		cell := &in.Cells[0]
		cell.Params, cell.QoS, cell.Delivery, cell.Broken = []Param{{"qos", qos}}, c.QoS, &c.Delivery, c.Broken()
		return in
	}
	for _, tt := range []struct {
		qos        string
		base, head Delivery
		name       string // of the only change, "" for none
		regression bool
	}{
		{"0", Delivery{}, Delivery{}, "", false},
		{"0", Delivery{}, Delivery{Lost: 3}, "lost", false},
		{"1", Delivery{}, Delivery{Lost: 3}, "lost", true},
		{"2", Delivery{}, Delivery{Lost: 3}, "lost", true},
		{"1", Delivery{Lost: 3}, Delivery{}, "lost", false},
		{"1", Delivery{Lost: 3}, Delivery{Lost: 4}, "lost", false},
		{"1", Delivery{Lost: 3}, Delivery{Lost: 6}, "lost", true},
		{"1", Delivery{}, Delivery{Duplicated: 1}, "duplicated", false},
		{"2", Delivery{}, Delivery{Duplicated: 1}, "duplicated", true},
		{"0", Delivery{}, Delivery{Corrupted: 1}, "corrupted", true},
		{"0", Delivery{}, Delivery{Nacked: 1}, "rejected", true},
		{"1", Delivery{}, Delivery{Reordered: 1}, "reordered", false},
	} {
		cell := compareFiles(t, input("a", tt.qos, tt.base), input("b", tt.qos, tt.head), CompareOptions{}).Cells[0]
		if tt.name == "" {
			if len(cell.Delivery) != 0 {
				t.Errorf("%+v: changes %v", tt, cell.Delivery)
			}
			continue
		}
		if len(cell.Delivery) != 1 || cell.Delivery[0].Name != tt.name || cell.Delivery[0].Regression != tt.regression || cell.Regression != tt.regression {
			t.Errorf("%+v: changes %+v, regression %t", tt, cell.Delivery, cell.Regression)
		}
	}
	d := DeliveryChange{Name: "lost", Head: 3, HeadOf: 100_000, BaseOf: 1000}
	if got, want := d.text(new(byte(1))), "new: lost at QoS 1 3 of 100,000 (<0.01 %), was 0 (0 %)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLatencyDeltas(t *testing.T) {
	hist := func(values ...int64) *Histogram {
		h := NewHDR()
		for _, v := range values {
			Record(h, v, 1)
		}
		return NewHistogram(h)
	}
	a, b, h := oneCell("a"), oneCell("b"), oneCell("h")
	a.Cells[0].Latency = Latency{EndToEnd: hist(1000, 1000, 1000), Ack: hist(5)}
	b.Cells[0].Latency = Latency{EndToEnd: hist(100_000)}
	h.Cells[0].Latency = Latency{EndToEnd: hist(2000, 2000, 2000, 400_000)}
	c, err := Compare([]*Input{a, b}, []*Input{h}, CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range c.Cells[0].Latency {
		got = append(got, d.Leg+" "+d.Quantile)
		near(t, d.Quantile, d.Ratio, map[string]float64{"p50": 2, "p90": 4, "p99": 4, "p99.9": 4}[d.Quantile], 0.01)
	}
	if want := "end_to_end p50,end_to_end p90,end_to_end p99,end_to_end p99.9"; strings.Join(got, ",") != want {
		t.Errorf("deltas %v, want %s", got, want)
	}
	a.Cells[0].Latency.EndToEnd = &Histogram{Count: 3, HDR: "x"}
	if _, err := Compare([]*Input{a, b}, []*Input{h}, CompareOptions{}); err == nil || !strings.Contains(err.Error(), "end_to_end") {
		t.Errorf("a damaged histogram was merged: %v", err)
	}
}
