package load_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// What users of other load tools have reported, as cases of this one.

// TestNoConnack: a broker that accepts and never answers fails each client at
// the connect timeout, all of them together.
func TestNoConnack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r, err := against(t, &mqtttest.Fake{NoConnack: true}, func(c *scenarios.Case) {
			c.Load.Topics, c.Target.ConnectTimeout = 10, 2*time.Second
		})
		if err == nil || !load.Unreachable(err) || r.Clients.Connected != 0 || r.Clients.Planned != 20 {
			t.Errorf("%v, %+v", err, r.Clients)
		}
		if d := time.Since(began); d < 2*time.Second || d > 2500*time.Millisecond {
			t.Errorf("took %s", d)
		}
	})
}

// TestSomeReset: a broker that resets 1 of 100 clients after CONNACK does not
// end the test of the others.
func TestSomeReset(t *testing.T) {
	for model, change := range map[string]func(*scenarios.Case){"closed": nil, "open": atRate(1000, 2*time.Second)} {
		t.Run(model, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := faulty(broker.Fault{Times: 1, Effect: broker.Cut{}})
				r, err := against(t, f, func(c *scenarios.Case) {
					c.Load.Messages = 2000
					if change != nil {
						change(c)
					}
					c.Load.Topics = 100
				})
				if err != nil {
					t.Fatal(err)
				}
				d := r.Delivery
				if r.Clients.Lost != 1 || d.Scheduled != 2000 || d.Sent+d.Unsent != 2000 || d.Delivered != 1980 {
					t.Errorf("clients %+v, delivery %+v", r.Clients, d)
				}
				if model == "open" && (r.RateKept() || !hasWarning(r, "rate-not-kept")) {
					t.Errorf("offered %+v, warnings %+v", r.Offered, r.Warnings)
				}
			})
		})
	}
}

func hasWarning(r *result.Case, code string) bool {
	for _, w := range r.Warnings {
		if w.Code == code {
			return true
		}
	}
	return false
}

// warnings are those of r that are not about how its iterations scatter, which
// a busy machine brings about.
func warnings(r *result.Case) []result.Warning {
	return slices.DeleteFunc(slices.Clone(r.Warnings), func(w result.Warning) bool {
		return slices.Contains([]string{result.CodeMinIterationTime, result.CodeStalled, result.CodeOutliers, result.CodeMultimodal}, w.Code)
	})
}

// TestWithheldAcks: what is not acknowledged is not sent again on a connection
// that stands, and is not counted twice. (emqx/emqtt-bench#224)
func TestWithheldAcks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := 0
		w := &timed{f: after(35 * time.Second)}
		f := &mqtttest.Fake{When: w.when, Deliver: func(n int, p packet.Publish) []packet.Publish {
			seen++
			if p.Dup {
				t.Error("DUP on a connection that stands")
			}
			return keep(p)
		}}
		r, err := against(t, f, func(c *scenarios.Case) { c.Load.Messages, c.Load.Drain = 100, time.Minute })
		if err != nil {
			t.Fatal(err)
		}
		check(t, r, 100)
		if seen != 100 {
			t.Errorf("the broker saw %d messages", seen)
		}
	})
}

// TestLateSuback: nothing is published before every SUBACK, nothing is lost by
// that, and the wait is in no latency of messages.
func TestLateSuback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := against(t, &mqtttest.Fake{SubackDelay: 3 * time.Second}, atRate(100, 2*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		check(t, r, 200)
		if e := r.Latency.EndToEnd; e.MaxNS > int64(time.Millisecond) {
			t.Errorf("%+v", e)
		}
		quantiles(t, r.Latency.Subscribe, map[float64]float64{100: 3000})
	})
}

// TestReceiveMaximum: a burst of QoS 2 is never more in flight than the broker
// allows, and all of it completes.
func TestReceiveMaximum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := uint16(20)
		var mu sync.Mutex
		out, most := 0, 0
		w := &timed{f: after(time.Millisecond)}
		f := &mqtttest.Fake{
			Connack: packet.Connack{Properties: packet.Properties{ReceiveMaximum: &limit}},
			When: func(n int, p *packet.Publish, at time.Time) time.Time {
				mu.Lock()
				defer mu.Unlock()
				out++
				most = max(most, out)
				return w.when(n, p, at)
			},
			Ack: func(int, *packet.Publish) (packet.ReasonCode, bool) {
				mu.Lock()
				defer mu.Unlock()
				out--
				return 0, true
			},
		}
		r, err := against(t, f, func(c *scenarios.Case) { c.QoS, c.Load.Messages, c.Load.Inflight = 2, 5000, 65535 })
		if err != nil {
			t.Fatal(err)
		}
		check(t, r, 5000)
		if most != 20 || r.Window != 20 {
			t.Errorf("%d in flight at most, window %d", most, r.Window)
		}
	})
}

// TestStaleRetained: a retained message of an earlier run is foreign, and in no
// latency.
func TestStaleRetained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker.New(broker.Config{})
		c := testCase(1, 100, packet.V5)
		c.Clients.Topic, c.Clients.Retain, c.Load.Messages = "same", true, 100
		if _, err := run(t.Context(), "old", pipes(b), c); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		c.Clients.Retain, c.Load.Warmup = false, 0
		r, err := run(t.Context(), "new", pipes(b), c)
		if err != nil {
			t.Fatal(err)
		}
		if d := r.Delivery; d.Delivered != 300 || d.Lost+d.Duplicated+d.Late != 0 || d.Foreign > 1 {
			t.Errorf("%+v", d)
		}
		if e := r.Latency.EndToEnd; e.Count != 300 || e.MaxNS > int64(time.Second) {
			t.Errorf("%+v", e)
		}
		_ = b.Close()
	})
}

// TestDrainIsNotMeasured: the rate is the same however long the end of a run
// waits for what does not come.
func TestDrainIsNotMeasured(t *testing.T) {
	var rates []float64
	for _, drain := range []time.Duration{100 * time.Millisecond, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := &mqtttest.Fake{Deliver: func(n int, p packet.Publish) []packet.Publish {
				if n == 100 {
					return nil
				}
				return keep(p)
			}}
			r, err := against(t, f, func(c *scenarios.Case) { atRate(1000, 5*time.Second)(c); c.Load.Drain = drain })
			if err != nil {
				t.Fatal(err)
			}
			rates = append(rates, *r.Summary.MessagesPerSec)
			near(t, "rate", *r.Summary.MessagesPerSec, 1000, 1e-3)
			if r.Delivery.Lost != 1 {
				t.Errorf("%+v", r.Delivery)
			}
		})
	}
	if rates[0] != rates[1] {
		t.Errorf("rates %v", rates)
	}
}

// TestRateByHand: requests per second are messages over the measured time, to
// be worked out from the iterations.
func TestRateByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := against(t, &mqtttest.Fake{When: (&timed{f: after(2 * time.Millisecond)}).when}, func(c *scenarios.Case) {
			c.Load.Messages, c.Load.Iterations = 10_000, 2
		})
		if err != nil {
			t.Fatal(err)
		}
		var n, ns int64
		for _, it := range r.Iterations {
			n, ns = n+it.Requests, ns+it.ElapsedNS
		}
		near(t, "rate", *r.Summary.MessagesPerSec, float64(n)/float64(ns)*1e9, 1e-9)
		if n != 20_000 || ns != int64(400*time.Millisecond) {
			t.Errorf("%d in %d ns", n, ns)
		}
	})
}

// TestSilentStop: publishers whose messages the broker stops taking, while
// their connections stand, are told of.
func TestSilentStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var start time.Time
		stop := func(topic string) bool {
			return topic == "t/r1/3" && time.Since(start) >= 12*time.Second
		}
		f := &mqtttest.Fake{
			Deliver: func(_ int, p packet.Publish) []packet.Publish {
				if start.IsZero() {
					start = time.Now()
				}
				if stop(string(p.Topic)) {
					return nil
				}
				return keep(p)
			},
			Ack: func(_ int, p *packet.Publish) (packet.ReasonCode, bool) { return 0, !stop(string(p.Topic)) },
		}
		r, err := against(t, f, func(c *scenarios.Case) {
			atRate(1000, 20*time.Second)(c)
			c.Load.Topics, c.Load.Inflight = 10, 100
		})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, w := range r.Warnings {
			found = found || w.Code == "publishers-stalled" && strings.HasPrefix(w.Message, "1 of 10 publishers stalled since 12.0 s")
		}
		// 100 went into the window, the rest of eight seconds waits behind it.
		if d := r.Delivery; !found || d.Unsent != 700 || d.Lost != 100 || r.RateKept() || r.Losses.Unacked != 100 || r.Losses.Acked != 0 {
			t.Errorf("%+v\n%+v\n%+v", r.Delivery, r.Losses, r.Warnings)
		}
	})
}

// TestSubscribersGone: the timeline shows when the deliveries end, and the
// account what that has cost.
func TestSubscribersGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &mqtttest.Fake{}
		var mu sync.Mutex
		var far []net.Conn
		dial := func(context.Context, string, string, string) (net.Conn, error) {
			a, b := net.Pipe()
			mu.Lock()
			far = append(far, b)
			mu.Unlock()
			go f.ServeConn(b)
			return a, nil
		}
		c := testCase(1, 100, packet.V5)
		atRate(1000, 10*time.Second)(&c)
		c.Load.Warmup, c.Target.ConnectRate = 0, 1000 // one after the other: subscriber, publisher, ...
		c.Load.Topics = 2
		time.AfterFunc(5*time.Second+3500*time.Microsecond, func() {
			_, _ = far[0].Close(), far[2].Close()
		})
		r, err := run(t.Context(), "r1", dial, c)
		if err != nil {
			t.Fatal(err)
		}
		d := r.Delivery
		if r.Clients.Lost != 2 || d.Sent != 10_000 || d.Lost < 4990 || d.Lost > 5010 || d.Delivered+d.Lost != 10_000 || r.Losses == nil {
			t.Errorf("clients %+v delivery %+v", r.Clients, d)
		}
		for _, tick := range r.Timeline {
			at := time.Duration(tick.TNS)
			if tick.Sent < 500 || at < 4*time.Second && tick.Received < 990 || at > 5100*time.Millisecond && tick.Received != 0 {
				t.Errorf("at %s: %+v", at, tick)
			}
		}
		if n := len(r.Timeline); n < 10 || n > 11 {
			t.Errorf("%d ticks", n)
		}
	})
}

// TestTimelineInAStall: there is a tick for every second, also of those in which
// nothing comes, in a closed loop as well.
func TestTimelineInAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &timed{f: func(_ int, _ *packet.Publish, t time.Duration) time.Duration {
			if t > 2*time.Second && t < 5500*time.Millisecond {
				return 5500 * time.Millisecond
			}
			return t + time.Millisecond
		}}
		r, err := against(t, &mqtttest.Fake{When: w.when}, func(c *scenarios.Case) { c.Load.Inflight, c.Load.Messages = 1, 4000 })
		if err != nil {
			t.Fatal(err)
		}
		still, sum := 0, int64(0)
		for i, tick := range r.Timeline {
			if sum += tick.Received; tick.Received == 0 {
				still++
			}
			if i > 0 && tick.TNS-r.Timeline[i-1].TNS > int64(1500*time.Millisecond) {
				t.Errorf("no tick between %d and %d ns", r.Timeline[i-1].TNS, tick.TNS)
			}
		}
		if still < 2 || sum != 4000 {
			t.Errorf("%d ticks without deliveries, %d deliveries: %+v", still, sum, r.Timeline)
		}
	})
}

// TestDuration: a closed loop ends at its messages or its duration, whichever
// comes first, and says so in its account.
func TestDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r, err := against(t, &mqtttest.Fake{When: (&timed{f: after(time.Millisecond)}).when}, func(c *scenarios.Case) {
			c.Load.Inflight, c.Load.Messages, c.Load.Iterations, c.Load.Duration = 1, 6000, 10, 10*time.Second
		})
		if err != nil {
			t.Fatal(err)
		}
		if d := r.Delivery; d.Unsent != 0 || d.Sent < 9_500 || d.Sent > 10_500 || d.Delivered != d.Sent || len(r.Iterations) != 2 {
			t.Errorf("%d iterations, %+v", len(r.Iterations), d)
		}
		if d := time.Since(began); d < 10*time.Second || d > 10500*time.Millisecond {
			t.Errorf("took %s", d)
		}
	})
}

// TestInterruptedOpenLoop: an ended context stops the schedule; what was not due
// yet is not called unsent.
func TestInterruptedOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		c := testCase(1, 100, packet.V5)
		atRate(1000, time.Hour)(&c)
		c.Load.Warmup = 0
		f := &mqtttest.Fake{}
		r, err := run(ctx, "r1", func(context.Context, string, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go f.ServeConn(far)
			return near, nil
		}, c)
		if err == nil {
			t.Error("no error")
		}
		if d := r.Delivery; d.Sent < 3499 || d.Sent > 3502 || d.Unsent > 1 || d.Delivered != d.Sent || hasWarning(r, "rate-not-kept") {
			t.Errorf("%+v %+v", d, r.Warnings)
		}
	})
}

// TestVariedPayloads: messages of differing sizes and contents are known down to
// the byte, in every model, and a changed byte is found.
func TestVariedPayloads(t *testing.T) {
	for _, text := range []string{"uniform:8-300", "normal:200+-40", "mix:10*9,1KiB*1", `template:12345678{"id":%i,"n":%s,"r":%x8}`, "template:12345678 %t"} {
		payload, err := scenarios.ParsePayload(text)
		if err != nil {
			t.Fatal(err)
		}
		for model, change := range map[string]func(*scenarios.Case){"closed": nil, "open": atRate(10_000, 200*time.Millisecond)} {
			t.Run(text+"/"+model, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					size, spoilt := 0, 0
					f := &mqtttest.Fake{Deliver: func(n int, p packet.Publish) []packet.Publish {
						size += len(p.Payload)
						if n%100 == 99 && len(p.Payload) > 8 {
							spoilt++
							p.Payload[8+n%(len(p.Payload)-8)] ^= 0x20
						}
						return keep(p)
					}}
					r, err := against(t, f, func(c *scenarios.Case) {
						c.Load.Messages = 2000
						if change != nil {
							change(c)
						}
						c.Payload, c.Load.Seed = payload, 5
						c.Load.Topics = 2
					})
					if err != nil {
						t.Fatal(err)
					}
					if !payload.Verifiable() {
						spoilt = 0
					}
					d, bytes := r.Delivery, int64(0)
					for _, it := range r.Iterations {
						bytes += it.Bytes
					}
					if d.Delivered != 2000 || d.Corrupted != int64(spoilt) || d.Lost+d.Foreign+d.Duplicated != 0 || bytes != int64(size) {
						t.Errorf("%d bytes, want %d; %d spoilt: %+v", bytes, size, spoilt, d)
					}
				})
			})
		}
	}
}

// TestCredentials gives each client the identity of its row, in the order of the
// clients; what the file does not have is as it was.
func TestCredentials(t *testing.T) {
	path := filepath.Join(t.TempDir(), "who.csv")
	if err := os.WriteFile(path, []byte("user,id,password\nu1,first,p1\nu2,second,p2\nu3,third,p3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for clients, want := range map[int]string{1: "first/u1/p1 second/u2/p2", 2: "has 3 rows for 4 clients"} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var seen []string
			f := &mqtttest.Fake{Seen: func(p *packet.Connect) {
				mu.Lock()
				defer mu.Unlock()
				if w := p.Will; w == nil || w.Topic != "gone/"+p.ClientID {
					t.Errorf("will %+v", w)
				}
				seen = append(seen, p.ClientID+"/"+p.Username+"/"+string(p.Password))
			}}
			c := testCase(1, 10, packet.V5)
			c.Load.Topics, c.Clients.Credentials = clients, path
			c.Clients.Will = &scenarios.Will{Topic: "gone/%c", Payload: "%u", Delay: time.Second}
			_, err := run(t.Context(), "r1", func(context.Context, string, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				go f.ServeConn(far)
				return near, nil
			}, c)
			slices.Sort(seen)
			if got := strings.Join(seen, " "); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v, %q", err, got)
			}
		})
	}
}
