package broker

import (
	"slices"
	"testing"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// pahoTopics and the filters are those of interoperability/client_test5.py.
const pahoPrefix = "client_test5/"

var (
	pahoTopics  = []string{pahoPrefix + "TopicA", pahoPrefix + "TopicA/B", pahoPrefix + "Topic/C", pahoPrefix + "TopicA/C", pahoPrefix + "/TopicA"}
	pahoFilters = []string{pahoPrefix + "TopicA/+", pahoPrefix + "+/C", pahoPrefix + "#", pahoPrefix + "/#", pahoPrefix + "/+", pahoPrefix + "+/+", pahoPrefix + "TopicA/#"}
)

// pahoCommon are the tests that interoperability/client_test.py (3.1.1) and
// client_test5.py have in common, in the order of the latter.
var pahoCommon = []pahoTest{
	{name: "test_basic", run: pahoBasic},
	{name: "test_retained_message", run: pahoRetained},
	{name: "test_will_message", virtual: true, run: pahoWill},
	{name: "test_zero_length_clientid", run: pahoZeroLength},
	{name: "test_offline_message_queueing", run: pahoOffline},
	{name: "test_overlapping_subscriptions", run: pahoOverlap},
	{name: "test_keepalive", virtual: true, run: pahoKeepAlive},
	{name: "test_redelivery_on_reconnect", run: pahoRedelivery},
	{name: "test_subscribe_failure", run: pahoSubscribeFailure},
	{name: "test_dollar_topics", run: pahoDollar},
}

// TestPahoSuite311 is interoperability/client_test.py of Eclipse
// paho.mqtt.testing, step by step.
func TestPahoSuite311(t *testing.T) { runPaho(t, packet.V311, pahoCommon) }

// TestPahoSuite5 is interoperability/client_test5.py, all 27 tests of it.
func TestPahoSuite5(t *testing.T) {
	tests := slices.Concat(pahoCommon, pahoOnly5)
	if len(tests) != 27 {
		t.Errorf("%d tests, and the suite has 27", len(tests))
	}
	runPaho(t, packet.V5, tests)
}

// pahoBasic: a message of each QoS comes back, and neither a second CONNECT
// nor an unknown protocol name is accepted.
func pahoBasic(s *pahoSuite) {
	s.connect("myclientid").disconnect()
	a := s.connect("myclientid")
	a.subscribe(sub(pahoTopics[0], 2))
	a.publish(pahoTopics[0], "qos 0", 0)
	a.publish(pahoTopics[0], "qos 1", 1)
	a.publish(pahoTopics[0], "qos 2", 2)
	a.wantQoS()
	a.disconnect()

	twice := s.tryConnect("myclientid")
	again := clean(s.v, "myclientid")
	twice.write(again.Append(nil))
	twice.wantClosed(packet.ReasonProtocolError)

	unknown := s.join()
	if unknown.v = s.v; s.v == packet.V5 {
		unknown.raw("10 0b 0002 686a 05 02 0000 00 0000")
	} else {
		unknown.raw("10 0a 0002 686a 04 02 0000 0000")
	}
	if f, err := unknown.next(); err == nil && (f.Type() != packet.CONNACK || f.Body[1] == 0) {
		s.Errorf("the protocol name hj: %s", packet.Format(f, s.v))
	}
}

// pahoRetained: a new subscription gets the three retained messages, and none
// once they were deleted, which the 3.1.1 suite asks for too.
func pahoRetained(s *pahoSuite) {
	props := packet.Properties{}
	if s.v == packet.V5 {
		props.UserProperties = []packet.UserProperty{{Name: "a", Value: "2"}, {Name: "c", Value: "3"}}
	}
	a := s.connect("myclientid")
	for i, payload := range []string{"qos 0", "qos 1", "qos 2"} {
		a.publish(pahoTopics[i+1], payload, byte(i), asRetained, with(props))
	}
	a.settle()
	a.subscribe(sub(pahoFilters[5], 2))
	for _, m := range a.wantQoS() {
		if !slices.Equal(m.props.UserProperties, props.UserProperties) || !m.retain {
			s.Errorf("%+v", m)
		}
	}
	a.disconnect()

	a = s.connect("myclientid")
	for i := range 3 {
		a.publish(pahoTopics[i+1], "", byte(i), asRetained)
	}
	a.settle()
	a.subscribe(sub(pahoFilters[5], 2))
	a.want(0)
	a.disconnect()
}

// pahoWill: the will of a client that is silent, with its properties. In 3.1.1
// it is one that is lost.
func pahoWill(s *pahoSuite) {
	props := packet.Properties{}
	if s.v == packet.V5 {
		props.UserProperties = []packet.UserProperty{{Name: "a", Value: "2"}, {Name: "c", Value: "3"}}
		props.WillDelay = ptr(uint32(0))
	}
	a := s.connect("myclientid", keepAlive(2), willOf(pahoTopics[2], "will message", props))
	b := s.connect("myclientid2", resume)
	b.subscribe(sub(pahoTopics[2], 2))
	if s.v != packet.V5 {
		a.terminate()
	}
	got := b.want(1)
	if got[0].payload != "will message" || !slices.Equal(got[0].props.UserProperties, props.UserProperties) {
		s.Errorf("%+v", got[0])
	}
	b.disconnect()
}

// pahoZeroLength: in MQTT 5 an empty identifier is accepted with and without a
// clean start, in 3.1.1 only with one. [MQTT-3.1.3-8]
func pahoZeroLength(s *pahoSuite) {
	if s.v == packet.V5 {
		s.connect("", resume).disconnect()
	} else {
		c := s.join()
		c.raw("10 0c 0004 4d515454 04 00 0000 0000")
		if f := c.frame(packet.CONNACK); string(f.Body) != "\x00\x02" {
			s.Errorf("CONNACK % x, want the return code 2", f.Body)
		}
		c.wantEOF()
	}
	s.connect("").disconnect()
}

// pahoOffline: what is published meanwhile waits for a session's client; QoS 0
// may, too.
func pahoOffline(s *pahoSuite) {
	a := s.connect("myclientid", expiry(99999))
	a.subscribe(sub(pahoFilters[5], 2))
	a.disconnect()

	b := s.connect("myclientid2")
	for qos := range byte(3) {
		b.publish(pahoTopics[qos+1], "qos", qos)
	}
	b.settle()
	b.disconnect()

	a = s.connect("myclientid", resume)
	if got := a.want(2); got[0].qos != 1 || got[1].qos != 2 {
		s.Errorf("%+v, want QoS 1 and 2", got)
	}
	a.disconnect()
}

// pahoOverlap: one message at the highest QoS, or one for each subscription
// with its own.
func pahoOverlap(s *pahoSuite) {
	a := s.connect("myclientid")
	a.subscribe(sub(pahoFilters[6], 2), sub(pahoFilters[0], 1))
	a.publish(pahoTopics[3], "overlapping topic filters", 2)
	if got := a.want(1); got[0].qos != 2 {
		s.Errorf("%+v, want QoS 2", got)
	}
	a.disconnect()
}

// pahoKeepAlive: a client that says nothing is cut off, and its will comes.
func pahoKeepAlive(s *pahoSuite) {
	a := s.connect("myclientid", keepAlive(5), willOf(pahoTopics[4], "keepalive expiry", packet.Properties{}))
	b := s.connect("myclientid2", keepAlive(0))
	b.subscribe(sub(pahoTopics[4], 2))
	s.wait(15e9)
	<-a.closed
	if got := b.want(1); got[0].payload != "keepalive expiry" {
		s.Errorf("%+v", got)
	}
	b.disconnect()
}

// pahoRedelivery: what was not answered before a disconnection comes again.
func pahoRedelivery(s *pahoSuite) {
	b := s.connect("myclientid2", resume, expiry(99999))
	b.subscribe(sub(pahoFilters[6], 2))
	b.mu.Lock()
	b.paused = true
	b.mu.Unlock()
	b.publish(pahoTopics[1], "", 1)
	b.publish(pahoTopics[3], "", 2)
	b.settle()
	b.want(0)
	b.disconnect()

	b = s.connect("myclientid2", resume, expiry(99999))
	if !b.ack.SessionPresent {
		s.Error("no session present")
	}
	got := b.want(2)
	if got[0].qos != 1 || got[1].qos != 2 || !got[0].dup || !got[1].dup {
		s.Errorf("%+v, want QoS 1 and 2 with DUP", got)
	}
	b.disconnect()
}

// pahoSubscribeFailure: the filter that this broker refuses.
func pahoSubscribeFailure(s *pahoSuite) {
	filter := "test/nosubscribe"
	if s.v != packet.V5 {
		filter = "nosubscribe"
	}
	a := s.connect("myclientid")
	if got := a.subscribe(sub(filter, 2)); got[0] != 0x80 {
		s.Errorf("SUBACK %v, want 0x80", got)
	}
	a.publish(filter, "", 0)
	a.want(0)
	a.disconnect()
}

// pahoDollar: + does not match a first level that starts with $. [MQTT-4.7.2-1]
func pahoDollar(s *pahoSuite) {
	b := s.connect("myclientid2", keepAlive(0))
	b.subscribe(sub("+/+", 2), sub(pahoFilters[5], 2))
	b.publish("$"+pahoTopics[1], "", 1)
	b.publish("$TopicA/B", "", 1)
	b.want(0)
	b.disconnect()
}
