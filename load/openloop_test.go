package load_test

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/internal/racing"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// The known answers below are of one publisher and one subscriber, QoS 1, 1,000
// messages per second for a minute, unless they say otherwise, on virtual time.
// Under the race detector those that scale take a tenth, the others are skipped.

const minute = messages * time.Millisecond

// fullSize skips under the race detector what scripts/test runs without it.
func fullSize(t *testing.T, smaller string) {
	t.Helper()
	if racing.Enabled {
		t.Skipf("60,000 messages are too many for the race detector: %s is as this", smaller)
	}
}

// whenFunc says when a broker has done with a message that has come at t since
// its first.
type whenFunc func(n int, p *packet.Publish, t time.Duration) time.Duration

// timed makes a broker's delays of f, and keeps what they come to.
type timed struct {
	mu    sync.Mutex
	start time.Time
	f     whenFunc
	sum   time.Duration
	at    []time.Duration
}

func (w *timed) when(n int, p *packet.Publish, arrived time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.start.IsZero() {
		w.start = arrived
	}
	t := arrived.Sub(w.start)
	done := w.f(n, p, t)
	w.sum += done - t
	w.at = append(w.at, t)
	return w.start.Add(done)
}

// openRun runs one case at 1,000 messages per second against a broker of those
// delays.
func openRun(t *testing.T, f whenFunc, change func(*scenarios.Case)) (*result.Case, *timed) {
	t.Helper()
	w := &timed{f: f}
	r, err := against(t, &mqtttest.Fake{When: w.when}, func(c *scenarios.Case) {
		atRate(1000, minute)(c)
		if change != nil {
			change(c)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

func after(d time.Duration) whenFunc {
	return func(_ int, _ *packet.Publish, t time.Duration) time.Duration { return t + d }
}

// quantiles fails unless the histogram has these values, in milliseconds, at
// these percentiles, to its three digits.
func quantiles(t *testing.T, h *result.Histogram, want map[float64]float64) {
	t.Helper()
	full, err := h.Decode()
	if err != nil {
		t.Fatal(err)
	}
	for q, ms := range want {
		if got := float64(full.ValueAtQuantile(q)) / 1e6; math.Abs(got-ms) > 0.001*ms {
			t.Errorf("p%g is %.3f ms, want %g", q, got, ms)
		}
	}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

// TestFixedDelay: every message takes 10 ms; rate, counts and lag are exact
// (KAT-1, 2 and 9).
func TestFixedDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := openRun(t, after(10*time.Millisecond), nil)
		check(t, r, messages)
		e := r.Latency.EndToEnd
		if e.Count != messages || e.Clamped != 0 || r.Latency.Service.Count != messages || r.Latency.Ack.Count != messages {
			t.Errorf("%+v", r.Latency)
		}
		quantiles(t, e, map[float64]float64{0.01: 10, 50: 10, 99: 10, 100: 10})
		near(t, "mean", e.MeanNS, 10e6, 1e-3)
		// What is due in the last 10 ms comes after the last window; one comes on
		// its very end.
		near(t, "rate", *r.Summary.MessagesPerSec, 1000*(1-9.5/messages), 0.6/messages)
		near(t, "offered", r.Offered.MessagesPerSec, 1000, 1e-9)
		near(t, "achieved", *r.Offered.Achieved, 1000, 1e-9)
		if lag := r.Latency.SendLag; lag.Count != messages || lag.MaxNS > 1 {
			t.Errorf("send lag %+v", lag)
		}
		slots := map[time.Duration]int{}
		for _, at := range w.at {
			if slots[at/(10*time.Millisecond)]++; slots[at/(10*time.Millisecond)] > 20 {
				t.Fatalf("more than 20 sends in the 10 ms up to %s", at)
			}
		}
		if len(r.Iterations) != messages/1000 || r.Bottleneck.Kind != "target met" || len(warnings(r)) != 0 || len(r.Timeline) < messages/1000 {
			t.Errorf("%d iterations, bottleneck %+v, warnings %+v, %d ticks", len(r.Iterations), r.Bottleneck, r.Warnings, len(r.Timeline))
		}
	})
}

// TestTwoPoint: each 100th message takes 200 ms, the others 5 (KAT-3).
func TestTwoPoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := openRun(t, func(n int, _ *packet.Publish, t time.Duration) time.Duration {
			if n%100 == 99 {
				return t + 200*time.Millisecond
			}
			return t + 5*time.Millisecond
		}, atRate(1000, 10*time.Second))
		quantiles(t, r.Latency.EndToEnd, map[float64]float64{50: 5, 98.9: 5, 99.1: 200, 100: 200})
		near(t, "mean", r.Latency.EndToEnd.MeanNS, 6.95e6, 1e-3)
		full, _ := r.Latency.EndToEnd.Decode()
		near(t, "stddev", full.StdDev(), 19.40e6, 1e-3)
	})
}

// stalls makes a broker of 1 ms that stands still for two seconds, and then
// works off what has gathered with gap between two messages.
func stalls(from, gap time.Duration) whenFunc {
	to := from + 2*time.Second
	last := time.Duration(-time.Hour)
	return func(_ int, _ *packet.Publish, t time.Duration) time.Duration {
		done := t + time.Millisecond
		if t >= from && t < to {
			done = to
			if gap == 0 {
				done = to + time.Millisecond
			}
		}
		last = max(done, last+gap)
		return last
	}
}

// TestStall: a stall of 2 s is in the latency of every message that was due in
// it, whether or not it was sent (KAT-4).
func TestStall(t *testing.T) {
	fullSize(t, "TestStallBehindWindow")
	synctest.Test(t, func(t *testing.T) {
		r, _ := openRun(t, stalls(20*time.Second, 0), nil)
		check(t, r, 60_000)
		e := r.Latency.EndToEnd
		quantiles(t, e, map[float64]float64{95: 1, 97: 201, 99: 1401, 99.9: 1941, 100: 2001})
		near(t, "mean", e.MeanNS, 34.35e6, 1e-3)
		full, _ := e.Decode()
		slow := int64(0)
		for _, b := range full.Distribution() {
			if b.From > 1_500_000 {
				slow += b.Count
			}
		}
		if slow != 2000 {
			t.Errorf("%d messages took more than 1.5 ms, want 2,000", slow)
		}
		// The windows that stood still are one with the next.
		if n := len(r.Iterations); n != 58 {
			t.Errorf("%d iterations", n)
		}
		near(t, "requests per second", *r.Summary.ReqPerSec, 1000, 1e-3)
		total := int64(0)
		for _, it := range r.Iterations {
			total += it.ElapsedNS
		}
		if total != int64(time.Minute) {
			t.Errorf("the windows last %s", time.Duration(total))
		}
	})
}

// TestStallBehindWindow: where the window holds back what is due, the latency
// still runs from when it was, the service time from when it was sent.
func TestStallBehindWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := openRun(t, stalls(2*time.Second, 0), func(c *scenarios.Case) { atRate(1000, 5*time.Second)(c); c.Load.Inflight = 20 })
		check(t, r, 5_000)
		if e, s, lag := r.Latency.EndToEnd, r.Latency.Service, r.Latency.SendLag; e.MaxNS < 2000e6 || s.MaxNS > 2002e6 || s.P99NS > 2e6 || lag.P99NS < 1000e6 {
			t.Errorf("end to end %+v\nservice %+v\nlag %+v", e, s, lag)
		}
	})
}

// TestStallThenSlow: after the stall the broker has a capacity of 4,000/s (KAT-5).
func TestStallThenSlow(t *testing.T) {
	fullSize(t, "TestStallBehindWindow")
	synctest.Test(t, func(t *testing.T) {
		r, w := openRun(t, stalls(20*time.Second, 250*time.Microsecond), nil)
		e := r.Latency.EndToEnd
		quantiles(t, e, map[float64]float64{99: 1550, 99.9: 1955, 100: 2000})
		near(t, "mean", e.MeanNS, float64(w.sum)/60_000, 1e-3)
	})
}

// TestClosedStall: the same stall in a closed loop is met by one message per
// client, and the percentiles know nothing of it (KAT-6, a tenth of it).
func TestClosedStall(t *testing.T) {
	fullSize(t, "TestTimelineInAStall")
	synctest.Test(t, func(t *testing.T) {
		w := &timed{f: func(_ int, _ *packet.Publish, t time.Duration) time.Duration {
			if t >= 2*time.Second && t < 2200*time.Millisecond {
				return 2201 * time.Millisecond
			}
			return t + time.Millisecond
		}}
		r, err := against(t, &mqtttest.Fake{When: w.when}, func(c *scenarios.Case) {
			c.Load.Topics, c.Load.Inflight, c.Load.Messages, c.Load.MinTime = 10, 1, 0, 6*time.Second
		})
		if err != nil {
			t.Fatal(err)
		}
		check(t, r, 58_000)
		e := r.Latency.EndToEnd
		quantiles(t, e, map[float64]float64{99.98: 1, 99.99: 201, 100: 201})
		near(t, "mean", e.MeanNS, (57_990*1e6+10*201e6)/58_000, 1e-3)
		note := "a closed loop under-weights stalls: 10 of 58,000 latencies"
		if !slices.ContainsFunc(r.Warnings, func(w result.Warning) bool {
			return w.Code == result.CodeClosedLoopStall && strings.HasPrefix(w.Message, note)
		}) {
			t.Errorf("no %q in %+v", note, r.Warnings)
		}
	})
}

// TestLittlesLaw: with an acknowledgement delay of 10 ms a closed loop does
// window/10 ms requests, and with a tiny one far more: it measures the window
// (KAT-7, C5).
func TestLittlesLaw(t *testing.T) {
	for _, window := range []int{1, 10, 100} {
		synctest.Test(t, func(t *testing.T) {
			w := &timed{f: after(10 * time.Millisecond)}
			r, err := against(t, &mqtttest.Fake{When: w.when}, func(c *scenarios.Case) {
				c.Load.Inflight, c.Load.Messages = window, int64(200*window)
			})
			if err != nil {
				t.Fatal(err)
			}
			near(t, "requests per second", *r.Summary.ReqPerSec, float64(window)*100, 0.01)
			if r.Bottleneck.Kind != "window" || !strings.Contains(r.Bottleneck.Detail, "in flight") || r.Offered != nil {
				t.Errorf("%+v %+v", r.Bottleneck, r.Offered)
			}
		})
	}
}

// TestOverload: a broker that does half of what is offered makes a backlog, and
// the row says so (KAT-8).
func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := 500 * time.Microsecond
		r, _ := openRun(t, func(_ int, _ *packet.Publish, t time.Duration) time.Duration {
			last = max(t, last) + time.Millisecond
			return last
		}, func(c *scenarios.Case) { atRate(2000, minute)(c); c.Load.Inflight = 100 })
		d := r.Delivery
		if d.Scheduled != 2*messages || d.Sent != messages+99 || d.Unsent != messages-99 || d.Delivered != d.Sent || d.Acked != d.Sent {
			t.Errorf("%+v", d)
		}
		near(t, "achieved", *r.Summary.MessagesPerSec, 1000, 1e-3)
		near(t, "offered", r.Offered.MessagesPerSec, 2000, 1e-9)
		share := "(50.08 %), 59,901"
		if racing.Enabled {
			share = "%), 5,901"
		}
		if r.RateKept() || r.Bottleneck.Kind != "broker" || len(warnings(r)) != 1 || r.Warnings[0].Code != "rate-not-kept" ||
			!strings.Contains(r.Warnings[0].Message, share+" messages") {
			t.Errorf("bottleneck %+v, warnings %+v", r.Bottleneck, r.Warnings)
		}
	})
}

// TestPoissonRun: what arrives is the schedule of the seed (KAT-10).
func TestPoissonRun(t *testing.T) {
	run := func(seed uint64) (at []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			_, w := openRun(t, after(0), func(c *scenarios.Case) {
				atRate(1000, 2*time.Second)(c)
				c.Load.Arrival, c.Load.Seed = scenarios.Poisson, seed
			})
			at = w.at
		})
		return at
	}
	a, b, c := run(1), run(1), run(2)
	if n := len(a); n < 1850 || n > 2150 {
		t.Errorf("%d messages", n)
	}
	same, other := len(a) == len(b), len(a) == len(c)
	for i := range min(len(a), len(b), len(c)) {
		same = same && a[i] == b[i]
		other = other && a[i] == c[i]
	}
	if !same || other {
		t.Errorf("one seed gives one schedule: %v, two give one: %v", same, other)
	}
}

// TestWarmupApart: what was due in the warm-up is in no figure, even where it
// comes later (KAT-13).
func TestWarmupApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := openRun(t, func(_ int, _ *packet.Publish, t time.Duration) time.Duration {
			if t < 5*time.Second {
				return t + 100*time.Millisecond
			}
			return t + time.Millisecond
		}, func(c *scenarios.Case) { atRate(1000, 15*time.Second)(c); c.Load.Warmup = 5 })
		check(t, r, 10_000)
		e := r.Latency.EndToEnd
		quantiles(t, e, map[float64]float64{0.01: 1, 100: 1})
		if e.Count != 10_000 || r.Delivery.Acked != 10_000 || r.Latency.Ack.Count != 10_000 || r.Latency.SendLag.Count != 10_000 {
			t.Errorf("%+v", r.Latency)
		}
		warm := 0
		for _, it := range r.Iterations {
			if it.Stage == result.StageWarmup {
				warm++
			}
		}
		if warm != 5 || len(r.Iterations) != 15 {
			t.Errorf("%d iterations, %d of them warm-up", len(r.Iterations), warm)
		}
	})
}

// TestSlowClient: percentiles are over all messages, not means of clients' own
// (KAT-14, C7).
func TestSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := openRun(t, func(_ int, p *packet.Publish, t time.Duration) time.Duration {
			if string(p.Topic) == "t/r1/7" {
				return t + 100*time.Millisecond
			}
			return t + time.Millisecond
		}, func(c *scenarios.Case) { atRate(1000, 10*time.Second)(c); c.Load.Topics = 10 })
		check(t, r, 10_000)
		quantiles(t, r.Latency.EndToEnd, map[float64]float64{50: 1, 89: 1, 91: 100, 100: 100})
		near(t, "mean", r.Latency.EndToEnd.MeanNS, 10.9e6, 1e-3)
	})
}

// TestNeverComes: a message ten minutes late is lost once, and the run ends
// after the drain time (KAT-15); one that is late within it is in the latency.
func TestNeverComes(t *testing.T) {
	for name, tt := range map[string]struct {
		late time.Duration
		lost int64
	}{"ten minutes": {10 * time.Minute, 1}, "fifty seconds": {50 * time.Second, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				r, _ := openRun(t, func(n int, _ *packet.Publish, t time.Duration) time.Duration {
					if n == 1000 {
						return t + tt.late
					}
					return t + time.Millisecond
				}, func(c *scenarios.Case) { atRate(1000, 2*time.Second)(c); c.Load.Drain = time.Minute })
				d, e := r.Delivery, r.Latency.EndToEnd
				if d.Lost != tt.lost || d.Delivered != 2000-tt.lost || d.Late != 0 || e.Clamped != 0 || e.Count != d.Delivered {
					t.Errorf("%+v\n%+v", d, e)
				}
				if tt.lost == 0 {
					quantiles(t, e, map[float64]float64{100: 50_000})
				} else if l := r.Losses; l == nil || l.First != 1000 || l.Last != 1000 || l.Unacked != 1 {
					t.Errorf("losses %+v", l)
				}
				if d := time.Since(began); d > 70*time.Second {
					t.Errorf("took %s", d)
				}
				time.Sleep(tt.late) // the broker's own timer has to end
			})
		})
	}
}

// TestWrongStamp: times are this process's own and never read from a message,
// so that none can be skewed; a message whose stamp is not one of those sent is
// foreign and disturbs nothing (KAT-16).
func TestWrongStamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := against(t, &mqtttest.Fake{Deliver: func(n int, p packet.Publish) []packet.Publish {
			if n%10 != 9 {
				return keep(p)
			}
			wrong := p
			wrong.Payload = append([]byte(nil), p.Payload...)
			wrong.Payload[5] ^= 0x80 // half of the numbers that there are away
			if n%20 == 9 {
				wrong.Payload[0] ^= 1 // another run's
			}
			return []packet.Publish{wrong, p}
		}}, atRate(100_000, messages*10*time.Microsecond))
		if err != nil {
			t.Fatal(err)
		}
		if d := r.Delivery; d.Foreign != messages/10 || d.Delivered != messages || d.Duplicated+d.Reordered+d.Corrupted+d.Lost != 0 {
			t.Errorf("%+v", d)
		}
		if e := r.Latency.EndToEnd; e.Count != messages || e.MaxNS > int64(time.Millisecond) {
			t.Errorf("%+v", e)
		}
	})
}
