package load

import (
	"context"

	"github.com/mqttload/mqttload/scenarios"
)

// workload is what the clients of a launch do once they are connected. A new one
// is a file workload_NAME.go and, where a shape is to have it, a line in
// workloads.
type workload interface {
	// byClock reports whether the clock ends the load: iterate is then called
	// once a launch, and cuts the time into windows itself. Otherwise it is
	// called for every iteration.
	byClock() bool
	// open readies the workload for a launch whose clients have connected.
	open(ctx context.Context, l *launch) error
	// iterate runs and measures. Only what makes going on pointless is an error.
	iterate(ctx context.Context, it *iteration) error
	// totals is what has come about since the iteration began. It is called about
	// once a second, while the load runs.
	totals(it *iteration) totals
}

// workloads are those of shapes that have one of their own. All other shapes
// publish messages, in a closed or an open loop.
var workloads = map[*scenarios.Shape]func(*scenarios.Load) workload{
	scenarios.Subscribe: func(*scenarios.Load) workload { return listening{} },
	scenarios.Connect:   func(*scenarios.Load) workload { return idling{} },
	scenarios.Churn:     func(load *scenarios.Load) workload { return &churn{paced: len(load.Stages) > 0} },
	scenarios.Offline:   func(*scenarios.Load) workload { return offline{} },
}

func newWorkload(load *scenarios.Load) workload {
	if of := workloads[load.Shape]; of != nil {
		return of(load)
	}
	if len(load.Stages) > 0 {
		return openLoop{}
	}
	return closedLoop{}
}

// totals are sums over all clients.
type totals struct{ sent, acked, received, requests, bytes int64 }

func (t totals) minus(o totals) totals {
	return totals{t.sent - o.sent, t.acked - o.acked, t.received - o.received, t.requests - o.requests, t.bytes - o.bytes}
}
