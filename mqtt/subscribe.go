package mqtt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// ErrNoPacketID: all 65,535 packet ids are in use.
var ErrNoPacketID = errors.New("no packet id is free")

// A SubscribeError is a SUBACK that refuses a filter.
type SubscribeError struct {
	Filter string
	Code   packet.ReasonCode
}

func (e *SubscribeError) Error() string {
	return fmt.Sprintf("subscription %q refused: %s (0x%02X)", e.Filter, e.Code, byte(e.Code))
}

// Subscribe sends SUBSCRIBE and waits for SUBACK. It returns one code per
// filter, and a [*SubscribeError] for the first that was refused.
func (c *Client) Subscribe(ctx context.Context, subs []packet.Subscription, props packet.Properties) ([]packet.ReasonCode, error) {
	limits := &c.connack.Properties
	if a := limits.SubIDAvailable; a != nil && *a == 0 && len(props.SubscriptionIDs) > 0 {
		return nil, limitErrorf("subscribe with an identifier: the broker does not allow subscription identifiers")
	}
	for _, s := range subs {
		if w := limits.WildcardSubAvailable; w != nil && *w == 0 && strings.ContainsAny(s.Filter, "+#") {
			return nil, limitErrorf("subscribe to %q: the broker does not allow wildcards", s.Filter)
		}
		if w := limits.SharedSubAvailable; w != nil && *w == 0 && strings.HasPrefix(s.Filter, "$share/") {
			return nil, limitErrorf("subscribe to %q: the broker does not allow shared subscriptions", s.Filter)
		}
	}
	codes, err := c.request(ctx, packet.SUBACK, func(dst []byte, id uint16) ([]byte, error) {
		p := packet.Subscribe{PacketID: id, Subscriptions: subs, Properties: props}
		return p.Append(dst, c.cfg.Version)
	})
	if err != nil {
		return nil, err
	}
	// [MQTT-3.9.3-1] One code per filter, in their order.
	if len(codes) != len(subs) {
		return codes, c.wrongCount(packet.SUBACK, len(codes), len(subs))
	}
	for i, code := range codes {
		if code.IsError() {
			return codes, &SubscribeError{subs[i].Filter, code}
		}
	}
	return codes, nil
}

// Unsubscribe sends UNSUBSCRIBE and waits for UNSUBACK. It returns one code per
// filter; none in MQTT 3, nor from a broker that sends none.
func (c *Client) Unsubscribe(ctx context.Context, filters []string) ([]packet.ReasonCode, error) {
	codes, err := c.request(ctx, packet.UNSUBACK, func(dst []byte, id uint16) ([]byte, error) {
		p := packet.Unsubscribe{PacketID: id, Filters: filters}
		return p.Append(dst, c.cfg.Version)
	})
	if err != nil {
		return nil, err
	}
	// [MQTT-3.11.3-1] One code per filter, in their order: any other number says
	// nothing of any of them. Section 3.11.3 does not call none at all an error.
	if len(codes) != 0 && len(codes) != len(filters) {
		return codes, c.wrongCount(packet.UNSUBACK, len(codes), len(filters))
	}
	return codes, nil
}

// wrongCount ends the connection over an answer that does not fit its request.
func (c *Client) wrongCount(t packet.Type, codes, filters int) error {
	return c.sayGoodbye(protocolErrorf(packet.ReasonProtocolError, "%s with %d codes for %d filters", t, codes, filters))
}

// request sends a packet with an id of its own and waits for the answer, a
// packet of type want. The send quota does not delay it. [MQTT-3.3.4-8, MQTT-4.9.0-3]
func (c *Client) request(ctx context.Context, want packet.Type, encode func(dst []byte, id uint16) ([]byte, error)) ([]packet.ReasonCode, error) {
	ch, err := c.sendRequest(want, encode)
	if err != nil {
		return nil, err
	}
	r, err := c.awaitReply(ctx, ch)
	return r.codes, err
}

func (c *Client) sendRequest(want packet.Type, encode func(dst []byte, id uint16) ([]byte, error)) (chan reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.conn.Begin()
	if c.closing {
		c.conn.End(out)
		return nil, ErrClosed
	}
	id := c.win.take(idControl, int64(want)) // nobody stamps a request
	if id == 0 {
		c.conn.End(out)
		return nil, ErrNoPacketID
	}
	b, err := encode(out, id)
	if err == nil {
		err = c.checkSize(len(b) - len(out))
	}
	if err != nil {
		c.win.free(c.win.find(id))
		c.conn.End(out)
		return nil, err
	}
	ch := c.waiter(id)
	c.conn.End(b)
	return ch, c.conn.Flush()
}

func (c *Client) onSuback(f packet.Frame) error {
	var p packet.Suback
	if err := p.Decode(f, c.cfg.Version); err != nil {
		return malformed(err)
	}
	if err := c.checkInfo(f.Type(), &p.Properties); err != nil {
		return err
	}
	if c.cfg.Version == packet.V31 {
		// Only the two bits of the QoS mean something in 3.1: it knows no failure.
		// [MQTT 3.1 section 3.9]
		for i := range p.Codes {
			p.Codes[i] &= 3
		}
	}
	c.answer(packet.SUBACK, p.PacketID, p.Codes)
	return nil
}

func (c *Client) onUnsuback(f packet.Frame) error {
	var p packet.Unsuback
	if err := p.Decode(f, c.cfg.Version); err != nil {
		return malformed(err)
	}
	if err := c.checkInfo(f.Type(), &p.Properties); err != nil {
		return err
	}
	c.answer(packet.UNSUBACK, p.PacketID, p.Codes)
	return nil
}

// answer ends a request. [MQTT-2.2.1-6], [MQTT-2.3.1-7] of 3.1.1: the answer
// carries the request's id, and an UNSUBACK is none to SUBSCRIBE.
func (c *Client) answer(t packet.Type, id uint16, codes []packet.ReasonCode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.conn.Begin()
	at := c.win.find(id)
	known := at != nil && at.State == idControl && at.Value == int64(t)
	if known {
		c.win.free(at)
	}
	c.conn.End(out)
	if !known {
		c.unexpected.Add(1)
		return
	}
	if ch, ok := c.waiters[id]; ok {
		delete(c.waiters, id)
		ch <- reply{codes: codes}
	}
}
