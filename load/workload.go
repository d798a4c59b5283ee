package load

import (
	"github.com/mqttload/mqttload/scenarios"
)

// workloads are those of shapes that have a workload of their own. All other
// shapes publish messages, in a closed or an open loop.
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
