package load_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/pace"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// gate is a barrier that holds one phase until it is opened.
type gate struct {
	phase   load.Phase
	open    chan struct{}
	reached []load.Phase
	number  []int
}

func (g *gate) wait(ctx context.Context, p load.Phase, l load.Launch) error {
	g.reached = append(g.reached, p)
	g.number = append(g.number, l.Number)
	if p != g.phase {
		return nil
	}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// gated runs c against b behind a gate, and calls held when the engine stands there.
func gated(ctx context.Context, b *broker.Broker, g *gate, c scenarios.Case, held func()) (*result.Case, error) {
	c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "h", Port: 1883}}
	var results []result.Case
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		cfg := load.Config{RunID: "r1", Dial: pipes(b), Waiter: pace.Sleeper, Observer: load.Observer{Phase: g.wait}}
		results, err = load.New(cfg).Run(ctx, []scenarios.Case{c})
	}()
	synctest.Wait()
	held()
	<-done
	return &results[0], err
}

// TestBarrierHoldsPublishing: clients connect and subscribe, and no message is
// sent before the barrier opens, however long that takes and whatever the
// workload. The wait is in no figure.
func TestBarrierHoldsPublishing(t *testing.T) {
	for name, change := range map[string]func(c *scenarios.Case){
		"closed loop": func(c *scenarios.Case) { c.Load.Duration = time.Minute },
		"open loop": func(c *scenarios.Case) {
			c.Load.Messages, c.Load.Warmup, c.Load.Duration = 0, 0, 2*time.Second
			c.Load.Stages = []scenarios.Stage{{Duration: 2 * time.Second, From: 1500, To: 1500}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := broker.New(broker.Config{})
				defer b.Close()
				c := testCase(1, 100, packet.V5)
				change(&c)
				g := &gate{phase: load.Publishing, open: make(chan struct{})}
				r, err := gated(t.Context(), b, g, c, func() {
					time.Sleep(time.Hour)
					synctest.Wait()
					if s := b.Stats(); s.MessagesIn != 0 || s.Connected != 2 || s.Subscriptions != 1 {
						t.Errorf("behind the barrier: %+v", s)
					}
					close(g.open)
				})
				if err != nil {
					t.Fatal(err)
				}
				check(t, r, 3000)
				if longest := time.Duration(r.Latency.EndToEnd.MaxNS); longest > time.Minute {
					t.Errorf("a latency of %s", longest)
				}
				if want := []load.Phase{load.Connecting, load.Publishing, load.Ended}; !slices.Equal(g.reached, want) || !slices.Equal(g.number, []int{1, 1, 1}) {
					t.Errorf("phases %v of launches %v", g.reached, g.number)
				}
			})
		})
	}
}

// TestBarrierIsNotConnecting: how long connections took to come about does not
// include the wait for the barrier behind it.
func TestBarrierIsNotConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker.New(broker.Config{})
		defer b.Close()
		c := testCase(0, 100, packet.V5)
		shaped(scenarios.Connect, 1, 0, 0)(&c)
		c.Load.Idle, c.Load.Duration, c.Target.ConnectRate = 11, time.Second, 10
		g := &gate{phase: load.Publishing, open: make(chan struct{})}
		r, err := gated(t.Context(), b, g, c, func() { time.Sleep(time.Hour); close(g.open) })
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Duration(r.Iterations[0].ElapsedNS); took < time.Second || took > 2*time.Second {
			t.Errorf("connecting took %s, want 1 s", took)
		}
	})
}

// TestBarrierEndsWithContext: a run that is stopped at a barrier ends with the
// context's cause, and nothing has failed.
func TestBarrierEndsWithContext(t *testing.T) {
	for _, phase := range []load.Phase{load.Connecting, load.Publishing, load.Ended} {
		synctest.Test(t, func(t *testing.T) {
			b := broker.New(broker.Config{})
			defer b.Close()
			stopped := errors.New("stopped")
			ctx, cancel := context.WithCancelCause(t.Context())
			g := &gate{phase: phase, open: make(chan struct{})}
			// The run connects in no time, and may have to publish first.
			r, err := gated(ctx, b, g, testCase(1, 100, packet.V5), func() {
				time.Sleep(time.Minute)
				synctest.Wait()
				cancel(stopped)
			})
			if !errors.Is(err, stopped) || len(r.Errors) != 0 {
				t.Errorf("phase %d: %v, %+v", phase, err, r.Errors)
			}
			if s := b.Stats(); phase != load.Ended && s.MessagesIn != 0 {
				t.Errorf("phase %d: %d messages", phase, s.MessagesIn)
			}
		})
	}
}

// TestBarrierFails: a barrier that refuses a phase fails the case with its error.
func TestBarrierFails(t *testing.T) {
	for _, phase := range []load.Phase{load.Connecting, load.Publishing, load.Ended} {
		synctest.Test(t, func(t *testing.T) {
			b := broker.New(broker.Config{})
			defer b.Close()
			refused := errors.New("no")
			c := testCase(1, 100, packet.V5)
			c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "h", Port: 1883}}
			c.Load.Launches = 2
			launches := 0
			o := load.Observer{
				Phase: func(_ context.Context, p load.Phase, _ load.Launch) error {
					if p == phase {
						return refused
					}
					return nil
				},
				LaunchDone: func(int, *result.Case) { launches++ },
			}
			results, err := load.New(load.Config{RunID: "r1", Dial: pipes(b), Waiter: pace.Sleeper, Observer: o}).Run(t.Context(), []scenarios.Case{c})
			if !errors.Is(err, refused) || len(results[0].Errors) != 1 || launches != 1 {
				t.Errorf("phase %d: %v, %d launches, %+v", phase, err, launches, results[0].Errors)
			}
		})
	}
}

// ticked adds up what an observer's ticks tell.
type ticked struct {
	ticks                int
	sent, received       int64
	e2e, service, ack, l int64
}

func (k *ticked) tick(_ *scenarios.Case, t result.Tick, l load.Latencies) {
	k.ticks++
	k.sent += t.Sent
	k.received += t.Received
	if l.EndToEnd != nil {
		k.e2e += l.EndToEnd.TotalCount()
	}
	if l.Service != nil {
		k.service += l.Service.TotalCount()
	}
	if l.Ack != nil {
		k.ack += l.Ack.TotalCount()
	}
	if l.SendLag != nil {
		k.l += l.SendLag.TotalCount()
	}
}

// TestTicksAddUp: the histograms of the seconds add up to those of the case,
// over several launches, with and without a schedule.
func TestTicksAddUp(t *testing.T) {
	count := func(h *result.Histogram) int64 {
		if h == nil {
			return 0
		}
		return h.Count
	}
	for name, change := range map[string]func(c *scenarios.Case){
		"closed loop": func(c *scenarios.Case) { c.Load.Launches = 2 },
		"acknowledged": func(c *scenarios.Case) {
			shaped(scenarios.Publish, 1, 3, 0)(c)
			c.Load.Messages = 3000
		},
		"open loop": func(c *scenarios.Case) {
			c.Load.Messages, c.Load.Launches, c.Load.Warmup, c.Load.Duration = 0, 2, 1, 5*time.Second
			c.Load.Stages = []scenarios.Stage{{Duration: 5 * time.Second, From: 500, To: 500}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := broker.New(broker.Config{})
				defer b.Close()
				c := testCase(1, 100, packet.V5)
				c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "h", Port: 1883}}
				change(&c)
				var k ticked
				cfg := load.Config{RunID: "r1", Dial: pipes(b), Waiter: pace.Sleeper, Observer: load.Observer{Tick: k.tick}}
				results, err := load.New(cfg).Run(t.Context(), []scenarios.Case{c})
				if err != nil {
					t.Fatal(err)
				}
				r := &results[0]
				l := &r.Latency
				if k.e2e != count(l.EndToEnd) || k.service != count(l.Service) || k.ack != count(l.Ack) || k.l != count(l.SendLag) || k.e2e+k.ack == 0 {
					t.Errorf("ticks %+v; the case has %d, %d, %d and %d", k, count(l.EndToEnd), count(l.Service), count(l.Ack), count(l.SendLag))
				}
				var sent, received int64
				for _, point := range r.Timeline {
					sent += point.Sent
					received += point.Received
				}
				if k.sent != sent || k.received != received || k.ticks < len(r.Timeline) {
					t.Errorf("%d ticks of %d and %d; the timeline has %d of %d and %d", k.ticks, k.sent, k.received, len(r.Timeline), sent, received)
				}
			})
		})
	}
}
