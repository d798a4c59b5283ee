package load

import (
	"context"
	"errors"
	"time"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/result"
)

// authenticate has cfg prove its password where it would have sent it. The user
// name stays in CONNECT: brokers know a client by it before the exchange is
// over. What has been derived from a password once is kept over the run.
func (l *launch) authenticate(cfg *mqtt.Config, m *member, d *dial.Dialer) {
	if l.spec.Clients.AuthMethod == "" {
		return
	}
	var scram *mqtt.SCRAM
	if m != nil {
		scram = m.scram
	}
	if scram == nil {
		var err error
		if scram, err = mqtt.NewSCRAM(cfg.Username, string(cfg.Password)); err != nil {
			d.Fail(err)
			return
		}
		scram.Keys = &l.run.x.keys
	}
	if m != nil {
		m.scram = scram
	}
	cfg.Auth, cfg.HasPassword, cfg.Password = scram, false, nil
}

// reauth has every client authenticate again once in an interval, spread evenly
// over it: one goroutine for all of them, and no timer for each.
type reauth struct {
	launch     *launch
	start      time.Time
	stop, done chan struct{}
}

// startReauth begins with it, if that is asked for.
func (l *launch) startReauth() {
	if l.spec.Clients.ReauthInterval == 0 || len(l.members) == 0 {
		return
	}
	l.reauth = &reauth{launch: l, start: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	go l.reauth.run()
}

// end begins no more of it.
func (r *reauth) end() {
	if r == nil {
		return
	}
	close(r.stop)
	<-r.done
}

func (r *reauth) run() {
	defer close(r.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for k := 0; ; k++ {
		timer.Reset(time.Until(r.due(k)))
		select {
		case <-timer.C:
			r.again(r.launch.members[k%len(r.launch.members)])
		case <-r.stop:
			return
		}
	}
}

// due is when the k-th authentication is: a function of k, whatever the ones
// before it have taken.
func (r *reauth) due(k int) time.Time {
	n, every := len(r.launch.members), r.launch.spec.Clients.ReauthInterval
	part := time.Duration(float64(every) * float64(k%n+1) / float64(n))
	return r.start.Add(time.Duration(k/n)*every + part)
}

// again has a member authenticate, if it is connected.
func (r *reauth) again(m *member) {
	c := m.client.Load()
	if c == nil || c.Err() != nil || m.leaving.Load() {
		return
	}
	r.launch.again.Go(func() {
		ctx, cancel := context.WithTimeoutCause(context.Background(), dial.Timeout(r.launch.spec), errReauthTimeout)
		defer cancel()
		start := time.Now()
		err := c.Reauthenticate(ctx)
		r.authenticated(time.Since(start), err)
	})
}

// authenticated counts one that is over. What this side has ended for another
// reason has not failed.
func (r *reauth) authenticated(took time.Duration, err error) {
	switch {
	case err == nil:
		r.launch.mu.Lock()
		defer r.launch.mu.Unlock()
		r.launch.run.legs.reauth.record(int64(took), 1)
	case r.launch.closing.Load(), errors.Is(err, mqtt.ErrClosed):
	case errors.Is(err, mqtt.ErrAuthenticating):
		r.launch.run.errs.add(result.Error{Kind: result.ErrorReauth, Reason: "left out: the one before was under way when it was due", Count: 1})
	default:
		r.launch.run.errs.add(result.Error{Kind: result.ErrorReauth, Reason: mqtt.EndOf(err), Count: 1, Example: err.Error()})
	}
}

var errReauthTimeout = errors.New("no answer within the connect timeout")
