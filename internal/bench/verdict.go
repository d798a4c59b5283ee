package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// outcome is how a run ended: the plan, and what the engine returned.
type outcome struct {
	planned []scenarios.Case
	cases   []result.Case
	err     error
	strict  bool // a rate that was not kept is a fault
}

// measured reports whether any iteration was completed.
func (o outcome) measured() bool {
	return slices.ContainsFunc(o.cases, func(c result.Case) bool { return len(c.Iterations) > 0 })
}

func (o outcome) interrupted() bool {
	return errors.Is(o.err, ErrInterrupted) || errors.Is(o.err, context.Canceled)
}

// unreachable reports whether nothing was measured because the broker could not
// be reached or refused the connections.
func (o outcome) unreachable() bool {
	return !o.measured() && load.Unreachable(o.err)
}

// status is the status of the report.
func (o outcome) status() string {
	switch {
	case !o.measured() && o.err != nil && !o.interrupted():
		return result.StatusFailed
	case o.err != nil, len(o.incomplete()) > 0:
		return result.StatusPartial
	}
	return result.StatusComplete
}

// verdict lists what is wrong with a run, in the order in which exit codes take
// precedence.
func (o outcome) verdict() Faults {
	var bad Faults
	if o.interrupted() {
		bad.Add(Interrupted, "", "interrupted: %d of %d cases are complete", o.whole(), len(o.planned))
	}
	switch {
	case o.unreachable():
		return append(bad, o.causes(Unreachable)...)
	case !o.interrupted():
		missing := o.incomplete()
		if o.err != nil || len(missing) > 0 {
			bad = append(bad, o.causes(Incomplete)...)
		}
		bad = append(bad, missing...)
		bad = append(bad, o.slow()...)
	}
	return append(bad, o.broken()...)
}

// plan is the planned case of a result.
func (o outcome) plan(id string) scenarios.Case {
	i := slices.IndexFunc(o.planned, func(c scenarios.Case) bool { return c.ID == id })
	if i < 0 {
		return scenarios.Case{}
	}
	return o.planned[i]
}

// whole counts the cases that have completed all their iterations.
func (o outcome) whole() (n int) {
	for _, c := range o.cases {
		if l := o.plan(c.ID).Load; len(c.Iterations) >= l.Launches*(l.Warmup+l.Iterations) {
			n++
		}
	}
	return n
}

// causes aggregates the errors of all cases, so that a broker that refuses 18
// cases is one fault.
func (o outcome) causes(class Class) Faults {
	type sum struct {
		result.Error
		cases int
	}
	var sums []*sum
	for _, c := range o.cases {
		for _, e := range c.Errors {
			if e.Kind == result.ErrorProperty {
				continue // such a message was delivered
			}
			at := slices.IndexFunc(sums, func(s *sum) bool { return s.Kind == e.Kind && s.Reason == e.Reason })
			if at < 0 {
				sums = append(sums, &sum{e, 1})
				continue
			}
			sums[at].Count += e.Count
			sums[at].cases++
		}
	}
	var bad Faults
	for _, s := range sums {
		msg := s.Example
		if s.Count > 1 {
			msg = fmt.Sprintf("%s (%s times, in %s)", msg, result.FormatInt(s.Count), text.Count(s.cases, "case"))
		}
		bad.Add(class, s.Remedy(), "%s", msg)
	}
	if len(bad) == 0 && o.err != nil {
		bad.Add(class, "", "%v", o.err)
	}
	return bad
}

// incomplete finds clients that did not connect or were lost, and messages that
// were not sent. In an interrupted run, these are not faults.
func (o outcome) incomplete() Faults {
	var lost, back, planned, connected, unsent, scheduled, nacked, sent int64
	for _, c := range o.cases {
		lost += c.Clients.Lost
		back += c.Clients.Reconnects
		planned += c.Clients.Planned
		connected += c.Clients.Connected
		unsent += c.Delivery.Unsent
		scheduled += c.Delivery.Scheduled
		nacked += c.Delivery.Nacked
		sent += c.Delivery.Sent
	}
	var bad Faults
	for _, one := range []struct {
		n, of        int64
		what, remedy string
	}{
		{planned - connected, planned, "connections could not be established", ""},
		{lost, connected + back, "connections were lost during the run" + cameBack(back), ""},
		{nacked, sent, "messages were rejected by the broker", "the errors below the table give its reasons"},
		{unsent, scheduled, o.unsentWhat(), o.unsentRemedy(lost)},
	} {
		if one.n > 0 {
			bad.Add(Incomplete, one.remedy, "%s of %s %s (%s)", result.FormatInt(one.n), result.FormatInt(one.of), one.what, result.Percent(one.n, one.of))
		}
	}
	return bad
}

// unsentWhat names what was not sent.
func (o outcome) unsentWhat() string {
	for i := range o.cases {
		if c := &o.cases[i]; c.Delivery.Unsent > 0 && c.Kind == result.KindCycles {
			return "connects were not started"
		}
	}
	return "messages were not sent"
}

// unsentRemedy is the remedy for unsent messages, given the number of lost
// connections.
func (o outcome) unsentRemedy(lost int64) string {
	open := slices.ContainsFunc(o.cases, func(c result.Case) bool { return c.Delivery.Unsent > 0 && c.Offered != nil })
	switch {
	case lost > 0:
		return "messages of a lost connection stay unsent, unless --reconnect restores it in time"
	case open:
		return "the row's Limit says what held them up: lower the rate, or use a larger --inflight if the window was full"
	}
	return "the broker accepted no more messages: try a smaller --inflight or a longer --drain, or raise its limits on messages in flight and queued"
}

func cameBack(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %s reconnected", result.FormatInt(n))
}

// slow finds open loops that did not keep their rate, if strict.
func (o outcome) slow() Faults {
	var missed []result.Case
	for _, c := range o.cases {
		if o.strict && !c.RateKept() {
			missed = append(missed, c)
		}
	}
	if len(missed) == 0 {
		return nil
	}
	first, achieved := missed[0], "nothing"
	_, rate := first.Sends()
	if a := first.Offered.Achieved; a != nil {
		achieved = result.FormatFloat(*a, 0)
	}
	return Faults{Faultf(Incomplete, "the row's Limit says what held it up; without --strict this is a warning",
		"the rate was not kept in %s: %s of %s %s, first in %s", text.Count(len(missed), "case"), achieved, result.FormatFloat(first.Offered.MessagesPerSec, 0), rate, first.ID)}
}

// broken has one fault for each way in which cases broke the delivery contract.
func (o outcome) broken() Faults {
	type sum struct {
		result.Breach
		id, hint string
	}
	var sums []sum
	expected := map[byte]int64{}
	for i := range o.cases {
		c := &o.cases[i]
		expected[c.Owed()] += c.Delivery.Expected
		for _, b := range c.Broken() {
			at := slices.IndexFunc(sums, func(s sum) bool { return s.Kind == b.Kind && s.QoS == b.QoS })
			if at < 0 {
				sums = append(sums, sum{b, c.ID, breachHint(b.Kind, c, o.plan(c.ID))})
				continue
			}
			sums[at].Count += b.Count
		}
	}
	var bad Faults
	for _, s := range sums {
		s.Of = expected[s.QoS]
		bad.Add(Delivery, s.hint, "%s, first in %s", s.Breach, s.id)
	}
	return bad
}

// breachHint is the remedy for a breach in c.
func breachHint(kind result.BreachKind, c *result.Case, plan scenarios.Case) string {
	switch kind {
	case result.BreachLost:
		return lossHint(c, plan)
	case result.BreachDuplicated:
		return "QoS 2 is exactly once: this is a bug in the broker"
	}
	return "this is a bug in mqttload: please report it with the report file"
}

// lossHint is the remedy for lost messages.
func lossHint(c *result.Case, plan scenarios.Case) string {
	switch {
	case c.Warned(result.CodeSessionNotKept):
		return "the broker lost the subscribers' sessions, so nobody was subscribed until they reconnected: make it keep sessions over a restart (Mosquitto: persistence true)"
	case c.Clients.Lost > c.Clients.Reconnects:
		return "connections ended, and messages in flight were lost with them: find out why; with --reconnect and persistent sessions, none may be lost"
	case c.Clients.Reconnects > 0:
		return "the broker had acknowledged them but not stored them when it went away (Mosquitto: persistence true, autosave_on_changes true)"
	case plan.Protocol == packet.V5 && plan.Clients.Properties.MessageExpiry > 0:
		return fmt.Sprintf("a message older than --message-expiry, %s, must not be delivered [MQTT-3.3.2-5]: a longer expiry separates expired messages from lost ones", plan.Clients.Properties.MessageExpiry)
	}
	return "a broker that queues fewer messages than are in flight drops the rest: try a smaller --inflight, or raise its limits (Mosquitto: max_inflight_messages, max_queued_messages); a longer --drain separates late messages from lost ones"
}
