package load

import (
	"fmt"
	"runtime"
	"time"

	"github.com/mqttload/mqttload/result"
)

// The generator is the limit when its own CPU use is above this share of what the
// process may use, or its send lag above both of these limits. A median latency
// of so many times the minimum means that messages queue.
const (
	cpuLimit       = 0.9
	lagLimit       = time.Millisecond
	lagShare       = 0.1 // of the time between two messages of a publisher
	queueLimit     = 3
	heldNoticeable = 0.01 // share of the time in which due messages could not be sent
)

// bottleneck says what limited the case, with the figure that shows it; nil
// before anything was measured, and where nothing is published.
func (rc *record) bottleneck(r *result.Case) *result.Bottleneck {
	if rc.busy <= 0 || rc.spec.Load.PublisherClients() == 0 || rc.spec.Load.Shape.Queues > 0 {
		return nil
	}
	used := float64(rc.used.cpu.UserNS+rc.used.cpu.SystemNS) / float64(rc.busy) / float64(runtime.GOMAXPROCS(0))
	cpu := fmt.Sprintf("CPU %.0f %% of %d cores", 100*used, runtime.GOMAXPROCS(0))
	if used >= cpuLimit {
		if rc.cfg.Embedded {
			cpu += ", the embedded broker's included"
		}
		return &result.Bottleneck{Kind: "generator", Detail: cpu}
	}
	if r.Offered != nil {
		return rc.openBottleneck(r, "own "+cpu)
	}
	return rc.closedBottleneck(r, "own "+cpu)
}

func (rc *record) closedBottleneck(r *result.Case, cpu string) *result.Bottleneck {
	ratio, what := queueing(r)
	switch {
	case rc.spec.Load.Subscribers == 0 && rc.spec.QoS == 0:
		return &result.Bottleneck{Kind: "network", Detail: "messages went as fast as the connections took them; " + cpu}
	case ratio == 0:
		return &result.Bottleneck{Kind: "window", Detail: cpu}
	case ratio >= queueLimit:
		return &result.Bottleneck{Kind: "broker", Detail: fmt.Sprintf("the median %s is %.1f times the least: messages queue; %s", what, ratio, cpu)}
	}
	return &result.Bottleneck{Kind: "window", Detail: fmt.Sprintf("%d in flight, the median %s is %.1f times the least; %s", rc.connections.window, what, ratio, cpu)}
}

// queueing is the ratio of the median to the minimum of the latency that the
// broker causes: end to end in a closed loop, or that of the acknowledgement
// where there is no other; 0 where there is neither.
func queueing(r *result.Case) (ratio float64, what string) {
	h, what := r.Latency.EndToEnd, "latency"
	if r.Offered != nil {
		h = r.Latency.Service
	}
	if h == nil {
		h, what = r.Latency.Ack, "acknowledgement"
	}
	if h == nil {
		return 0, what
	}
	return float64(h.P50NS) / float64(max(h.MinNS, 1)), what
}

// openBottleneck says what kept an open loop from its schedule.
func (rc *record) openBottleneck(r *result.Case, cpu string) *result.Bottleneck {
	lag := r.Latency.SendLag
	interval := float64(rc.spec.Load.PublisherClients()) / r.Offered.MessagesPerSec * 1e9
	late := lag != nil && float64(lag.P99NS) > max(float64(lagLimit), lagShare*interval)
	if r.RateKept() && !late {
		return &result.Bottleneck{Kind: "target met", Detail: targetDetail(r) + "; " + cpu}
	}
	window, buffer := rc.rate.held.shares()
	switch {
	case window >= heldNoticeable && window >= buffer:
		if ratio, what := queueing(r); ratio >= queueLimit {
			return &result.Bottleneck{Kind: "broker", Detail: fmt.Sprintf(
				"the in-flight window of %d was full %.0f %% of the time, and the median %s is %.1f times the least: messages queue; %s",
				rc.connections.window, 100*window, what, ratio, cpu)}
		}
		return &result.Bottleneck{Kind: "window", Detail: fmt.Sprintf("%d in flight: full %.0f %% of the time; %s", rc.connections.window, 100*window, cpu)}
	case buffer >= heldNoticeable:
		return &result.Bottleneck{Kind: "network", Detail: fmt.Sprintf("the write buffer was full %.0f %% of the time; %s", 100*buffer, cpu)}
	case late:
		detail := fmt.Sprintf("send lag p99 %s; %s", result.FormatNS(float64(lag.P99NS)), cpu)
		if rc.used.longestPause > 0 {
			detail += "; longest GC pause " + result.FormatNS(float64(rc.used.longestPause))
		}
		return &result.Bottleneck{Kind: "generator", Detail: detail}
	}
	return &result.Bottleneck{Kind: "broker", Detail: fmt.Sprintf("%s messages unsent, %d of %d connections lost; %s",
		result.FormatInt(r.Delivery.Unsent), r.Clients.Lost, r.Clients.Connected, cpu)}
}

func targetDetail(r *result.Case) string {
	_, unit := r.Sends()
	detail := fmt.Sprintf("%s of %s %s sent", result.FormatFloat(*r.Offered.Achieved, 1), result.FormatFloat(r.Offered.MessagesPerSec, 1), unit)
	if lag := r.Latency.SendLag; lag != nil {
		detail += ", send lag p99 " + result.FormatNS(float64(lag.P99NS))
	}
	return detail
}

// rateWarning says that an open loop did not keep its rate, and why; its code
// is "" where it did.
func rateWarning(r *result.Case) (w result.Warning) {
	o := r.Offered
	if o == nil || o.Achieved == nil || r.RateKept() {
		return w
	}
	noun, unit := r.Sends()
	w = result.Warning{
		Code: result.CodeRateNotKept,
		Message: fmt.Sprintf("target missed: %s %s were sent of %s offered (%s), %s %s were left unsent", result.FormatFloat(*o.Achieved, 1), unit,
			result.FormatFloat(o.MessagesPerSec, 1), result.Percent(int64(1e3**o.Achieved), int64(1e3*o.MessagesPerSec)), result.FormatInt(r.Delivery.Unsent), noun),
		Hint: "lower the rate to what the target can keep, or remove the limit",
	}
	if b := r.Bottleneck; b != nil {
		w.Hint += ": " + b.Kind + ", " + b.Detail
	}
	return w
}
