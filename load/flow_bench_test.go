package load

import (
	"fmt"
	"testing"
)

// BenchmarkRecording is what the engine itself adds to a message: the stamp on
// one side, the ledger and the latency on the other.
func BenchmarkRecording(b *testing.B) {
	for _, o := range []recordingSetup{
		{Payload: 10, Batch: 1000}, {Payload: 10, Batch: 10}, {Payload: 1024, Batch: 60},
		{Payload: 10, Batch: 1000, Scattered: true}, {Payload: 10, Batch: 100, Open: true},
	} {
		b.Run(fmt.Sprintf("payload=%d/batch=%d/open=%t/scattered=%t", o.Payload, o.Batch, o.Open, o.Scattered), func(b *testing.B) {
			ns, err := recordingCost(o, b.N)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(ns, "cpu-ns/msg")
		})
	}
}
