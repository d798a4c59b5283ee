package mqtt

import (
	"sync"
	"sync/atomic"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// aliasing is the topic aliases that a connection has given. They end with it.
// [MQTT-3.3.2-7]
type aliasing struct {
	mu     sync.Mutex
	limit  uint16
	topics map[string]*topicAlias
}

// topicAlias is the alias of one topic.
type topicAlias struct {
	number uint16
	mu     sync.Mutex  // held while the alias is being said
	said   atomic.Bool // a PUBLISH with topic and alias has been appended
}

// Aliased is a PUBLISH whose topic is said once per connection, and then by its
// alias alone. It belongs to the connection that made it.
type Aliased struct {
	alias *topicAlias       // nil: no alias was left
	first *packet.Template  // topic and alias
	later *packet.Template  // alias alone, or the plain packet
	sizes []*packet.Resizer // of these, and of what goes again; nil where the payload has one size
}

// Size returns the length in bytes of the packet that is sent over and over.
func (a *Aliased) Size() int { return a.later.Size() }

func newAliasing(asked uint16, k *packet.Connack) *aliasing {
	// [MQTT-3.2.2-17, MQTT-3.2.2-18] No alias above the broker's maximum; absent is 0.
	if m := k.Properties.TopicAliasMaximum; m != nil && asked > 0 {
		return &aliasing{limit: min(asked, *m), topics: make(map[string]*topicAlias)}
	}
	return nil
}

// get returns the alias of topic, or nil when none is left for it.
func (a *aliasing) get(topic []byte) *topicAlias {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.topics[string(topic)]
	if t == nil && len(a.topics) < int(a.limit) {
		// [MQTT-3.3.2-8] The value 0 is no alias.
		t = &topicAlias{number: uint16(len(a.topics) + 1)}
		a.topics[string(topic)] = t
	}
	return t
}

// Aliased is [Client.Template] with a topic alias, one per topic as long as
// [Config.TopicAliases] and the broker's Topic Alias Maximum allow; after that
// the packet carries its topic.
func (c *Client) Aliased(p *packet.Publish) (*Aliased, error) { return c.aliased(p, c.Template) }

// AliasedResizer is [Client.Aliased] for messages of differing sizes, of which
// p's payload is the largest: [Aliased.Resize] says how large the next one is.
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

// Resize makes the next messages carry the first n bytes of the payload. It is
// for what [Client.AliasedResizer] made, and for one goroutine at a time.
func (a *Aliased) Resize(n int) {
	for _, r := range a.sizes {
		r.Resize(n) // its template stays where it is
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
	if a.alias == nil || a.alias.said.Load() || n <= 0 {
		return c.PublishN(a.later, n, stamp, fill)
	}
	said, err := c.sayAlias(a, stamp, fill)
	if said == 0 || err != nil {
		return said, err
	}
	k, err := c.PublishN(a.later, n-said, stamp, fill)
	return said + k, err
}

// sayAlias appends one message, the topic's first on this connection, before
// anybody uses the alias alone.
func (c *Client) sayAlias(a *Aliased, stamp int64, fill func(payload []byte)) (int, error) {
	a.alias.mu.Lock()
	defer a.alias.mu.Unlock()
	t := a.first
	if a.alias.said.Load() {
		t = a.later
	}
	n, err := c.PublishN(t, 1, stamp, fill)
	if n == 1 {
		a.alias.said.Store(true)
	}
	return n, err
}
