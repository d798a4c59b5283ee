package load

import (
	"context"
	"sync"
	"time"
)

// ramp calls do for 0 to n-1, each once, from goroutines that are reused: a
// stack that grew in one handshake serves the next. With a rate, in calls per
// second, call i starts i/rate after the first, however long the others take;
// without one, at most parallel calls run at a time. It returns when all have
// returned.
func ramp(ctx context.Context, n, parallel int, rate float64, do func(i int)) {
	var workers sync.WaitGroup
	defer workers.Wait()
	work := make(chan int)
	defer close(work)
	start := time.Now()
	if rate > 0 {
		parallel = n
	}
	for i := range n {
		if rate > 0 {
			sleep(ctx, time.Until(start.Add(time.Duration(float64(i)/rate*float64(time.Second)))))
		}
		if parallel > 0 {
			select {
			case work <- i: // a goroutine is free
				continue
			default:
			}
			parallel--
			workers.Go(func() {
				do(i)
				for i := range work {
					do(i)
				}
			})
			continue
		}
		work <- i
	}
}

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
