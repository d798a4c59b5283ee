package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/preflight"
	"github.com/mqttload/mqttload/scenarios"
)

func planCase(pairs, inflight int) scenarios.Case {
	return scenarios.Case{Load: scenarios.Load{
		Shape: scenarios.Pairs, Pairs: pairs, Topics: pairs, Publishers: 1, Subscribers: 1, TopicsPerPublisher: 1, TopicsPerSubscriber: 1,
		Inflight: inflight, MinTime: 250 * time.Millisecond,
		Launches: 1, Warmup: 3, Iterations: 15, OperationsPerMessage: 1,
	}}
}

func TestPlanLine(t *testing.T) {
	var cases []scenarios.Case
	for range 18 {
		cases = append(cases, planCase(1, 100))
	}
	tests := []struct {
		name  string
		cases []scenarios.Case
		want  string
	}{
		{"default", cases, "plan: 18 cases x 1 launch x (3 warm-up + 15) iterations, 1 publisher + 1 subscriber per case, window 100, about 1m13s"},
		{"axes", []scenarios.Case{planCase(1, 10), planCase(1000, 2000)},
			"plan: 2 cases x 1 launch x (3 warm-up + 15) iterations, 1-1,000 publishers + 1-1,000 subscribers per case, window 10-2,000, about 8s"},
	}
	loop := planCase(2, 5)
	loop.Load.Shape, loop.Load.Messages, loop.Load.Launches = scenarios.Loopback, 1000, 10
	tests = append(tests, struct {
		name  string
		cases []scenarios.Case
		want  string
	}{"loopback", []scenarios.Case{loop}, "plan: 1 case x 10 launches x (3 warm-up + 15) iterations, 2 clients publishing and subscribing per case, window 5"})
	for stages, want := range map[*scenarios.Stage]string{
		{Duration: time.Minute, From: 10, To: 10}: "2 clients x 5 msg/s = 10 msg/s offered, publishing and subscribing",
		{Duration: time.Second, From: 0, To: 10}:  "2 clients with a total of 0 to 10 msg/s in 1s, publishing and subscribing",
	} {
		loop.Load.Stages = []scenarios.Stage{*stages}
		if got := clients([]scenarios.Case{loop}); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
	for _, test := range tests {
		if got := planLine(test.cases); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

// TestDescriptors: a connection to the embedded broker has both ends here.
func TestDescriptors(t *testing.T) {
	cases := []scenarios.Case{planCase(10, 1), planCase(500, 1)}
	if got := descriptors(cases, false); got != 1000+spareDescriptors {
		t.Errorf("descriptors %d", got)
	}
	if got := descriptors(cases, true); got != 2000+spareDescriptors {
		t.Errorf("descriptors with the embedded broker %d", got)
	}
	var bad Faults
	checkHost(cases, true, preflight.Host{Soft: 2000 + spareDescriptors}, &bad)
	checkHost(cases, true, preflight.Host{}, &bad)
	if len(bad) != 0 {
		t.Errorf("enough is not enough: %v", bad)
	}
	checkHost(cases, true, preflight.Host{Soft: 1024, Hard: 4096}, &bad)
	if len(bad) != 1 || bad[0].Class != Usage || !strings.Contains(bad[0].Msg, "need ~2,064 descriptors, limit 1,024 (hard 4,096)") {
		t.Errorf("got %v", bad)
	}
}

func TestSIBytes(t *testing.T) {
	for v, want := range map[float64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 9_949: "9.9 kB", 99_900: "100 kB", 999_499: "999 kB", 999_999: "1.0 MB", 2e12: "2.0 TB"} {
		if got := siBytes(v); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
}
