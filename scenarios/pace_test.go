package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/tlsconf"
)

// pacing is the settled pace of a load in short.
func pacing(l Load) string {
	var parts []string
	for _, st := range l.Stages {
		parts = append(parts, fmt.Sprintf("%v:%g-%g", st.Duration, st.From, st.To))
	}
	return fmt.Sprintf("%s %v %d+%d %s", strings.Join(parts, ","), l.Duration, l.Warmup, l.Iterations, l.Arrival)
}

func TestPace(t *testing.T) {
	for in, want := range map[string]string{
		"rate: 1000":                                         "18s:1000-1000 18s 3+15 constant",
		"rate: 10k, duration: 60s, warmup: 5":                "1m0s:10000-10000 1m0s 5+55 constant",
		"rate_per_client: 50, publishers: 200":               "18s:10000-10000 18s 3+15 constant",
		"interval: 20ms, pairs: 200":                         "18s:10000-10000 18s 3+15 constant",
		"interval: 10ms, topics: 4, topics_per_publisher: 4": "18s:100-100 18s 3+15 constant",
		"rate: 100, ramp: 10s":                               "10s:0-100,15s:100-100 25s 10+15 constant",
		"rate: 100, ramp: 2s, duration: 10s":                 "2s:0-100,8s:100-100 10s 3+7 constant",
		"rate: 1.5M, arrival: poisson":                       "18s:1.5e+06-1.5e+06 18s 3+15 poisson",
		"stages: '30s:1k,1m:10k,30s:0'":                      "30s:0-1000,1m0s:1000-10000,30s:10000-0 2m0s 3+117 constant",
		"stages: [0s:1k, 10s:1k, 0:2k, 10s:2k]":              "10s:1000-1000,10s:2000-2000 20s 3+17 constant",
		"rate: 300, messages: 1000, warmup: 0":               "3.331666666s:300-300 3.331666666s 0+4 constant",
		"rate: 300, messages: 1000, duration: 2s, warmup: 0": "2s:300-300 2s 0+2 constant",
		"rate: 0, interval: 0s, duration: 0s":                " 0s 3+15 constant",
		"duration: 81s":                                      " 0s 3+15 constant",
		"duration: 5s, messages: 100":                        " 5s 3+15 constant",
		"shape: subscribe, duration: 3500ms":                 " 3.5s 3+1 constant",
		"shape: connect":                                     " 0s 0+1 constant",
	} {
		if got := pacing(casesOf(t, parse(t, "load: {"+in+"}"))[0].Load); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	// 81 s are 3 warm-up iterations of 2 s and 15 of 5 s.
	if l := casesOf(t, parse(t, "load: {duration: 81s}"))[0].Load; l.MinTime != 5*time.Second {
		t.Errorf("least time %v", l.MinTime)
	}
	checkIDs(t, parse(t, "matrix: {rate: [500, 1k]}"), "qos=0/payload=10/protocol=3.1.1/rate=500", "qos=0/payload=10/protocol=3.1.1/rate=1000")
}

// TestPaceByFlag: a flag is stronger than the scenario, and a scenario's
// warm-up was not made for a flag's duration.
func TestPaceByFlag(t *testing.T) {
	for _, tt := range []struct {
		scenario string
		set      []string
		want     string
	}{
		{"load: {interval: 10ms}", []string{"rate", "7"}, "18s:7-7 18s 3+15 constant"},
		{"matrix: {rate: [1, 2]}", []string{"rate-per-client", "7"}, "18s:7-7 18s 3+15 constant"},
		{"load: {stages: '5s:9'}", []string{"interval", "1s", "duration", "4s"}, "4s:1-1 4s 1+3 constant"},
		{"load: {rate: 9}", []string{"stages", "10s:5,10s:5"}, "10s:0-5,10s:5-5 20s 3+17 constant"},
		{"load: {rate: 9, duration: 60s}", []string{"iterations", "5"}, "8s:9-9 8s 3+5 constant"},
		{"load: {rate: 9}", []string{"duration", "2s"}, "2s:9-9 2s 0+2 constant"},
		{"load: {rate: 9}", []string{"stages", "1s:9,1s:9,1s:0"}, "1s:0-9,1s:9-9,1s:9-0 3s 0+3 constant"},
		{"load: {rate: 9}", []string{"rate", "0"}, " 0s 3+15 constant"},
	} {
		c := casesOf(t, set(t, parse(t, tt.scenario), tt.set...))
		if got := pacing(c[0].Load); got != tt.want || len(c) != 1 {
			t.Errorf("%s %v: %s, want %s", tt.scenario, tt.set, got, tt.want)
		}
	}
	err := set(t, parse(t, "name: x"), "rate", "5").Set("interval", "1s")
	checkErrors(t, err, "--interval: --rate is given too, and both set the rate: keep one")
	for _, tt := range []struct{ set, want string }{
		{"rate 9 duration 2s warmup 3", "--warmup: a warm-up of 3 s leaves nothing to measure of 2s: make duration longer or warmup shorter"},
		{"rate 9 duration 20s iterations 5", "--iterations: a duration of 20s with a warm-up of 3 s gives 17 iterations of 1 s, not 5: remove iterations"},
		{"duration 20s min-time 1s", "--min-time: duration and min_time both size the iterations: keep one"},
	} {
		_, err := set(t, parse(t, "name: x"), strings.Fields(tt.set)...).Cases()
		checkErrors(t, err, tt.want)
	}
}

func TestPaceErrors(t *testing.T) {
	for in, want := range map[string]string{
		"rate: -1":              "rate -1: rate must be messages per second, such as 500, 10k, 1.5M or 90/m",
		"rate: 1e3":             "rate 1e3: rate must be messages per second, such as 500, 10k, 1.5M or 90/m",
		"rate: 5m":              "rate 5m: rate must be messages per second, such as 500, 10k, 1.5M or 90/m",
		"rate: 5/d":             "rate 5/d: rate must be messages per second, such as 500, 10k, 1.5M or 90/m",
		"rate: ''":              `rate "": rate must be messages per second, such as 500, 10k, 1.5M or 90/m`,
		"rate: 99M":             "rate 99M: rate must be at most 10000000 per second",
		"interval: 10":          "interval 10 has no unit, and tools differ: write 10ms for emqtt-bench's and MQTTX's milliseconds, or 10s for mqtt-benchmark's seconds",
		"interval: -5s":         "interval -5s: interval must not be negative",
		"duration: 10":          "duration 10 has no unit: write 10s",
		"duration: ''":          `duration "": duration is empty: write a duration such as 30s, 250ms or 1m30s`,
		"stages: '10s'":         "stages 10s: stages are written TIME:RATE, such as 30s:1k,1m:10k,30s:0",
		"stages: ['5s:1', 5:1]": "stages[1]",
		"stages: '5s:x'":        "stages 5s:x: stages must be messages per second, such as 500, 10k, 1.5M or 90/m",
		"arrival: uniform":      "arrival uniform: arrival must be constant or poisson",
		"verify: no":            "verify no: verify must be on or off",
	} {
		_, err := Parse("x.yaml", []byte("load: {"+in+"}"))
		if err == nil || !strings.HasPrefix(err.Error(), "x.yaml:1: "+want) && !strings.Contains(err.Error(), "5 has no unit") {
			t.Errorf("%s: %v", in, err)
		}
	}
	for in, want := range map[string]string{
		"rate: 5, interval: 1s":              "rate and interval both set the rate: keep one",
		"rate_per_client: 5, stages: '5s:1'": "rate_per_client and stages both set the rate: keep one",
		"rate_per_client: 9M, pairs: 2":      "18000000 messages per second over all publishers are over the limit of 10000000",
		"rate: 5, shape: subscribe":          "shape subscribe publishes nothing: remove rate",
		"rate: 5, fresh_iterations: true":    "fresh_iterations needs a closed loop: remove rate or fresh_iterations",
		"rate: 5, ramp: 5s, duration: 5s":    "a ramp of 5s takes all of the 5s: make duration longer",
		"rate: 5, ramp: 5s, messages: 9":     "messages and ramp cannot be combined: give duration instead of messages",
		"stages: '5s:1', duration: 5s":       "stages set both duration and rate: remove duration, ramp and messages",
		"stages: '5s:0'":                     "stages hold 0 messages in 5s: they need at least 1 message, and at most 24h",
		"arrival: poisson":                   "arrival poisson needs a rate: give rate, rate_per_client or interval",
		"ramp: 5s":                           "ramp needs a rate: give rate, rate_per_client or interval",
		"rate: 5, duration: 3s":              "a warm-up of 3 s leaves nothing to measure of 3s: make duration longer or warmup shorter",
	} {
		_, err := parse(t, "load: {"+in+"}").Cases()
		checkErrors(t, err, "x.yaml:1: "+want)
	}
}

// FuzzPace: whatever parses as a load settles without a panic into windows that
// hold it, or is refused.
func FuzzPace(f *testing.F) {
	f.Add("10k", "10ms", "30s:1k,1m:10k", "5s", "60s")
	f.Add("90/m", "0s", "0:5,1s:0", "0s", "1ms")
	f.Add("1.5M", "1h", "1s:", "", "24h")
	f.Fuzz(func(t *testing.T, rate, interval, stages, ramp, duration string) {
		for _, one := range [][2]string{{"rate", rate}, {"interval", interval}, {"stages", stages}} {
			s := parseQuietly("matrix: {qos: 0}")
			if s.Set(one[0], one[1]) != nil || s.Set("ramp", ramp) != nil || s.Set("duration", duration) != nil {
				continue
			}
			cases, err := s.Cases()
			if err != nil || len(cases) != 1 {
				continue
			}
			l := cases[0].Load
			var sum time.Duration
			for _, st := range l.Stages {
				if st.Duration <= 0 || st.From < 0 || st.To < 0 {
					t.Fatalf("%v: %+v", one, l.Stages)
				}
				sum += st.Duration
			}
			if len(l.Stages) > 0 && (sum != l.Duration || l.Iterations < 1 || l.Warmup < 0 || windows(sum) != l.Warmup+l.Iterations) {
				t.Fatalf("%v: %v in %+v", one, sum, l)
			}
		}
	})
}

func parseQuietly(text string) *Scenario {
	s, err := Parse("x.yaml", []byte(text))
	if err != nil {
		panic(err)
	}
	return s
}

// FuzzCredentials: no row, however odd, panics, loops or shows a password.
func FuzzCredentials(f *testing.F) {
	f.Add("id,user,password\na,b,s3cret\n")
	f.Add("id,cert\na,s3cret\n")
	f.Add("id,password\n\"a\n,\"s3cret\"\"\r\n")
	f.Fuzz(func(t *testing.T, content string) {
		path := writeFile(t, "c.csv", content)
		if err := checkCredentials(path, rowCheck{clients: 5, tls: &tlsconf.Options{}}); err != nil && strings.Contains(content, "s3cret") && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", content, err)
		}
	})
}
