package main

import (
	"context"
	"fmt"

	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// recording is the cost of recording a message in each round, in ns.
type recording struct {
	what load.Recording
	loop string
	goal goal
	cost []float64
}

// recordingTimes is how many times options.messages are recorded: the resolution of
// the CPU clock is a microsecond.
const recordingTimes = 5

// maxBatch bounds a batch of the recording measurement. It is the window.
const maxBatch = 1000

// recording measures what recording adds to the cost of a message: in batches as
// large as the engine's reads just before, and in an open loop of a million messages
// per second, in batches of those due at a tick.
func (m *measurement) recording(ctx context.Context) error {
	batch := m.readBatch()
	m.recordings = []recording{
		{load.Recording{Payload: small, Batch: batch}, "closed loop", recordGoal, nil},
		{load.Recording{Payload: small, Batch: batch, Scattered: true}, "closed loop, no two latencies alike", goal{}, nil},
		{load.Recording{Payload: small, Batch: 100, Open: true}, "open loop, three histograms", recordGoal, nil},
	}
	for round := range m.Rounds {
		m.tell("round %d of %d: recording", round+1, m.Rounds)
		for i := range m.recordings {
			k := &m.recordings[i]
			ns, err := load.RecordingCost(k.what, int(recordingTimes*m.messages))
			if err != nil {
				return fmt.Errorf("measure recording in %s: %w", k.loop, err)
			}
			k.cost = append(k.cost, ns)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// readBatch is how many messages a read of the engine has returned, of the smallest
// payload at QoS 0 over TCP, or the window if that was not measured.
func (m *measurement) readBatch() int {
	k := m.places[1].find(result.WorkEngine, scenarios.TCP, small, 0, protocols.v311)
	if k == nil || k.result.IO.Reads == 0 {
		return maxBatch
	}
	return int(min(max(k.result.Delivery.Delivered/k.result.IO.Reads, 1), maxBatch))
}

func (m *measurement) recordingFigures() {
	for _, k := range m.recordings {
		f := figure{
			Name: "recording per message", Unit: "ns", Value: spreadOf(k.cost),
			Params: []result.Param{param("loop", k.loop), param("payload", k.what.Payload), param("batch", fmt.Sprintf("%d a read", k.what.Batch))},
		}
		if f.Value != nil && f.Value.Min < 0 {
			f.Reason = "less than the noise of the rounds"
		}
		m.add(f, k.goal)
	}
}
