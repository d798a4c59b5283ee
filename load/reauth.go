package load

import (
	"context"
	"errors"
	"time"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/result"
)

// reauth makes every client authenticate again once in an interval, spread
// evenly over it. One goroutine serves all clients, without a timer for each.
type reauth struct {
	members    []*member
	connector  *connector
	links      *links
	start      time.Time
	stop, done chan struct{}
}

// newReauth starts the goroutine. It returns nil if the case has no interval or no
// members.
func newReauth(members []*member, cn *connector, links *links) *reauth {
	if cn.spec.Clients.ReauthInterval == 0 || len(members) == 0 {
		return nil
	}
	r := &reauth{members: members, connector: cn, links: links, start: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	go r.run()
	return r
}

// end stops the goroutine. Authentications in progress continue.
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
			r.again(r.members[k%len(r.members)])
		case <-r.stop:
			return
		}
	}
}

// due is when the k-th authentication starts. It depends on k only, not on how long
// earlier ones took.
func (r *reauth) due(k int) time.Time {
	n, every := len(r.members), r.connector.spec.Clients.ReauthInterval
	part := time.Duration(float64(every) * float64(k%n+1) / float64(n))
	return r.start.Add(time.Duration(k/n)*every + part)
}

// again makes a member authenticate, if it is connected.
func (r *reauth) again(m *member) {
	c := m.client.Load()
	if c == nil || c.Err() != nil || m.leaving.Load() {
		return
	}
	r.links.again.Go(func() {
		ctx, cancel := context.WithTimeoutCause(context.Background(), dial.Timeout(r.connector.spec), errReauthTimeout)
		defer cancel()
		start := time.Now()
		err := c.Reauthenticate(ctx)
		r.authenticated(time.Since(start), err)
	})
}

// authenticated counts an authentication that has ended. One that this side
// interrupted has not failed.
func (r *reauth) authenticated(took time.Duration, err error) {
	switch {
	case err == nil:
		r.connector.connections.authenticated(took)
	case r.links.closing.Load(), errors.Is(err, mqtt.ErrClosed):
	case errors.Is(err, mqtt.ErrAuthenticating):
		r.connector.errs.add(result.Error{Kind: result.ErrorReauth, Reason: "skipped: the previous one was still in progress", Count: 1})
	default:
		r.connector.errs.add(result.Error{Kind: result.ErrorReauth, Reason: mqtt.EndOf(err), Count: 1, Example: err.Error()})
	}
}

var errReauthTimeout = errors.New("no answer within the connect timeout")
