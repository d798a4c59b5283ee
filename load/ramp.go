package load

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mqttload/mqttload/mqtt"
)

// ramp calls do for 0 to n-1, each once, from goroutines that take one after
// the other: what a handshake has made their stacks grow to serves the next,
// and is dropped at the end. With a rate, in calls per second, call i starts
// i/rate after the first, however long the others take; without one, at most
// parallel run at a time. It returns when all have.
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
			case work <- i: // somebody is free
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

// connect makes one client's connection. A broker that is busy, or limits the
// rate, is asked again for as long as ctx allows. A session of an earlier run is
// ended. (Not by a clean start at once: Mosquitto 2.0.11 does not write down
// sessions that began with one.)
func (l *launch) connect(ctx context.Context, m *member, cfg mqtt.Config) (client *mqtt.Client, err error) {
	attempt := func() (err error) {
		if m.returns() {
			client, err = l.link(ctx, m, cfg)
		} else if client, err = mqtt.Connect(ctx, cfg); err == nil {
			m.client.Store(client)
		}
		return err
	}
	once := func() error {
		err := attempt()
		if errors.Is(err, mqtt.ErrSessionPresent) {
			cfg.CleanStart = true
			err = attempt()
		}
		return m.dialer.Fault(err)
	}
	err = insist(ctx, func() error { return m.dialer.Follow(once) }, func(err error) {
		e := ErrorOf(err)
		e.Reason += ": tried again"
		l.run.errs.add(e)
	})
	return client, err
}

// insist calls connect until it succeeds, fails for good, or ctx ends: a
// refusal that may pass is told to refused and met with a back-off. Its error
// is the last refusal where that is what time has run out on.
func insist(ctx context.Context, connect func() error, refused func(error)) error {
	var wait mqtt.Backoff
	for {
		err := connect()
		if !mqtt.IsTemporary(err) {
			return err
		}
		refused(err)
		if sleep(ctx, wait.Next()); ctx.Err() != nil {
			return err
		}
	}
}
