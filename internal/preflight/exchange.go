package preflight

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
)

// inbox holds the messages that the probe has received.
type inbox chan packet.Publish

type inboxHandler struct {
	mqtt.NopHandler
	in inbox
}

func (i inbox) handler() mqtt.Handler { return inboxHandler{in: i} }

// Message keeps a copy, or drops the message if the inbox is full.
func (h inboxHandler) Message(m *packet.Publish) {
	c := packet.Publish{QoS: m.QoS, Payload: bytes.Clone(m.Payload)}
	select {
	case h.in <- c:
	default:
	}
}

// await returns the QoS at which payload arrives. It ignores other messages.
func (i inbox) await(ctx context.Context, payload []byte) (qos byte, err error) {
	for {
		select {
		case m := <-i:
			if bytes.Equal(m.Payload, payload) {
				return m.QoS, nil
			}
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// errSilence ends the wait for a message.
var errSilence = errors.New("the message did not come back")

// exchange sends one message of each QoS, and the largest message of the cases, if
// the shape has publishers. It expects them back if the shape has subscribers.
func (r *route) exchange(c *mqtt.Client, p *load.Probe, in inbox) {
	k := r.lead()
	if k.Load.PublisherClients() == 0 {
		return // a run that only subscribes must not publish
	}
	listening := k.Load.SubscriberClients() > 0
	most := orElse(c.Connack().Properties.MaximumQoS, 2)
	if listening {
		granted, ok := r.listen(c, p.Topic(k), most)
		if !ok {
			return
		}
		most = min(most, granted)
	}
	for qos := byte(0); qos <= most; qos++ {
		token := make([]byte, 16)
		_, _ = rand.Read(token) // cannot fail: it would end the program
		m := &packet.Publish{Topic: []byte(p.Topic(k)), Payload: token, QoS: qos}
		r.send(c, m, in, listening, fmt.Sprintf("qos %d", qos))
	}
	r.largest(c, p, in, listening)
}

// listen subscribes the probe to the topic that it will publish to.
func (r *route) listen(c *mqtt.Client, topic string, qos byte) (granted byte, ok bool) {
	ctx, cancel := r.untilSilent(c, 0)
	defer cancel()
	codes, err := c.Subscribe(ctx, []packet.Subscription{{Filter: topic, QoS: qos}}, packet.Properties{})
	if err != nil {
		r.unreachable("subscribe", remedy(err), err)
		return 0, false
	}
	granted = byte(codes[0])
	if asked := r.topQoS(); granted < min(asked, qos) {
		r.add("subscribe", Warn, None, "loss between the broker and the subscriber is legal at QoS 0", "the broker granted QoS %d of %d", granted, qos)
	}
	return granted, true
}

func (r *route) topQoS() (most byte) {
	r.each(func(_ int, c *scenarios.Case) { most = max(most, c.QoS) })
	return most
}

// untilSilent returns the context of one exchange. It ends with [errSilence] when no
// bytes have moved for the drain time, or more bytes than a message of size needs.
func (r *route) untilSilent(c *mqtt.Client, size int) (context.Context, context.CancelFunc) {
	d := r.lead().Load.Drain
	if d <= 0 {
		d = 5 * time.Second
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	start := c.Stats()
	last := start.Progress + start.Partial
	most := last + 2*int64(size)
	go func() {
		look := time.NewTicker(d)
		defer look.Stop()
		for {
			select {
			case <-look.C:
			case <-ctx.Done():
				return
			}
			st := c.Stats()
			moved := st.Progress + st.Partial
			if moved == last || moved > most {
				cancel(errSilence)
			}
			last = moved
		}
	}()
	return ctx, func() { cancel(nil) }
}

// send publishes m and waits for the acknowledgement of its QoS, and for its delivery
// if the probe has subscribed.
func (r *route) send(c *mqtt.Client, m *packet.Publish, in inbox, listening bool, what string) bool {
	ctx, cancel := r.untilSilent(c, len(m.Payload))
	defer cancel()
	start := time.Now()
	code, err := c.Publish(ctx, m)
	acked := time.Since(start)
	switch {
	case errors.Is(err, errSilence):
		r.add(what, Fail, Delivery, "", "no acknowledgement within %s", r.lead().Load.Drain)
		return false
	case err != nil:
		r.add(what, Fail, Incomplete, "", "%v", err)
		return false
	case code.IsError():
		r.add(what, Fail, Unreachable, "the broker must let these clients publish to --topic", "publish refused: %s (0x%02X)", code, byte(code))
		return false
	case !listening && m.QoS == 0:
		r.ok(what, "written")
		return true
	case !listening:
		r.ok(what, "acknowledged in %s", took(acked))
		return true
	}
	if _, err := in.await(ctx, m.Payload); err != nil {
		cause := Incomplete
		if m.QoS > 0 {
			cause = Delivery
		}
		r.add(what, Fail, cause, "the broker must route --topic back to its subscribers; --drain sets how long to wait", "%v within %s", err, r.lead().Load.Drain)
		return false
	}
	r.ok(what, "round trip in %s", took(time.Since(start)))
	return true
}

// largest sends the largest message within the broker's limits, at the QoS of its
// case.
func (r *route) largest(c *mqtt.Client, p *load.Probe, in inbox, listening bool) {
	best := -1
	r.each(func(i int, k *scenarios.Case) {
		if r.list.Cells[i].Runs && (best < 0 || k.Payload.Max() > r.prober.cases[best].Payload.Max()) {
			best = i
		}
	})
	if best < 0 {
		return
	}
	k := &r.prober.cases[best]
	m, err := p.Message(k)
	if err != nil {
		r.add("payload", Fail, Incomplete, "", "%v", err)
		return
	}
	m.Topic, m.Retain = []byte(p.Topic(r.lead())), false
	what := fmt.Sprintf("payload %s B", fmtInt(len(m.Payload)))
	if !r.send(c, m, in, listening, what) {
		r.each(func(i int, other *scenarios.Case) {
			if other.Payload.Max() >= k.Payload.Max() {
				r.exclude(i, fmt.Errorf("a message of %s B did not get through", fmtInt(len(m.Payload))))
			}
		})
	}
}
