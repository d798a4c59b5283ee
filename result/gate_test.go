package result

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestParseGate(t *testing.T) {
	for text, want := range map[string]Gate{
		"p99 < 5ms":                             {Metric: "latency.end_to_end.p99_ns", Op: "<", Limit: 5e6},
		"p99.9<=250us @ qos=1":                  {Metric: "latency.end_to_end.p999_ns", Op: "<=", Limit: 250e3, Selector: []Selector{{"qos", []string{"1"}}}},
		"max < 1.5 s":                           {Metric: "latency.end_to_end.max_ns", Op: "<", Limit: 1.5e9},
		"median < 7μs":                          {Metric: "summary.median_ns", Op: "<", Limit: 7e3},
		"mean<7µs":                              {Metric: "summary.mean_ns", Op: "<", Limit: 7e3},
		"ack.p99 < 5ms":                         {Metric: "latency.ack.p99_ns", Op: "<", Limit: 5e6},
		"latency.tls_handshake.max_ns < 100 ms": {Metric: "latency.tls_handshake.max_ns", Op: "<", Limit: 100e6},
		"latency.end_to_end.count > 0":          {Metric: "latency.end_to_end.count", Op: ">", Limit: 0},
		"req_per_sec >= 30k/s":                  {Metric: "summary.req_per_sec", Op: ">=", Limit: 30e3},
		"req_per_sec >= 3e4":                    {Metric: "summary.req_per_sec", Op: ">=", Limit: 30e3},
		"bytes_per_sec > 10MiB/s":               {Metric: "summary.bytes_per_sec", Op: ">", Limit: 10 << 20},
		"io.bytes_written < 1.5k":               {Metric: "io.bytes_written", Op: "<", Limit: 1536},
		"io.bytes_written < 2Mi":                {Metric: "io.bytes_written", Op: "<", Limit: 2 << 20},
		"io.bytes_written < 2kB":                {Metric: "io.bytes_written", Op: "<", Limit: 2e3},
		"io.bytes_written < 2GB":                {Metric: "io.bytes_written", Op: "<", Limit: 2e9},
		"lost == 0":                             {Metric: "delivery.lost", Op: "==", Limit: 0},
		"lost < 0.1%":                           {Metric: "delivery.lost", Op: "<", Limit: 0.1, Percent: true},
		"stddev < 5 %":                          {Metric: "summary.stddev_ns", Op: "<", Limit: 5, Percent: true},
		"clients.lost != 3":                     {Metric: "clients.lost", Op: "!=", Limit: 3},
		"errors == 0":                           {Metric: "errors", Op: "==", Limit: 0},
		"cpu.user_ns < 1m":                      {Metric: "cpu.user_ns", Op: "<", Limit: 60e9},
		"summary.n >= 15":                       {Metric: "summary.n", Op: ">=", Limit: 15},
		"p50 > 0":                               {Metric: "latency.end_to_end.p50_ns", Op: ">", Limit: 0},
		"lost == 0 @ qos=1,2 payload=8KiB":      {Metric: "delivery.lost", Op: "==", Selector: []Selector{{"qos", []string{"1,2", "1", "2"}}, {"payload", []string{"8KiB"}}}},
		"lost == 0 @ qos=1/payload=@a%2Fb":      {Metric: "delivery.lost", Op: "==", Selector: []Selector{{"qos", []string{"1"}}, {"payload", []string{"@a/b"}}}},
	} {
		g, err := ParseGate(text, false)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		same := g.Metric == want.Metric && g.Op == want.Op && g.Limit == want.Limit && g.Percent == want.Percent &&
			slices.EqualFunc(g.Selector, want.Selector, func(a, b Selector) bool { return a.Key == b.Key && slices.Equal(a.Values, b.Values) })
		if !same || g.String() != text {
			t.Errorf("%s: %+v", text, g)
		}
	}
}

func TestParseGateRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"p99 < 5":                   `gate "p99 < 5": latency.end_to_end.p99_ns is a time and needs a unit: write 5ms, or ns, us, s`,
		"p99 < 5KiB":                `"KiB" is not a unit of latency.end_to_end.p99_ns, a time: use ns, us, ms or s`,
		"lost < 5ms":                `"ms" is not a unit of delivery.lost, a count: use k or M, or none`,
		"bytes_per_sec > 8KB/s":     `gate "bytes_per_sec > 8KB/s": KB means 1000 to some and 1024 to others: write 8kB or 8KiB`,
		"bytes_per_sec > 5ms":       "a number of bytes: use B, KiB",
		"p98 < 5ms":                 `unknown metric "p98": did you mean p9`,
		"req_per_second > 5":        `unknown metric "req_per_second": did you mean req_per_sec?`,
		"loss == 0":                 `unknown metric "loss": did you mean lost?`,
		"latency.end_to_end.p99 <1": `unknown metric "latency.end_to_end.p99": did you mean latency.end_to_end.p99_ns?`,
		"acl.p99 < 1ms":             "unknown metric",
		"p99":                       "no operator: write",
		"p99 = 5ms":                 `"=" is not an operator: use one of`,
		"p99 ! 5ms":                 "is not an operator",
		"< 5ms":                     "no metric before the operator",
		"p99 <":                     "no value after the operator",
		"req_per_sec > 30,000":      "write it without separators, or as 30k",
		"p99 < NaNms":               "is not a number with a unit",
		"p99 < Infs":                "is not a number with a unit",
		"p99 < 1e400s":              "out of range",
		"p99 < 1e308s":              "out of range",
		"p99 < 5%":                  "cannot be a percentage",
		"p99 < 5ms @":               "nothing after @",
		"p99 < 5ms @ qos":           `"qos" is not PARAM=VALUE`,
		"p99 < 5ms @ qos=":          `"qos=" is not PARAM=VALUE`,
		"":                          "no operator",
	} {
		_, err := ParseGate(text, true)
		var ge *gateError
		if !errors.As(err, &ge) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}

func TestEveryMetricHasAValue(t *testing.T) {
	h := &Histogram{Count: 1}
	f := 1.0
	c := &Case{
		Latency: Latency{h, h, h, h, h, h, h, h, h, h, h, h, h},
		Summary: Summary{1, &f, &f, &f, &f, &f, &f, &f, &f, &f, &f},
		Ceiling: &Ceiling{}, Offered: &Offered{Achieved: &f}, Losses: &Losses{}, Aliases: &Aliases{},
	}
	for _, name := range metricNames() {
		m, ok := findMetric(name)
		if !ok || m.of(c) == nil {
			t.Errorf("%s: found %t, without a value", name, ok)
		}
	}
	for short, long := range shortNames {
		if _, ok := metrics()[long]; !ok {
			t.Errorf("%s is short for %s, which is not a metric", short, long)
		}
	}
	for part, whole := range wholes {
		if metrics()[part].path == "" || metrics()[whole].path == "" {
			t.Errorf("%s of %s: no such metric", part, whole)
		}
	}
	if n := len(metrics()); n < 110 {
		t.Errorf("only %d metrics", n)
	}
}

func gateReport() *Report {
	f := func(v float64) *float64 { return &v }
	return &Report{Cases: []Case{
		{
			ID: "qos=0/payload=10", Params: []Param{{"qos", "0"}, {"payload", "10"}},
			Summary: Summary{N: 1, MeanNS: f(1000), ReqPerSec: f(1e6)}, Latency: Latency{EndToEnd: &Histogram{P99NS: 4e6}},
			Delivery: Delivery{Expected: 1000, Lost: 1},
		},
		{
			ID: "qos=1/payload=8192", Params: []Param{{"qos", "1"}, {"payload", "8192"}},
			Summary: Summary{N: 2, MeanNS: f(2000), StdDevNS: f(50), ReqPerSec: f(5e5)}, Latency: Latency{EndToEnd: &Histogram{P99NS: 6e6}},
		},
	}}
}

func TestEvaluate(t *testing.T) {
	for _, tt := range []struct {
		text   string
		failIf bool
		passed string // one letter per result
	}{
		{"p99 < 5ms", false, "yn"},
		{"p99 > 5ms", true, "yn"},
		{"p99 < 5ms @ qos=0", false, "y"},
		{"p99 > 5ms @ payload=8KiB", true, "n"},
		{"p99 == 4ms", false, "yn"},
		{"p99 != 4ms", true, "yn"},
		{"p99 <= 6ms", false, "yy"},
		{"p99 >= 6ms", true, "yn"},
		{"lost == 0", false, "ny"},
		{"lost > 0", true, "ny"},
		{"lost <= 0.1%", false, "yn"}, // nothing was expected of the second: no percentage
		{"stddev < 5%", false, "ny"},  // one iteration has no stddev
		{"stddev > 5%", true, "ny"},
		{"ack.p99 < 1s", false, "nn"},
		{"ack.p99 > 1s", true, "nn"},
		{"req_per_sec >= 600k", false, "yn"},
		{"p99 < 5ms @ qos=2", false, "n"}, // selects nothing: no pass
		{"p99 > 5ms @ qos=2", true, "n"},
	} {
		g, err := ParseGate(tt.text, tt.failIf)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range g.Evaluate(gateReport()) {
			letter := "n"
			if r.Passed {
				letter = "y"
			}
			got += letter
			if r.Passed != (r.Message == "") || r.Rule != g.String() {
				t.Errorf("%s: %+v", g, r)
			}
		}
		if got != tt.passed {
			t.Errorf("%s: %s, want %s", g, got, tt.passed)
		}
	}
	g, _ := ParseGate("p99 > 5ms", true)
	r := g.Evaluate(gateReport())[1]
	if r.Message != "latency.end_to_end.p99_ns is 6.000 ms" || *r.Value != 6e6 || r.Limit != 5e6 || r.Rule != "fail if p99 > 5ms" || r.Case != "qos=1/payload=8192" {
		t.Errorf("%+v", r)
	}
}

func TestGateCheck(t *testing.T) {
	cases := [][]Param{{{"qos", "0"}, {"payload", "10"}}, {{"qos", "1"}, {"payload", "8192"}, {"rate", "8000"}}}
	for text, want := range map[string]string{
		"lost == 0":                      "",
		"lost == 0 @ qos=1":              "",
		"lost == 0 @ payload=8KiB":       "",
		"lost == 0 @ qos=1,0":            "",
		"lost == 0 @ qso=1":              `no case has a parameter "qso": did you mean qos?`,
		"lost == 0 @ qos=0,2":            "no case has qos=2: the values are 0, 1",
		"lost == 0 @ qos=2":              "no case has qos=2: the values are 0, 1",
		"lost == 0 @ payload=8k":         "",
		"lost == 0 @ payload=8Ki,10B":    "",
		"lost == 0 @ rate=8k":            "",
		"lost == 0 @ rate=8KiB":          "no case has rate=8KiB: the values are 8000",
		"lost == 0 @ payload=8kB":        "no case has payload=8kB: the values are 10, 8192",
		"lost == 0 @ payload=8KB":        "payload=8KB: KB means 1000 to some and 1024 to others: write 8kB or 8KiB",
		"lost == 0 @ payload=10,8KB":     "payload=8KB: KB means 1000 to some",
		"lost == 0 @ qos=0 payload=8k":   "no case matches the whole selector",
		"lost == 0 @ qos=0 payload=8192": "no case matches the whole selector",
	} {
		g, err := ParseGate(text, false)
		if err != nil {
			t.Fatal(err)
		}
		err = g.Check(cases)
		var ge *gateError
		if want == "" && err != nil || want != "" && (!errors.As(err, &ge) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

func TestReadGates(t *testing.T) {
	gates, err := ReadGates(strings.NewReader("# limits\n\np99 < 5ms @ qos=1 # the slow one\nfail if lost > 0\r\n"))
	if err != nil || len(gates) != 2 || gates[0].FailIf || !gates[1].FailIf || gates[0].Text != "p99 < 5ms @ qos=1" {
		t.Errorf("%v %v", gates, err)
	}
	_, err = ReadGates(strings.NewReader("p99 < 5\nlost == 0\nlots == 0\n"))
	if err == nil || !strings.Contains(err.Error(), "line 1: gate") || !strings.Contains(err.Error(), "line 3: gate") {
		t.Errorf("error %v, want lines 1 and 3", err)
	}
	if _, err := ReadGates(strings.NewReader("# nothing\n")); err == nil {
		t.Error("a file without gates passes")
	}
}
