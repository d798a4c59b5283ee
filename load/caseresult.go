package load

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/result"
)

// result is the case's result so far, with the warnings of the analysers. An
// interrupted case gets no warning about a rate that it did not keep.
func (rc *record) result(interrupted bool) *result.Case {
	r := &result.Case{
		ID: rc.spec.ID, Params: rc.spec.Params,
		Kind: rc.spec.Load.Shape.Kind, PersistentSessions: rc.spec.Clients.Persistent(rc.spec.Protocol),
		Iterations: append([]result.Iteration(nil), rc.iterations...),
		Summary:    result.Summarize(rc.iterations, rc.spec.Load.OperationsPerMessage),
		Latency:    rc.timeline.sums.latency(),
		Delivery:   rc.delivery, CPU: rc.used.cpu, IO: rc.used.io,
		Errors:               rc.errs.list(),
		Warnings:             append([]result.Warning(nil), rc.warnings.list...),
		Timeline:             append([]result.Tick(nil), rc.timeline.ticks...),
		Request:              rc.spec.Load.Shape.Request(rc.spec.QoS),
		OperationsPerMessage: rc.spec.Load.OperationsPerMessage,
	}
	if r.Kind != result.KindConnections {
		r.QoS = &rc.spec.QoS
	}
	if rc.spec.Load.PublisherClients() > 0 { // without them there is no window
		r.Window, r.WindowAsked = rc.connections.window, rc.spec.Load.Inflight
	}
	r.Aliases = rc.connections.aliases
	rc.connections.put(&r.Latency)
	r.Clients = result.Clients{Planned: rc.connections.planned, Connected: rc.connections.connected, Lost: rc.outages.lost, Reconnects: rc.outages.reconnects}
	r.Delivery.CountsOnly = !rc.spec.Stamped()
	r.Delivery.Resent = rc.outages.resent
	r.Latency.Reconnect = rc.outages.took.result()
	r.Losses = rc.losses(r)
	r.Offered = rc.rate.result()
	r.Bottleneck = rc.bottleneck(r)
	if w := rateWarning(r); w.Code != "" && !interrupted {
		r.Warnings = append(r.Warnings, w)
	}
	for _, w := range []result.Warning{rc.outages.warning(rc.start), rc.outages.forgotten()} {
		if w.Code != "" {
			r.Warnings = append(r.Warnings, w)
		}
	}
	if len(rc.connections.referred) > 0 {
		r.Warnings = append(r.Warnings, referralWarning(rc.connections.referred))
	}
	if w := rc.slow.warning(); w.Code != "" {
		r.Warnings = append(r.Warnings, w)
	}
	if w := propertyWarning(r.Errors); w.Code != "" {
		r.Warnings = append(r.Warnings, w)
	}
	if rc.untimed > 0 {
		r.Warnings = append(r.Warnings, result.Warning{
			Code:    result.CodeUntimedDeliveries,
			Message: fmt.Sprintf("%s deliveries arrived after their send time was discarded: the latency figures do not include them", result.FormatInt(rc.untimed)),
			Hint:    "the percentiles and Max are too low because of them; a larger --inflight keeps send times for longer",
		})
	}
	r.Warnings = append(r.Warnings, result.Analyze(*r)...)
	return r
}

// referralWarning counts the connections by the route on which Server
// References led them.
func referralWarning(ways map[string]int64) result.Warning {
	const few = 3
	var parts []string
	names := slices.SortedFunc(maps.Keys(ways), func(a, b string) int {
		if ways[a] != ways[b] {
			return int(ways[b] - ways[a])
		}
		return strings.Compare(a, b)
	})
	for _, name := range names[:min(few, len(names))] {
		parts = append(parts, fmt.Sprintf("%s from %s", result.FormatInt(ways[name]), name))
	}
	if n := len(names) - few; n > 0 {
		parts = append(parts, fmt.Sprintf("and by %d other routes", n))
	}
	return result.Warning{
		Code: result.CodeReferred, Message: "brokers referred connections to other brokers: " + strings.Join(parts, ", "),
		Hint: "the figures are for the brokers at the end of each route: name those as the target to avoid the detour",
	}
}

// losses describes the lost deliveries; nil where none was lost, and where
// messages carry no numbers.
func (rc *record) losses(r *result.Case) *result.Losses {
	d := &r.Delivery
	if d.Lost == 0 || !rc.missed.any || d.CountsOnly {
		return nil
	}
	l := &result.Losses{First: int64(rc.missed.first), Last: int64(rc.missed.last)}
	if rc.spec.QoS > 0 && d.Sent > 0 {
		// The engine does not remember which messages were acknowledged: it counts
		// those without an acknowledgement as the first of the lost ones.
		receivers := math.Ceil(float64(d.Expected) / float64(d.Sent))
		l.Unacked = min(d.Lost, int64(receivers)*(d.Sent-d.Acked))
		l.Acked = d.Lost - l.Unacked
	}
	return l
}
