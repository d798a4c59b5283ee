package calibrate

import (
	"context"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/internal/pace"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// knownAnswers measures what is known beforehand: brokers that delay, lose and
// repeat exactly what they are told to, and statistics of fixed numbers.
func knownAnswers(ctx context.Context) []result.Answer {
	return []result.Answer{
		delayAnswer(ctx), lossAnswer(ctx), duplicateAnswer(ctx), statisticsAnswer(), histogramAnswer(),
	}
}

// fakeDelay is what every message takes in delayAnswer, and delayMargin by how
// much its median may be above. Other work on the machine can delay a message,
// and nothing can speed it up: only the upper bound gets more than one attempt.
const (
	fakeDelay     = 10 * time.Millisecond
	delayMargin   = 2 * time.Millisecond
	delayAttempts = 3
)

func delayAnswer(ctx context.Context) (a result.Answer) {
	for range delayAttempts {
		var early bool
		if a, early = tryDelay(ctx); a.Passed || early {
			break
		}
	}
	return a
}

func tryDelay(ctx context.Context) (a result.Answer, early bool) {
	a = result.Answer{
		Name:     "a broker that delays every message by 10 ms",
		Expected: "50 latencies, none below 10 ms, their median at most 12 ms",
	}
	w := pace.New()
	defer w.Stop()
	f := &mqtttest.Fake{Deliver: func(_ int, p packet.Publish) []packet.Publish {
		w.For(fakeDelay)
		return []packet.Publish{p}
	}}
	r, err := runFake(ctx, f, 0, 1, 50)
	h := r.Latency.EndToEnd
	if err != nil || h == nil {
		a.Seen = fmt.Sprintf("no latencies: %v", err)
		return a, false
	}
	a.Seen = fmt.Sprintf("%d latencies from %s, their median %s", h.Count, result.FormatNS(float64(h.MinNS)), result.FormatNS(float64(h.P50NS)))
	early = h.MinNS < int64(fakeDelay)
	a.Passed = h.Count == 50 && !early && h.P50NS <= int64(fakeDelay+delayMargin)
	return a, early
}

func lossAnswer(ctx context.Context) result.Answer {
	return ledgerAnswer(ctx, "a broker that loses the 1000th of 2,000 messages", 0, result.Delivery{Delivered: 1999, Lost: 1},
		func(n int, p packet.Publish) []packet.Publish {
			if n == 999 {
				return nil
			}
			return []packet.Publish{p}
		})
}

func duplicateAnswer(ctx context.Context) result.Answer {
	return ledgerAnswer(ctx, "a broker that repeats the 1000th of 2,000 messages", 1, result.Delivery{Delivered: 2000, Duplicated: 1},
		func(n int, p packet.Publish) []packet.Publish {
			if n == 999 {
				return []packet.Publish{p, p}
			}
			return []packet.Publish{p}
		})
}

func ledgerAnswer(ctx context.Context, name string, qos byte, want result.Delivery, deliver func(int, packet.Publish) []packet.Publish) result.Answer {
	counts := func(d result.Delivery) string {
		return fmt.Sprintf("%d delivered, %d lost, %d duplicated", d.Delivered, d.Lost, d.Duplicated)
	}
	a := result.Answer{Name: name, Expected: counts(want)}
	r, err := runFake(ctx, &mqtttest.Fake{Deliver: deliver}, qos, 100, 2000)
	if a.Seen = counts(r.Delivery); err != nil {
		a.Seen = fmt.Sprintf("%s, and %v", a.Seen, err)
	}
	a.Passed = err == nil && a.Seen == a.Expected
	return a
}

// runFake runs one iteration of so many messages against f.
func runFake(ctx context.Context, f *mqtttest.Fake, qos byte, window int, messages int64) (r result.Case, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return r, err
	}
	defer l.Close()
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go f.ServeConn(nc)
		}
	}()
	sc, err := scenarios.Parse("calibrate.yaml", scenarioFile)
	if err != nil {
		return r, err
	}
	for _, s := range [][2]string{
		{"transport", "tcp"}, {"payload", "10"}, {"qos", fmt.Sprint(qos)}, {"inflight", fmt.Sprint(window)},
		{"messages", fmt.Sprint(messages)}, {"launches", "1"}, {"warmup", "0"}, {"drain", "500ms"}, {"url", "mqtt://" + l.Addr().String()},
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

// statisticsAnswer checks Mean, StdDev and Error of 10, 12, 14, 16, 18 ns:
// s = sqrt(10), and t(0.9995, 4) = 8.610301581 by the tables of Student's t.
func statisticsAnswer() result.Answer {
	a := result.Answer{Name: "the statistics of 10, 12, 14, 16 and 18 ns", Expected: "mean 14.0000, stddev 3.1623, error 12.1768"}
	var its []result.Iteration
	for _, ns := range []int64{10, 12, 14, 16, 18} {
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

// histogramAnswer checks the percentiles of 1, 2 ... 10,000 µs to three digits.
func histogramAnswer() result.Answer {
	a := result.Answer{Name: "the percentiles of 1 to 10,000 µs", Expected: "p50 5000 µs, p99 9900 µs, each within 0.1 %"}
	h := result.NewHDR()
	for us := int64(1); us <= 10_000; us++ {
		result.Record(h, us*int64(time.Microsecond), 1)
	}
	r := result.NewHistogram(h)
	p50, p99 := float64(r.P50NS)/1e3, float64(r.P99NS)/1e3
	a.Seen = fmt.Sprintf("p50 %.0f µs, p99 %.0f µs", p50, p99)
	a.Passed = math.Abs(p50/5000-1) <= 1e-3 && math.Abs(p99/9900-1) <= 1e-3
	return a
}
