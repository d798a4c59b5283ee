package load_test

import (
	"context"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/internal/pace"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

func warned(r *result.Case, code string) string {
	i := slices.IndexFunc(r.Warnings, func(w result.Warning) bool { return w.Code == code })
	if i < 0 {
		return ""
	}
	return r.Warnings[i].Message
}

// slowTopic delays the messages of one topic by 100 ms, and all others by 1.
func slowTopic(topic string) whenFunc {
	return func(_ int, p *packet.Publish, t time.Duration) time.Duration {
		if string(p.Topic) == topic {
			return t + 100*time.Millisecond
		}
		return t + time.Millisecond
	}
}

// overPipes runs one case against f, with whatever else cfg says, and returns
// the accounts of its streams too.
func overPipes(t *testing.T, f *mqtttest.Fake, cfg load.Config, change func(*scenarios.Case)) (*result.Case, []result.StreamAccount) {
	t.Helper()
	var rows []result.StreamAccount
	cfg.RunID, cfg.Waiter = "r1", pace.Sleeper
	cfg.Dial = func(context.Context, string, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go f.ServeConn(far)
		return near, nil
	}
	cfg.Observer.Ledger = func(_ *scenarios.Case, r []result.StreamAccount) { rows = append(rows, r...) }
	c := testCase(1, 100, packet.V5)
	c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "h", Port: 1883}}
	c.Load.Warmup, c.Load.Iterations = 0, 1
	change(&c)
	results, err := load.New(cfg).Run(t.Context(), []scenarios.Case{c})
	if err != nil {
		t.Fatal(err)
	}
	return &results[0], rows
}

// TestSlowClientIsNamed: of ten clients one takes 100 ms and the others 1; the
// row says which, and every stream has its mean (KAT-14).
func TestSlowClientIsNamed(t *testing.T) {
	open := func(c *scenarios.Case) { atRate(1000, 2*time.Second)(c); c.Load.Topics = 10 }
	for name, change := range map[string]func(*scenarios.Case){
		"open":     open,
		"launches": func(c *scenarios.Case) { open(c); c.Load.Launches = 2 },
		"closed":   func(c *scenarios.Case) { c.Load.Topics, c.Load.Inflight, c.Load.Messages = 10, 1, 1000 },
		"warm-up": func(c *scenarios.Case) {
			c.Load.Topics, c.Load.Inflight, c.Load.Messages, c.Load.Warmup, c.Load.Iterations = 10, 4, 400, 2, 3
		},
		"one subscriber": func(c *scenarios.Case) {
			open(c)
			c.Load.TopicsPerSubscriber = 10
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, rows := overPipes(t, &mqtttest.Fake{When: (&timed{f: slowTopic("t/r1/7")}).when}, load.Config{}, change)
				got := warned(r, "slow-clients")
				want := "1 of 10 publishers is slow: mean latency 100.0 ms against 1.000 ms of the median publisher (client "
				if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, ", topic t/r1/7)") {
					t.Errorf("%q", got)
				}
				if len(rows) != 10*max(r.Iterations[len(r.Iterations)-1].Launch, 1) {
					t.Errorf("%d streams", len(rows))
				}
				for _, a := range rows {
					want := float64(time.Millisecond)
					if a.Topic == "t/r1/7" {
						want *= 100
						if a.Launch == 1 && !strings.Contains(got, "(client "+a.Publisher+",") {
							t.Errorf("%q names another client than %s", got, a.Publisher)
						}
					}
					if a.Timed != a.Delivered || a.Timed == 0 || a.MeanNS != want {
						t.Errorf("%s: mean %v of %d of %d, want %v", a.Topic, a.MeanNS, a.Timed, a.Delivered, want)
					}
				}
			})
		})
	}
}

// TestSlowReceiverIsNamed: where one publisher serves all, the receiver is named.
func TestSlowReceiverIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := overPipes(t, &mqtttest.Fake{When: (&timed{f: slowTopic("t/r1/2")}).when}, load.Config{}, func(c *scenarios.Case) {
			atRate(300, 2*time.Second)(c)
			c.Load.Topics, c.Load.TopicsPerPublisher = 6, 6
		})
		got := warned(r, "slow-clients")
		if !strings.HasPrefix(got, "1 of 6 receivers is slow: mean latency 100.0 ms against 1.000 ms of the median receiver (client ") || !strings.HasSuffix(got, ", topic t/r1/2)") {
			t.Errorf("%q", got)
		}
	})
}

// TestNobodyIsSlow: where all are as slow, and where there are too few to say
// which is the odd one out, none is named.
func TestNobodyIsSlow(t *testing.T) {
	for name, tt := range map[string]struct {
		f      whenFunc
		topics int
	}{"all": {after(100 * time.Millisecond), 10}, "one of two": {slowTopic("t/r1/1"), 2}} {
		synctest.Test(t, func(t *testing.T) {
			r, _ := overPipes(t, &mqtttest.Fake{When: (&timed{f: tt.f}).when}, load.Config{}, func(c *scenarios.Case) {
				atRate(1000, time.Second)(c)
				c.Load.Topics = tt.topics
			})
			if got := warned(r, "slow-clients"); got != "" {
				t.Errorf("%s: %s", name, got)
			}
		})
	}
}

// TestStoppedEachSecond: a collection and a stop of 20 ms each second, which no
// part of the process can avoid, are in the latency of the messages due in them,
// and in the send lag (KAT-12).
func TestStoppedEachSecond(t *testing.T) {
	const stop = 20 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		base, collected := time.Now(), atomic.Int64{}
		clock := func() int64 { // in a stop the clock reads its end
			d := time.Since(base)
			if second := int64(d / time.Second); second > 0 && d%time.Second < stop {
				if collected.Swap(second) != second {
					runtime.GC()
				}
				time.Sleep(stop - d%time.Second)
			}
			return int64(time.Since(base))
		}
		idle := func() (user, system time.Duration) { return 0, 0 }
		fake := &mqtttest.Fake{When: (&timed{f: after(time.Millisecond)}).when}
		r, _ := overPipes(t, fake, load.Config{Clock: clock, CPU: idle}, atRate(1000, 10*time.Second))
		e, lag := r.Latency.EndToEnd, r.Latency.SendLag
		full, err := e.Decode()
		if err != nil {
			t.Fatal(err)
		}
		late := int64(0)
		for _, b := range full.Distribution() {
			if b.From > 1_500_000 {
				late += b.Count
			}
		}
		// In each of 9 stops the one that came back as it began, and the 20 that were
		// due in it, each a millisecond less late than the one before; and at the end
		// the last message of all.
		if late != 9*21+1 || collected.Load() != 10 {
			t.Errorf("%d messages were late, in %d stops", late, collected.Load())
		}
		quantiles(t, e, map[float64]float64{98: 1, 99.8: 20, 100: 21})
		quantiles(t, lag, map[float64]float64{100: 20})
		if b := r.Bottleneck; b.Kind != "generator" || !strings.Contains(b.Detail, "longest GC pause ") {
			t.Errorf("%+v", b)
		}
	})
}
