package result

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"strings"
)

// report recomputes what follows from something else in a report of this program.
func (a *auditor) report(r *Report) {
	if r.Run.Status != StatusComplete {
		a.add(LevelWarn, CodePartialRun, "", "run it again to the end", "the run is %s", absent(r.Run.Status))
	}
	for i := range r.Cases {
		c := &r.Cases[i]
		if id := CaseID(c.Params); id != c.ID {
			a.add(LevelFail, CodeCaseID, c.ID, "the report was changed", "the parameters give the id %q", id)
		}
		a.restated(c.ID, c.Summary, recomputed(c))
		a.sums(c)
		a.operations(c)
		a.clients(c)
		a.legs(c)
		a.timeline(c)
		a.contract(c)
		for _, w := range Analyze(*c) {
			level := LevelWarn
			if w.Code == CodeLedger {
				level = LevelFail
			}
			a.add(level, w.Code, c.ID, w.Hint, "%s", w.Message)
		}
	}
	a.gates(r)
}

// recomputed is the summary that the iterations of c give. Throughputs of a merged
// report may be those of runs side by side: see Merge.
func recomputed(c *Case) Summary {
	s := Summarize(c.Iterations, c.OperationsPerMessage)
	if m, _ := addedThroughput(c); m != nil && c.Summary.MessagesPerSec != nil && nearly(*m, *c.Summary.MessagesPerSec) {
		side := *c
		side.Summary = s
		side.addThroughput()
		s = side.Summary
	}
	if c.Summary.DeliveriesPerSec == nil {
		s.DeliveriesPerSec = nil // a report of an earlier version
	}
	return s
}

// sumTolerance is what sums in another order may differ by.
const sumTolerance = 1e-9

func nearly(a, b float64) bool {
	return math.Abs(a-b) <= sumTolerance*math.Max(math.Abs(a), math.Abs(b))
}

// restated compares the stated summary with the computed one, field by field;
// A null against a
// number is a difference, unless the format does not have the field.
func (a *auditor) restated(id string, stated, computed Summary) {
	const hint = "the report was changed, or holds other iterations than its summary"
	if stated.N != computed.N && stated.N != 0 {
		a.add(LevelFail, CodeSummary, id, hint, "n is %d, but there are %d iterations", stated.N, computed.N)
	}
	x, y := reflect.ValueOf(stated), reflect.ValueOf(computed)
	for i := range x.NumField() {
		name, _, _ := strings.Cut(x.Type().Field(i).Tag.Get("json"), ",")
		s, ok := x.Field(i).Interface().(*float64)
		c, both := y.Field(i).Interface().(*float64)
		if !ok || !both || s == nil && (c == nil || a.in.Report == nil) {
			continue
		}
		if s == nil || c == nil || !nearly(*s, *c) {
			a.add(LevelFail, CodeSummary, id, hint, "%s is %s, the iterations give %s", name, floatText(s), floatText(c))
		}
	}
}

func floatText(v *float64) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprintf("%.10g", *v)
}

// sums checks what iterations and account both count.
func (a *auditor) sums(c *Case) {
	if c.Offered != nil {
		return // windows count what happened during them, the account what was due during them
	}
	var sent, acked, received, lost int64
	for _, it := range actual(c.Iterations) {
		sent += it.Sent
		acked += it.Acked
		received += it.Received
		lost += it.Lost
	}
	for _, k := range []struct {
		name               string
		iterations, ledger int64
	}{
		{"sent", sent, c.Delivery.Sent}, {"acked", acked, c.Delivery.Acked},
		// Received of an iteration has no duplicates.
		{"delivered", received, c.Delivery.Delivered}, {"lost", lost, c.Delivery.Lost},
	} {
		if k.iterations != k.ledger {
			a.add(LevelFail, CodeLedger, c.ID, "the report was changed, or the tool is at fault",
				"delivery.%s is %s, the iterations have %s", k.name, FormatInt(k.ledger), FormatInt(k.iterations))
		}
	}
}

// operations checks that the operations of each iteration follow from its requests,
// and reports the first one where they do not.
func (a *auditor) operations(c *Case) {
	per := int64(max(c.OperationsPerMessage, 1))
	var first *Iteration
	wrong := 0
	for i, it := range c.Iterations {
		// Reports of earlier versions have no requests: their operations follow from Received.
		if it.Operations == it.Requests*per || it.Requests == 0 && it.Operations == it.Received*per {
			continue
		}
		if wrong++; first == nil {
			first = &c.Iterations[i]
		}
	}
	if first != nil {
		a.add(LevelFail, CodeOperations, c.ID, "the report was changed, or the tool is at fault",
			"in %d of %d iterations the operations do not follow from the requests: %s %d of launch %d has %s operations, but %s requests of %d each",
			wrong, len(c.Iterations), first.Stage, first.Index, first.Launch, FormatInt(first.Operations), FormatInt(cmp.Or(first.Requests, first.Received)), per)
	}
}

func (a *auditor) clients(c *Case) {
	if c.Clients.Connected > c.Clients.Planned {
		a.add(LevelFail, CodeClients, c.ID, "the report was changed, or the tool is at fault",
			"clients.connected is %s, but only %s were planned", FormatInt(c.Clients.Connected), FormatInt(c.Clients.Planned))
	}
}

// contract reports deliveries that broke the contract: such times are those of a broker
// that did less than it owed. Analyze reports an account that does not balance.
func (a *auditor) contract(c *Case) {
	for _, b := range c.Broken() {
		if b.Kind != BreachAccount {
			a.add(LevelWarn, CodeDelivery, c.ID, "do not compare the times with those of a broker that delivers everything once", "%s", b)
		}
	}
}

// bucketWidth is how much values of one bucket of a histogram with three
// significant digits may differ.
const bucketWidth = 1e-3

// timeline checks that no moment was slower than the slowest message.
func (a *auditor) timeline(c *Case) {
	var worst *Tick
	for i, t := range c.Timeline {
		if t.P99NS != nil && (worst == nil || *t.P99NS > *worst.P99NS) {
			worst = &c.Timeline[i]
		}
	}
	e2e := c.Latency.EndToEnd
	switch {
	case worst == nil:
	case e2e == nil:
		a.add(LevelFail, CodeTimeline, c.ID, "the report was changed", "the timeline has percentiles, but latency.end_to_end is null")
	case float64(*worst.P99NS) > float64(e2e.MaxNS)*(1+bucketWidth):
		a.add(LevelFail, CodeTimeline, c.ID, "the report was changed", "the timeline has a p99 of %s at %s, above latency.end_to_end.max_ns, %s",
			FormatNS(float64(*worst.P99NS)), FormatNS(float64(worst.TNS)), FormatNS(float64(e2e.MaxNS)))
	}
}

// legs decodes every histogram and compares it with the percentiles stated for it.
func (a *auditor) legs(c *Case) {
	for _, leg := range c.Latency.All() {
		if leg.Histogram == nil {
			continue
		}
		full, err := leg.Histogram.Decode()
		if err != nil {
			a.add(LevelFail, CodeHistogram, c.ID, "the report was changed", "latency.%s: %v", leg.Name, err)
			continue
		}
		is := NewHistogram(full)
		if is == nil {
			a.add(LevelFail, CodeHistogram, c.ID, "the report was changed", "latency.%s: the histogram is empty", leg.Name)
			continue
		}
		a.percentiles(c.ID, leg.Name, reflect.ValueOf(*leg.Histogram), reflect.ValueOf(*is))
	}
}

func (a *auditor) percentiles(id, leg string, stated, is reflect.Value) {
	for i := range stated.NumField() {
		name, _, _ := strings.Cut(stated.Type().Field(i).Tag.Get("json"), ",")
		if !strings.HasSuffix(name, "_ns") {
			continue
		}
		s, c := numberOf(stated.Field(i)), numberOf(is.Field(i))
		if !nearly(s, c) {
			a.add(LevelFail, CodeHistogram, id, "the report was changed", "latency.%s.%s is %s ns, its histogram gives %s ns",
				leg, name, FormatFloat(s, 0), FormatFloat(c, 0))
		}
	}
}

// numberOf is a field of an integer or a floating point number as float64.
func numberOf(v reflect.Value) float64 {
	if v.CanFloat() {
		return v.Float()
	}
	return float64(v.Int())
}

// gates compares the stated results of gates with their rules and cases.
func (a *auditor) gates(r *Report) {
	for _, g := range r.Gates {
		gate, err := parseRule(g.Rule)
		if err != nil {
			continue // a rule of a newer version
		}
		for _, is := range gate.Evaluate(r) {
			if is.Case == g.Case && is.Passed != g.Passed {
				a.add(LevelFail, CodeGate, g.Case, "the report was changed", "gate %q is stated as %s, the numbers say %s",
					g.Rule, passText(g.Passed), passText(is.Passed))
			}
			if is.Case == g.Case && !sameNumber(is.Value, g.Value) {
				a.add(LevelFail, CodeGate, g.Case, "the report was changed", "gate %q states the value %s, the numbers say %s",
					g.Rule, floatText(g.Value), floatText(is.Value))
			}
			if is.Case == g.Case && !nearly(is.Limit, g.Limit) {
				a.add(LevelFail, CodeGate, g.Case, "the report was changed", "gate %q states the limit %s, the rule says %s",
					g.Rule, floatText(&g.Limit), floatText(&is.Limit))
			}
		}
	}
}

func sameNumber(a, b *float64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return nearly(*a, *b)
}

func passText(passed bool) string {
	if passed {
		return "passed"
	}
	return "failed"
}
