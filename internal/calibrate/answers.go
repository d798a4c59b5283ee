package calibrate

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// knownAnswers measures things whose results are known: brokers with one exact
// fault, and statistics of fixed numbers.
func knownAnswers(ctx context.Context) (list []result.Answer) {
	for i := range questions {
		list = append(list, questions[i].ask(ctx))
	}
	return append(list, statisticsAnswer(10, 12, 14, 16, 18), histogramAnswer(time.Microsecond))
}

// question is a known answer of the engine: a broker with a fault, a load, and
// what the report must say.
type question struct {
	name, expected string
	fault          broker.Fault
	qos            byte
	window         int
	messages       int64
	// judge returns the numbers of the report, and whether they are right. It sets
	// again if they may be wrong only because other work delayed a message.
	judge func(r *result.Case) (seen string, passed, again bool)
}

// brokerDelay is the delay of every message in the first question, and delayMargin
// the tolerance of their median.
const (
	brokerDelay = 10 * time.Millisecond
	delayMargin = 2 * time.Millisecond
)

var questions = []question{
	{
		name:     "a broker that delays every message by 10 ms",
		expected: "50 latencies, none below 10 ms, their median at most 12 ms",
		fault:    broker.Fault{Effect: broker.Delay(brokerDelay)},
		window:   1, messages: 50, judge: judgeDelay,
	},
	{
		name:     "a broker that loses the 1000th of 2,000 messages",
		expected: "1999 delivered, 1 lost, 0 duplicated",
		fault:    broker.Fault{From: 1000, Times: 1, Effect: broker.Lose{}},
		window:   100, messages: 2000, judge: judgeDelivery(result.Delivery{Delivered: 1999, Lost: 1}),
	},
	{
		name:     "a broker that repeats the 1000th of 2,000 messages",
		expected: "2000 delivered, 0 lost, 1 duplicated",
		fault:    broker.Fault{From: 1000, Times: 1, Effect: broker.Repeat{Copies: 1}},
		qos:      1, window: 100, messages: 2000, judge: judgeDelivery(result.Delivery{Delivered: 2000, Duplicated: 1}),
	},
}

// attempts bounds how often a question is asked that other work may disturb.
const attempts = 3

func (q *question) ask(ctx context.Context) result.Answer {
	a := result.Answer{Name: q.name, Expected: q.expected}
	for range attempts {
		r, err := q.run(ctx)
		var again bool
		if a.Seen, a.Passed, again = q.judge(&r); err != nil {
			a.Seen, a.Passed = fmt.Sprintf("%s, and %v", a.Seen, err), false
		}
		if a.Passed || !again {
			break
		}
	}
	return a
}

// judgeDelay: other work on the machine can delay a message, and nothing can
// speed it up. Only the upper bound is worth another attempt.
func judgeDelay(r *result.Case) (seen string, passed, again bool) {
	h := r.Latency.EndToEnd
	if h == nil {
		return "no latencies", false, false
	}
	early := h.MinNS < int64(brokerDelay)
	passed = h.Count == 50 && !early && h.P50NS <= int64(brokerDelay+delayMargin)
	seen = fmt.Sprintf("%d latencies from %s, their median %s", h.Count, result.FormatNS(float64(h.MinNS)), result.FormatNS(float64(h.P50NS)))
	return seen, passed, !early
}

func judgeDelivery(want result.Delivery) func(*result.Case) (string, bool, bool) {
	counts := func(d result.Delivery) string {
		return fmt.Sprintf("%d delivered, %d lost, %d duplicated", d.Delivered, d.Lost, d.Duplicated)
	}
	return func(r *result.Case) (string, bool, bool) {
		seen := counts(r.Delivery)
		return seen, seen == counts(want), false
	}
}

// run runs one iteration against a broker with the fault.
func (q *question) run(ctx context.Context) (r result.Case, err error) {
	b := broker.New(broker.Config{Faults: []broker.Fault{q.fault}})
	defer func() { _ = b.Close() }()
	l, err := broker.Listen("mqtt", "127.0.0.1:0", nil)
	if err != nil {
		return r, err
	}
	go func() { _ = b.Serve(l) }() // ends with the broker
	sc, err := scenarios.Parse("calibrate.yaml", scenarioFile)
	if err != nil {
		return r, err
	}
	for _, s := range [][2]string{
		{"transport", "tcp"}, {"payload", "10"}, {"qos", fmt.Sprint(q.qos)}, {"inflight", fmt.Sprint(q.window)},
		{"messages", fmt.Sprint(q.messages)}, {"launches", "1"}, {"warmup", "0"}, {"drain", "500ms"}, {"url", "mqtt://" + l.Addr().String()},
	} {
		if err := sc.Set(s[0], s[1]); err != nil {
			return r, err
		}
	}
	cases, err := sc.Cases()
	if err != nil {
		return r, err
	}
	results, err := load.New(load.Config{RunID: "answers"}).Run(ctx, cases)
	if len(results) > 0 {
		r = results[0]
	}
	return r, err
}

// statisticsAnswer checks Mean, StdDev and Error of 10, 12, 14, 16, 18 ns, which
// times has to be: s = sqrt(10), and t(0.9995, 4) = 8.610301581 by the tables of
// Student's t.
func statisticsAnswer(times ...int64) result.Answer {
	a := result.Answer{Name: "the statistics of 10, 12, 14, 16 and 18 ns", Expected: "mean 14.0000, stddev 3.1623, error 12.1768"}
	var its []result.Iteration
	for _, ns := range times {
		its = append(its, result.Iteration{Stage: result.StageActual, ElapsedNS: ns, Operations: 1})
	}
	s := result.Summarize(its, 1)
	a.Seen = fmt.Sprintf("mean %.4f, stddev %.4f, error %.4f", deref(s.MeanNS), deref(s.StdDevNS), deref(s.ErrorNS))
	a.Passed = a.Seen == a.Expected
	return a
}

func deref(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// histogramAnswer checks the percentiles of 1, 2 ... 10,000 µs to three digits;
// unit has to be a microsecond.
func histogramAnswer(unit time.Duration) result.Answer {
	a := result.Answer{Name: "the percentiles of 1 to 10,000 µs", Expected: "p50 5000 µs, p99 9900 µs, each within 0.1 %"}
	h := result.NewHDR()
	for us := int64(1); us <= 10_000; us++ {
		result.Record(h, us*int64(unit), 1)
	}
	r := result.NewHistogram(h)
	p50, p99 := float64(r.P50NS)/1e3, float64(r.P99NS)/1e3
	a.Seen = fmt.Sprintf("p50 %.0f µs, p99 %.0f µs", p50, p99)
	a.Passed = math.Abs(p50/5000-1) <= 1e-3 && math.Abs(p99/9900-1) <= 1e-3
	return a
}
