package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// allocations counts the allocations of engine and broker per message in the steady
// state: in one process, over the first transport, with the smallest payload.
func (m *measurement) allocations(ctx context.Context) error {
	m.allocs = map[byte]float64{}
	p := m.places[0]
	for i := range p.cases {
		c := p.cases[i]
		if p.cells[i].work != result.WorkEngine || p.repeats(i) || c.Transport != m.transports[0] || c.Payload.Size != p.cases[0].Payload.Size {
			continue
		}
		m.tell("allocations: %s", c.ID)
		c.Load.Messages, c.Load.Launches = m.messages, 1
		var before, last uint64
		// The last difference is that of the counted iteration, after the warm-up.
		count := func(*scenarios.Case, result.Iteration) {
			var s runtime.MemStats
			runtime.ReadMemStats(&s)
			before, last = last, s.Mallocs
		}
		if _, err := load.New(load.Config{RunID: m.RunID, Observer: load.Observer{Iteration: count}}).Run(ctx, []scenarios.Case{c}); err != nil {
			return fmt.Errorf("count allocations of %s: %w", c.ID, err)
		}
		m.allocs[c.QoS] = float64(last-before) / float64(m.messages)
	}
	return nil
}
