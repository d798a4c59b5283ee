package broker

import (
	"slices"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// pahoOnly5 are the tests of interoperability/client_test5.py that have no
// counterpart in 3.1.1.
var pahoOnly5 = []pahoTest{
	{name: "test_unsubscribe", run: pahoUnsubscribe},
	{name: "test_session_expiry", virtual: true, run: pahoSessionExpiry},
	{name: "test_shared_subscriptions", run: pahoShared},
	{name: "test_user_properties", run: pahoUserProperties},
	{name: "test_payload_format", run: pahoPayloadFormat},
	{name: "test_publication_expiry", virtual: true, run: pahoPublicationExpiry},
	{name: "test_subscribe_options", run: pahoSubscribeOptions},
	{name: "test_assigned_clientid", run: pahoAssigned},
	{name: "test_subscribe_identifiers", run: pahoSubscribeIdentifiers},
	{name: "test_request_response", run: pahoRequestResponse},
	{name: "test_client_topic_alias", run: pahoClientTopicAlias},
	{name: "test_server_topic_alias", run: pahoServerTopicAlias},
	{name: "test_maximum_packet_size", run: pahoMaximumPacketSize},
	{name: "test_server_keep_alive", run: pahoServerKeepAlive},
	{name: "test_flow_control1", run: pahoFlowControl1},
	{name: "test_flow_control2", run: pahoFlowControl2},
	{name: "test_will_delay", virtual: true, run: pahoWillDelay},
}

// pahoUnsubscribe: of three subscriptions two are left.
func pahoUnsubscribe(s *pahoSuite) {
	b := s.connect("myclientid2")
	for _, topic := range pahoTopics[:3] {
		b.subscribe(sub(topic, 2))
	}
	b.unsubscribe(pahoTopics[0])
	a := s.connect("myclientid")
	for _, topic := range pahoTopics[:3] {
		a.publish(topic, topic, 1)
	}
	a.settle()
	if got := b.want(2); got[0].topic != pahoTopics[1] || got[1].topic != pahoTopics[2] {
		s.Errorf("%+v", got)
	}
	b.disconnect()
	a.disconnect()
}

// pahoSessionExpiry: the session lasts as long as CONNECT or DISCONNECT says.
func pahoSessionExpiry(s *pahoSuite) {
	connect := func(seconds uint32, clean, present bool) *pahoClient {
		s.Helper()
		c := s.connect("myclientid", expiry(seconds), func(p *packet.Connect) { p.CleanStart = clean })
		if c.ack.SessionPresent != present {
			s.Errorf("expiry %d, clean start %v: session present %v", seconds, clean, !present)
		}
		if clean {
			c.subscribe(sub(pahoTopics[0], 2))
		}
		return c
	}
	leaveWith := func(seconds uint32) func(p *packet.Disconnect) {
		return func(p *packet.Disconnect) { p.Properties.SessionExpiry = &seconds }
	}
	connect(0, true, false).disconnect()
	connect(0, false, false).disconnect()

	connect(5, true, false).disconnect()
	s.wait(2 * time.Second)
	connect(5, false, true).disconnect()
	s.wait(6 * time.Second)
	connect(5, false, false).disconnect()

	connect(1, true, false).disconnect(leaveWith(5))
	s.wait(3 * time.Second)
	connect(1, false, true).disconnect(leaveWith(0))
	connect(1, false, false).disconnect()
}

// pahoShared: a plain subscription gives each client the message, a shared one
// gives it to one of them.
func pahoShared(s *pahoSuite) {
	a, b := s.connect("myclientid"), s.connect("myclientid2")
	for _, c := range []*pahoClient{a, b} {
		c.subscribe(sub("$share/sharename/"+pahoPrefix+"x", 2), sub(pahoTopics[0], 2))
	}
	b.publish(pahoTopics[0], "message 0", 0)
	b.want(1)
	a.want(1)
	b.publish(pahoPrefix+"x", "message 0", 0)
	b.settle()
	a.settle()
	a.mu.Lock()
	n := len(a.messages)
	a.mu.Unlock()
	b.want(1 - n)
	a.disconnect()
	b.disconnect()
}

// pahoEach publishes a message with props at each QoS to itself, and returns
// the three as they arrive.
func pahoEach(s *pahoSuite, props packet.Properties) []pahoMessage {
	a := s.connect("myclientid")
	a.subscribe(sub(pahoTopics[0], 2))
	for qos := range byte(3) {
		a.publish(pahoTopics[0], "", qos, with(props))
	}
	got := a.wantQoS()
	a.disconnect()
	return got
}

func pahoUserProperties(s *pahoSuite) {
	want := []packet.UserProperty{{Name: "a", Value: "2"}, {Name: "c", Value: "3"}}
	for _, m := range pahoEach(s, packet.Properties{UserProperties: want}) {
		if !slices.Equal(m.props.UserProperties, want) {
			s.Errorf("%+v", m)
		}
	}
}

func pahoPayloadFormat(s *pahoSuite) {
	props := packet.Properties{PayloadFormat: ptr(byte(1)), ContentType: ptr("My name")}
	for _, m := range pahoEach(s, props) {
		if p := m.props; p.PayloadFormat == nil || *p.PayloadFormat != 1 || p.ContentType == nil || *p.ContentType != "My name" {
			s.Errorf("%+v", m)
		}
	}
}

// pahoPublicationExpiry: of four messages that wait three seconds the two of
// one second are gone, and the others have less left than they had.
func pahoPublicationExpiry(s *pahoSuite) {
	b := s.connect("myclientid2", expiry(99999))
	b.subscribe(sub(pahoTopics[0], 2))
	b.disconnect(func(p *packet.Disconnect) { p.Properties.SessionExpiry = ptr(uint32(999999999)) })

	a := s.connect("myclientid")
	for _, seconds := range []uint32{1, 6} {
		for _, qos := range []byte{1, 2} {
			a.publish(pahoTopics[0], "", qos, with(packet.Properties{MessageExpiry: &seconds}))
		}
	}
	a.settle()
	s.wait(3 * time.Second)
	b = s.connect("myclientid2", resume)
	for _, m := range b.want(2) {
		if m.props.MessageExpiry == nil || *m.props.MessageExpiry >= 6 {
			s.Errorf("%+v", m)
		}
	}
	a.disconnect()
	b.disconnect()
}

// pahoSubscribeOptions: No Local, Retain As Published, and all three of Retain
// Handling.
func pahoSubscribeOptions(s *pahoSuite) {
	noLocal := packet.Subscription{Filter: pahoTopics[0], QoS: 2, NoLocal: true}
	a, b := s.connect("myclientid"), s.connect("myclientid2")
	a.subscribe(noLocal)
	b.subscribe(noLocal)
	a.publish(pahoTopics[0], "noLocal test", 1)
	a.want(0)
	b.want(1)
	a.disconnect()
	b.disconnect()

	a = s.connect("myclientid")
	a.subscribe(packet.Subscription{Filter: pahoTopics[0], QoS: 2, RetainAsPublished: true})
	a.publish(pahoTopics[0], "retain as published false", 1)
	a.publish(pahoTopics[0], "retain as published true", 1, asRetained)
	if got := a.want(2); got[0].retain || !got[1].retain {
		s.Errorf("%+v", got)
	}
	a.disconnect()

	a = s.connect("myclientid")
	for qos := range byte(3) {
		a.publish(pahoTopics[qos+1], "qos", qos, asRetained)
	}
	a.settle()
	a.disconnect()
	// The messages of the first SUBSCRIBE, and of a second one.
	for handling, want := range [][2]int{{3, 3}, {3, 0}, {0, 0}} {
		a = s.connect("myclientid")
		for _, n := range want {
			a.subscribe(packet.Subscription{Filter: pahoFilters[5], QoS: 2, RetainHandling: byte(handling)})
			if n == 0 {
				a.want(0)
				continue
			}
			a.wantQoS()
		}
		a.disconnect()
	}
}

func pahoAssigned(s *pahoSuite) {
	c := s.connect("")
	if id := c.ack.Properties.AssignedClientID; id == nil || *id == "" {
		s.Error("no Assigned Client Identifier")
	}
	c.disconnect()
}

// pahoSubscribeIdentifiers: a message carries the identifiers of all the
// subscriptions that it matches.
func pahoSubscribeIdentifiers(s *pahoSuite) {
	a := s.connect("myclientid")
	a.subscribeAs(456789, sub(pahoTopics[0], 2))
	b := s.connect("myclientid2")
	b.subscribeAs(2, sub(pahoTopics[0], 2))
	b.subscribeAs(3, sub(pahoTopics[0]+"/#", 2))
	b.publish(pahoTopics[0], "sub identifier test", 1)
	for c, want := range map[*pahoClient][]uint32{b: {2, 3}, a: {456789}} {
		ids := c.want(1)[0].props.SubscriptionIDs
		if slices.Sort(ids); !slices.Equal(ids, want) {
			s.Errorf("%s: %v, want %v", c.id, ids, want)
		}
		c.disconnect()
	}
}

// pahoRequestResponse: Response Topic and Correlation Data arrive, there and back.
func pahoRequestResponse(s *pahoSuite) {
	a, b := s.connect("myclientid"), s.connect("myclientid2")
	for _, c := range []*pahoClient{a, b} {
		c.subscribe(packet.Subscription{Filter: pahoTopics[0], QoS: 2, NoLocal: true})
	}
	props := packet.Properties{ResponseTopic: &pahoTopics[0], CorrelationData: []byte("334")}
	a.publish(pahoTopics[0], "request", 1, with(props))
	check := func(c *pahoClient) packet.Properties {
		got := c.want(1)[0]
		if p := got.props; p.ResponseTopic == nil || *p.ResponseTopic != pahoTopics[0] || string(p.CorrelationData) != "334" {
			s.Errorf("%s: %+v", c.id, got)
		}
		return got.props
	}
	received := check(b)
	b.publish(*received.ResponseTopic, "response", 1, with(received))
	check(a)
	a.disconnect()
	b.disconnect()
}

// pahoClientTopicAlias: alias 0 is refused, one that was set stands for its
// topic, and none outlives its connection.
func pahoClientTopicAlias(s *pahoSuite) {
	alias := func(n uint16) func(p *packet.Publish) { return with(packet.Properties{TopicAlias: &n}) }
	refused := func(c *pahoClient) {
		s.Helper()
		<-c.closed
		if len(c.disconnects) != 1 || c.disconnects[0] != packet.ReasonTopicAliasInvalid {
			s.Errorf("DISCONNECT %v, want Topic Alias invalid", c.disconnects)
		}
	}
	a := s.connect("myclientid")
	// The codec does not encode an alias 0: topic "a", QoS 1, id 1.
	a.raw("32 09 0001 61 0001 03 23 0000")
	refused(a)

	a = s.connect("myclientid", expiry(99999), func(p *packet.Connect) { p.Properties.TopicAliasMaximum = ptr(uint16(0)) })
	if granted := a.ack.Properties.TopicAliasMaximum; granted == nil || *granted == 0 {
		s.Fatal("no Topic Alias Maximum, and the rest is not tried")
	}
	a.subscribe(sub(pahoTopics[0], 2))
	a.publish(pahoTopics[0], "topic alias 1", 1, alias(1))
	a.publish("", "topic alias 2", 1, alias(1))
	for _, m := range a.want(2) {
		if m.topic != pahoTopics[0] || m.props.TopicAlias != nil {
			s.Errorf("%+v", m)
		}
	}
	a.disconnect()

	a = s.connect("myclientid", resume)
	a.publish(pahoTopics[0], "topic alias 3", 1)
	a.want(1)
	a.publish("", "topic alias 4", 1, alias(1))
	refused(a)
}

// pahoServerTopicAlias: to a client that takes one alias the broker names the
// topic once, and to one that takes none every time.
func pahoServerTopicAlias(s *pahoSuite) {
	exchange := func(set ...func(p *packet.Connect)) []pahoMessage {
		a := s.connect("myclientid", set...)
		a.subscribe(sub(pahoTopics[0], 2))
		for qos := range byte(3) {
			a.publish(pahoTopics[0], "topic alias 1", qos)
		}
		got := a.wantQoS()
		a.disconnect()
		return got
	}
	maximum := func(n uint16) func(p *packet.Connect) {
		return func(p *packet.Connect) { p.Properties.TopicAliasMaximum = &n }
	}
	for i, m := range exchange(maximum(1)) {
		topic := pahoTopics[0]
		if i > 0 {
			topic = ""
		}
		if m.topic != topic || m.props.TopicAlias == nil || *m.props.TopicAlias != 1 {
			s.Errorf("message %d: %+v", i, m)
		}
	}
	for _, m := range slices.Concat(exchange(), exchange(maximum(0))) {
		if m.topic != pahoTopics[0] || m.props.TopicAlias != nil {
			s.Errorf("without aliases: %+v", m)
		}
	}
}

// pahoMaximumPacketSize: what is above a client's limit does not come, what is
// below does. The broker states none of its own, so that its half of this test
// has nothing to try.
func pahoMaximumPacketSize(s *pahoSuite) {
	a := s.connect("myclientid", func(p *packet.Connect) { p.Properties.MaximumPacketSize = ptr(uint32(64)) })
	if a.ack.Properties.MaximumPacketSize != nil {
		s.Error("a Maximum Packet Size is told")
	}
	a.subscribe(sub(pahoTopics[0], 2))
	a.publish(pahoTopics[0], string(make([]byte, 32)), 0)
	a.want(1)
	a.publish(pahoTopics[0], string(make([]byte, 64)), 1)
	a.want(0)
	a.disconnect()
}

func pahoServerKeepAlive(s *pahoSuite) {
	for asked, want := range map[uint16]uint16{120: 60, 60: 0, 0: 0} {
		a := s.connect("myclientid", keepAlive(asked))
		if got := a.ack.Properties.ServerKeepAlive; (got == nil) != (want == 0) || got != nil && *got != want {
			s.Errorf("asked for %d: Server Keep Alive %v, want %d", asked, got, want)
		}
		a.disconnect()
	}
}

// pahoFlowControl1: of three messages to a Receive Maximum of two the third
// waits for the acknowledgement of the first. This client reads by hand.
func pahoFlowControl1(s *pahoSuite) {
	c := s.tryConnect("myclientid", func(p *packet.Connect) { p.Properties.ReceiveMaximum = ptr(uint16(2)) }).peer
	c.subscribe(sub(pahoTopics[0], 2))
	for id := range uint16(3) {
		c.publish(pahoTopics[0], "message", 1, id+1)
	}
	var ids []uint16
	for acks := 0; acks < 3 || len(ids) < 2; {
		f, err := c.next()
		c.must(err)
		if f.Type() == packet.PUBACK {
			acks++
			continue
		}
		var p packet.Publish
		c.must(p.Decode(f, c.v))
		ids = append(ids, p.PacketID)
	}
	c.sync() // nothing else comes
	c.sendAck(packet.PUBACK, ids[0])
	third := c.wantPublish(pahoTopics[0], "message", 1)
	c.sendAck(packet.PUBACK, ids[1])
	c.sendAck(packet.PUBACK, third.PacketID)
	c.leave()
}

// pahoFlowControl2: one QoS 2 message more than the broker's Receive Maximum,
// sent before anything is read, ends the connection with 0x93, which arrives
// though the client goes on to answer each PUBREC before it.
func pahoFlowControl2(s *pahoSuite) {
	a := s.tryConnect("myclientid")
	n := a.ack.Properties.ReceiveMaximum
	if n == nil {
		s.Fatal("no Receive Maximum is told, and the suite's client cannot go beyond 65,535")
	}
	for range *n + 1 {
		a.publish(pahoTopics[0], "message", 2)
	}
	_ = a.nc.SetReadDeadline(time.Time{})
	a.read()
	if len(a.disconnects) != 1 || a.disconnects[0] != packet.ReasonReceiveMaximumExceeded {
		s.Errorf("DISCONNECT %v, want Receive Maximum exceeded", a.disconnects)
	}
}

// pahoWillDelay: the will of a lost client comes when its delay has passed or
// its session has ended, whichever is first.
func pahoWillDelay(s *pahoSuite) {
	for _, tt := range []struct {
		delay, expiry uint32
		want          time.Duration
	}{
		{3, 5, 3 * time.Second},
		{5, 0, 0},
		{5, 2, 2 * time.Second},
	} {
		a := s.connect("myclientid", expiry(tt.expiry), willOf(pahoTopics[0], "test_will_delay will message", packet.Properties{WillDelay: &tt.delay}))
		if a.ack.SessionPresent {
			s.Error("session present after a clean start")
		}
		b := s.connect("myclientid2")
		b.subscribe(sub(pahoTopics[0], 2))
		start := time.Now()
		a.terminate()
		got := b.want(1)
		within(s.T, time.Since(start), tt.want)
		if got[0].topic != pahoTopics[0] || got[0].payload != "test_will_delay will message" {
			s.Errorf("%+v", got)
		}
		b.disconnect()
	}
}
