package broker

// aliases are the Topic Aliases that the broker has given on one connection, to
// the first topics that the client gets messages of. They end with the
// connection. [MQTT-3.3.2-7]
type aliases struct {
	limit   int               // the client's Topic Alias Maximum
	numbers map[string]uint16 // by topic: the client has been told
}

// use puts the alias into o that there is for its topic, in place of the topic
// where the client knows it, or a new one beside it. It returns the topic, which
// [aliases.said] wants. Nil gives none, and so does a packet that would be larger
// than the client takes with one.
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

// said notes that the client is going to get o, which use has looked at.
func (a *aliases) said(topic string, o *outgoing) {
	if o.alias > 0 && o.topic != "" {
		a.numbers[topic] = o.alias
	}
}

// takesAsIs reports whether a PUBLISH of a publisher of MQTT 5, or not, may be
// copied to t, whose connection c is.
func (c *client) takesAsIs(v5 bool, t *target) bool {
	return c.v5 == v5 && len(t.ids) == 0 && c.given == nil
}
