package load

import (
	"context"
	"time"

	"github.com/mqttload/mqttload/result"
)

// idling is connections that do nothing. Measured is the time until all have
// connected; then they stay open for the duration.
type idling struct{}

func (idling) byClock() bool { return true }

func (idling) totals(*iteration) totals { return totals{} }

func (idling) iterate(ctx context.Context, it *iteration) error {
	it.stage, it.index = result.StageActual, 1
	r := it.entry(it.launch.began, max(it.launch.connectedAt, it.launch.began+1))
	r.Requests = it.launch.connected.Load()
	it.rec.add(r, result.Delivery{})
	it.before, it.start = it.launch.usage(), it.clock()
	timer := time.NewTimer(0)
	defer timer.Stop()
	duration := int64(it.spec.Load.Duration)
	for end := it.start + int64(windowLength); end <= it.start+duration; end += int64(windowLength) {
		if !it.until(ctx, timer, end) || it.launch.allLost() {
			break
		}
	}
	it.rec.used.add(it.before, it.launch.usage())
	if ctx.Err() == nil && it.launch.allLost() {
		return ErrAllLost
	}
	return nil
}
