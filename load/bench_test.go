package load_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
)

// BenchmarkRun is the whole engine against the loopback broker in the same
// process, ledger and latency on.
func BenchmarkRun(b *testing.B) {
	for _, window := range []int{100, 1000} {
		for qos := byte(0); qos <= 2; qos++ {
			for _, payload := range []int{10, 1024, 8192} {
				b.Run(fmt.Sprintf("window=%d/qos=%d/payload=%d", window, qos, payload), func(b *testing.B) {
					c := testCase(qos, payload, packet.V311)
					c.Load.Inflight, c.Load.Warmup, c.Load.Iterations, c.Load.Messages = window, 1, 1, int64(b.N)
					cases := []scenarios.Case{c}
					serve(b, cases, nil)
					b.ResetTimer()
					results, err := load.New(load.Config{RunID: "r1"}).Run(b.Context(), cases)
					b.StopTimer()
					if err != nil {
						b.Fatal(err)
					}
					r := &results[0]
					check(b, r, int64(b.N))
					b.ReportMetric(*r.Summary.MeanNS, "ns/msg")
					b.ReportMetric(float64(r.CPU.UserNS+r.CPU.SystemNS)/float64(b.N), "cpu-ns/msg")
					b.ReportMetric(float64(r.Latency.EndToEnd.P50NS)/float64(time.Microsecond), "p50-µs")
				})
			}
		}
	}
}
