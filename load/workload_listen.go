package load

import (
	"context"

	"github.com/mqttload/mqttload/result"
)

// listening counts what others publish.
type listening struct{}

func (listening) byClock() bool { return true }

func (listening) totals(it *iteration) totals { return it.messages() }

// iterate listens for the duration, or until Config.Enough messages have come.
func (listening) iterate(ctx context.Context, it *iteration) error {
	it.begin()
	w := newWindows(it)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if e := it.launch.enough; e != nil {
		go func() {
			select {
			case <-e.done:
				stop()
			case <-ctx.Done():
			}
		}()
	}
	w.cutAll(ctx, it.spec.Load.Duration)
	return w.finish(ctx, result.Delivery{})
}
