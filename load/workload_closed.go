package load

import (
	"context"
)

// closedLoop publishes as fast as the windows allow: a message is sent when one
// in flight has been delivered.
type closedLoop struct{}

func (closedLoop) byClock() bool { return false }

func (closedLoop) totals(it *iteration) totals { return it.messages() }

// iterate sends, and waits until everything has been delivered or nothing makes
// progress.
func (closedLoop) iterate(ctx context.Context, it *iteration) error {
	if it.publishers = it.launch.alive(); len(it.publishers) == 0 {
		return ErrAllLost
	}
	r := it.measure(it.account, func() (stalled bool) {
		it.share()
		for _, p := range it.publishers {
			if p.hasReceivers {
				p.pump()
			} else {
				go p.pump() // without receivers it may send until the iteration ends
			}
		}
		return it.wait(ctx)
	})
	return it.verdict(ctx, r)
}
