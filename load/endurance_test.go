package load_test

import (
	"runtime"
	"testing"

	"github.com/mqttload/mqttload/internal/racing"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
)

// TestManyExactlyOnce carries so many QoS 2 messages over one connection each way
// that packet ids wrap several times, and leaves no memory behind.
func TestManyExactlyOnce(t *testing.T) {
	messages := int64(500_000)
	if racing.Enabled {
		messages = 140_000 // still twice around the packet ids
	}
	for _, v := range []packet.Version{packet.V311, packet.V5} {
		c := testCase(2, 10, v)
		c.Load.Inflight, c.Load.Iterations, c.Load.Messages = 1000, 1, messages
		cases := []scenarios.Case{c}
		serve(t, cases, nil)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		r, err := load.New(load.Config{RunID: "r1"}).Run(t.Context(), cases)
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		check(t, &r[0], messages)
		// Histograms and buffers of a run take some; a table that leaks an id per message
		// would hold megabytes more.
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
			t.Errorf("%s: %d bytes more after %d messages", v, grown, messages)
		}
	}
}
