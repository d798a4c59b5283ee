package broker

// aliases are the Topic Aliases that the broker sets on one connection, for the
// first topics of which it sends messages to the client. They end with the
// connection. [MQTT-3.3.2-7]
type aliases struct {
	limit   int               // the client's Topic Alias Maximum
	numbers map[string]uint16 // by topic, once a message has set it
}

// use sets the alias of o: an existing one replaces its topic, a new one goes with
// it. It sets none if a is nil, or if the packet would then exceed maxPacket. It
// returns the topic, for [aliases.said].
func (a *aliases) use(o *outgoing, maxPacket int) (topic string) {
	if a == nil {
		return ""
	}
	topic = o.topic
	switch n, known := a.numbers[topic]; {
	case known:
		o.topic, o.alias = "", n
	// [MQTT-3.1.2-26]
	case len(a.numbers) < a.limit:
		o.alias = uint16(len(a.numbers) + 1)
	}
	if o.size() > maxPacket {
		o.topic, o.alias = topic, 0
	}
	return topic
}

// said notes that o, which use has seen, is sent.
func (a *aliases) said(topic string, o *outgoing) {
	if o.alias > 0 && o.topic != "" {
		a.numbers[topic] = o.alias
	}
}

// takesAsIs reports whether a PUBLISH may be copied to t without being encoded
// again. c is the connection of t, and v5 says that the publisher uses MQTT 5.
func (c *client) takesAsIs(v5 bool, t *target) bool {
	return c.v5 == v5 && len(t.ids) == 0 && c.given == nil
}
