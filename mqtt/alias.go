package mqtt

import (
	"sync"
	"sync/atomic"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// aliasing holds the topic aliases that this side has set. They last as long as
// the connection. [MQTT-3.3.2-7]
type aliasing struct {
	mu     sync.Mutex
	limit  uint16
	topics map[string]*topicAlias
}

// topicAlias is the alias of one topic.
type topicAlias struct {
	number uint16
	mu     sync.Mutex  // held while the first PUBLISH is appended
	set    atomic.Bool // a PUBLISH with topic and alias has been appended
}

// Aliased is an encoded PUBLISH with a topic alias: the first copy on a connection
// carries topic and alias, all later ones only the alias. It may be used only on
// the connection that made it.
type Aliased struct {
	alias *topicAlias       // nil: there are no more aliases
	first *packet.Template  // topic and alias
	later *packet.Template  // the alias alone, or without an alias the topic
	sizes []*packet.Resizer // those of first, of later, and of the packet to resend; nil if the payload has one size
}

// Size returns the length in bytes of all packets but the first.
func (a *Aliased) Size() int { return a.later.Size() }

func newAliasing(asked uint16, k *packet.Connack) *aliasing {
	// [MQTT-3.2.2-17, MQTT-3.2.2-18] No alias above the broker's maximum; absent is 0.
	if m := k.Properties.TopicAliasMaximum; m != nil && asked > 0 {
		return &aliasing{limit: min(asked, *m), topics: make(map[string]*topicAlias)}
	}
	return nil
}

// get returns the alias of topic, or nil if there are no more aliases.
func (a *aliasing) get(topic []byte) *topicAlias {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.topics[string(topic)]
	if t == nil && len(a.topics) < int(a.limit) {
		// [MQTT-3.3.2-8] 0 is not a valid alias.
		t = &topicAlias{number: uint16(len(a.topics) + 1)}
		a.topics[string(topic)] = t
	}
	return t
}

// Aliased is [Client.Template] with a topic alias. Each topic gets one alias, up to
// [Config.TopicAliases] and the broker's Topic Alias Maximum. Messages on further
// topics carry the topic.
func (c *Client) Aliased(p *packet.Publish) (*Aliased, error) { return c.aliased(p, c.Template) }

// AliasedResizer is [Client.Aliased] for messages of different sizes. p has the
// largest payload; [Aliased.Resize] sets the size of the following messages.
func (c *Client) AliasedResizer(p *packet.Publish) (*Aliased, error) {
	var sizes []*packet.Resizer
	a, err := c.aliased(p, func(p *packet.Publish) (*packet.Template, error) {
		if _, err := c.Template(p); err != nil {
			return nil, err
		}
		r, err := packet.NewResizer(p, c.cfg.Version)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, r)
		return r.Resize(len(p.Payload)), nil
	})
	if err != nil {
		return nil, err
	}
	a.sizes = sizes
	return a, nil
}

// Resize makes the following messages carry the first n bytes of the payload. It
// works only on the result of [Client.AliasedResizer], and for one goroutine at a
// time.
func (a *Aliased) Resize(n int) {
	for _, r := range a.sizes {
		r.Resize(n) // changes its template in place
	}
}

func (c *Client) aliased(p *packet.Publish, encode func(*packet.Publish) (*packet.Template, error)) (*Aliased, error) {
	plain, err := encode(p)
	if err != nil {
		return nil, err
	}
	alias := c.aliasing.get(p.Topic)
	if alias == nil {
		return &Aliased{later: plain}, nil
	}
	a := &Aliased{alias: alias}
	if a.first, err = withAlias(p, p.Topic, alias.number, encode); err != nil {
		return nil, err
	}
	if a.later, err = withAlias(p, nil, alias.number, encode); err != nil {
		return nil, err
	}
	if c.session != nil && p.QoS > 0 {
		c.resendAs(plain, a.first, a.later)
	}
	return a, nil
}

func withAlias(p *packet.Publish, topic []byte, alias uint16, encode func(*packet.Publish) (*packet.Template, error)) (*packet.Template, error) {
	var props packet.Properties
	if err := p.ParseProperties(&props); err != nil {
		return nil, err
	}
	props.TopicAlias = &alias
	q := *p
	q.Topic = topic
	if err := q.SetProperties(&props); err != nil {
		return nil, err
	}
	return encode(&q)
}

// PublishAliased is [Client.PublishN] for a.
func (c *Client) PublishAliased(a *Aliased, n int, stamp int64, fill func(payload []byte)) (int, error) {
	if a.alias == nil || a.alias.set.Load() || n <= 0 {
		return c.PublishN(a.later, n, stamp, fill)
	}
	first, err := c.setAlias(a, stamp, fill)
	if first == 0 || err != nil {
		return first, err
	}
	k, err := c.PublishN(a.later, n-first, stamp, fill)
	return first + k, err
}

// setAlias appends one message with topic and alias. If another goroutine has set
// the alias first, the message carries the alias alone.
func (c *Client) setAlias(a *Aliased, stamp int64, fill func(payload []byte)) (int, error) {
	a.alias.mu.Lock()
	defer a.alias.mu.Unlock()
	t := a.first
	if a.alias.set.Load() {
		t = a.later
	}
	n, err := c.PublishN(t, 1, stamp, fill)
	if n == 1 {
		a.alias.set.Store(true)
	}
	return n, err
}
