package load

import (
	"time"

	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// record holds the results of a case so far, over all its launches.
type record struct {
	spec  *scenarios.Case
	cfg   *Config
	start int64 // of the case, on the clock

	iterations  []result.Iteration
	delivery    result.Delivery
	connections connections
	outages     outages
	used        used
	rate        rate
	timeline    timeline
	slow        slowClients
	missed      span
	untimed     int64         // deliveries without a latency
	busy        time.Duration // elapsed time of the measured iterations
	errs        errorSet
	warnings    warnings
}

// begin begins the case at now.
func (rc *record) begin(now int64) {
	rc.start, rc.timeline.start = now, now
	rc.timeline.tell = rc.tell
}

// add adds an iteration that has ended.
func (rc *record) add(it result.Iteration, d result.Delivery) {
	it.Operations = it.Requests * int64(rc.spec.Load.OperationsPerMessage)
	rc.iterations = append(rc.iterations, it)
	if it.Stage == result.StageActual {
		rc.delivery.Add(d)
		rc.busy += time.Duration(it.ElapsedNS)
	}
	if told := rc.cfg.Observer.Iteration; told != nil {
		told(rc.spec, it)
	}
}

// tell gives the observer a point of the timeline with its latencies.
func (rc *record) tell(t result.Tick, l *latencies) {
	if tick := rc.cfg.Observer.Tick; tick != nil {
		tick(rc.spec, t, Latencies{EndToEnd: l.e2e.hist, Service: l.service.hist, SendLag: l.lag.hist, Ack: l.ack.hist, Pubrec: l.pubrec.hist})
	}
}
