package main

import (
	"context"
	"slices"
	"time"

	"github.com/mqttload/mqttload/internal/pace"
	"github.com/mqttload/mqttload/result/stats"
)

// pacing is how well a rate was kept in each round: lateness in ns, and the share of
// messages that were missing at the end, 0.001 for 0.1 %.
type pacing struct {
	rate     int
	kind     string
	p50, p99 []float64
	missed   []float64
}

// pacing paces messages that are not sent.
func (m *measurement) pacing(ctx context.Context) error {
	for _, rate := range []int{1_000, 10_000, 100_000} {
		m.pacers = append(m.pacers, pacing{rate: rate})
	}
	w := pace.New()
	defer w.Stop()
	stop := context.AfterFunc(ctx, w.Stop)
	defer stop()
	for round := range m.Rounds {
		for i := range m.pacers {
			k := &m.pacers[i]
			m.tell("round %d of %d: pacing %d messages per second", round+1, m.Rounds, k.rate)
			k.kind = w.Kind()
			k.round(w, pacedTimes*m.Time)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// pacedTimes is how many times the time of a measurement a rate is paced, so that
// the lateness of the last tick has little weight.
const pacedTimes = 5

// leastTick is the shortest wait: at higher rates messages go in batches.
const leastTick = 100 * time.Microsecond

// round keeps an absolute schedule for d, as an open loop does: at each tick all
// messages due go, and a late tick does not shift the schedule.
func (k *pacing) round(w *pace.Waiter, d time.Duration) {
	gap := time.Second / time.Duration(k.rate)
	total := int(d / gap)
	late := make([]float64, 0, total)
	start := time.Now()
	kept := 0
	for tick := time.Duration(0); len(late) < total; tick += max(gap, leastTick) {
		if !w.Until(start.Add(tick)) {
			return
		}
		now := time.Since(start)
		for len(late) < total && time.Duration(len(late))*gap <= now {
			late = append(late, float64(now-time.Duration(len(late))*gap))
		}
		if now <= d {
			kept = len(late)
		}
	}
	slices.Sort(late)
	k.p50 = append(k.p50, stats.Quantile(late, 0.5))
	k.p99 = append(k.p99, stats.Quantile(late, 0.99))
	k.missed = append(k.missed, float64(total-kept)/float64(total))
}
