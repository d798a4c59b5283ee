package mqtt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// ErrNoPacketID means that all 65,535 packet ids are in use.
var ErrNoPacketID = errors.New("no packet id is free")

// A SubscribeError is a SUBACK with an error code for a filter.
type SubscribeError struct {
	Filter string
	Code   packet.ReasonCode
}

// Error names the filter and the code.
func (e *SubscribeError) Error() string {
	return fmt.Sprintf("subscription %q refused: %s (0x%02X)", e.Filter, e.Code, byte(e.Code))
}

// Subscribe sends SUBSCRIBE and waits for SUBACK. It returns one code per filter,
// in the order of subs. If a filter was refused, the error is a [*SubscribeError]
// for the first one; the codes are still returned.
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
	// [MQTT-3.9.3-1] One code per filter, in the same order.
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
// filter, in the order of filters. In MQTT 3 UNSUBACK has no codes; some MQTT 5
// brokers send none either.
func (c *Client) Unsubscribe(ctx context.Context, filters []string) ([]packet.ReasonCode, error) {
	codes, err := c.request(ctx, packet.UNSUBACK, func(dst []byte, id uint16) ([]byte, error) {
		p := packet.Unsubscribe{PacketID: id, Filters: filters}
		return p.Append(dst, c.cfg.Version)
	})
	if err != nil {
		return nil, err
	}
	// [MQTT-3.11.3-1] One code per filter, in the same order. With another number it
	// is unknown which code is for which filter. Section 3.11.3 does not call an
	// UNSUBACK without codes an error.
	if len(codes) != 0 && len(codes) != len(filters) {
		return codes, c.wrongCount(packet.UNSUBACK, len(codes), len(filters))
	}
	return codes, nil
}

// wrongCount ends the connection because an answer has the wrong number of codes.
func (c *Client) wrongCount(t packet.Type, codes, filters int) error {
	return c.fail(protocolErrorf(packet.ReasonProtocolError, "%s with %d codes for %d filters", t, codes, filters))
}

// request sends a packet with a new id and waits for the answer, a packet of type
// want. The send quota does not delay it. [MQTT-3.3.4-8, MQTT-4.9.0-3]
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
	id := c.win.reserve(idControl, int64(want)) // the stamp holds the expected type
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
		// SUBACK of 3.1 has no error code: only the two bits of the QoS count.
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

// answer passes codes to the request with that id. [MQTT-2.2.1-6], [MQTT-2.3.1-7] of
// 3.1.1: the answer has the request's id and fits its type: an UNSUBACK does not
// answer a SUBSCRIBE.
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
