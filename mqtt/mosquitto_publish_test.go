package mqtt

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// inParallel publishes n equal messages at once.
func inParallel(m *mosquitto, qos byte, n int) {
	c := m.connect()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { m.publish(c, "topic", "12345", qos) })
	}
	wg.Wait()
	m.leave(c)
}

// publishOne publishes one message and disconnects.
func publishOne(topic, payload string, qos byte, set ...func(p *packet.Publish, props *packet.Properties)) func(m *mosquitto) {
	return func(m *mosquitto) {
		p, props := packet.Publish{Topic: []byte(topic), Payload: []byte(payload), QoS: qos}, packet.Properties{}
		for _, f := range set {
			f(&p, &props)
		}
		if err := p.SetProperties(&props); err != nil {
			m.Fatal(err)
		}
		c := m.connect()
		if code, err := c.Publish(m.ctx, &p); code != packet.ReasonSuccess || err != nil {
			m.Errorf("%v, %v", code, err)
		}
		m.leave(c)
	}
}

// TestMosquittoPublish is what test/lib/03-publish-*.py, 04-*.py and
// 11-prop-send-*.py send in one go.
func TestMosquittoPublish(t *testing.T) {
	tests := []mosquittoTest{
		{name: "03-publish-qos0", id: "publish-qos0-test", act: publishOne("pub/qos0/test", "message", 0), script: `
			< CONNECT
			> CONNACK
			< 30 * "pub/qos0/test" 'message'
			< e0 00
			end`},
		{name: "03-publish-qos0-no-payload", id: "publish-qos0-test-np", act: publishOne("pub/qos0/no-payload/test", "", 0), script: `
			< CONNECT
			> CONNACK
			< 30 * "pub/qos0/no-payload/test"
			< e0 00
			end`},
		{name: "03-publish-c2b-qos2", id: "publish-qos2-test", act: publishOne("pub/qos2/test", "message", 2), script: `
			< CONNECT
			> CONNACK
			< 34 * "pub/qos2/test" 0001 'message'
			> 50 02 0001
			< 62 02 0001
			> 70 02 0001
			< e0 00
			end`},
		{name: "04-retain-qos0", id: "retain-qos0-test",
			act: publishOne("retain/qos0/test", "retained message", 0, func(p *packet.Publish, _ *packet.Properties) { p.Retain = true }), script: `
			< CONNECT
			> CONNACK
			< 31 * "retain/qos0/test" 'retained message'
			< e0 00
			end`},
		{name: "11-prop-send-content-type", version: packet.V5, id: "prop-test",
			act: publishOne("prop/qos0", "message", 0, func(_ *packet.Publish, props *packet.Properties) { props.ContentType = new("application/json") }), script: `
			< CONNECT
			> CONNACK
			< 30 * "prop/qos0" 13 03 "application/json" 'message'
			< e0 00
			end`},
		{name: "11-prop-send-payload-format", version: packet.V5, id: "prop-test",
			act: publishOne("prop/qos0", "message", 0, func(_ *packet.Publish, props *packet.Properties) { props.PayloadFormat = new(byte(1)) }), script: `
			< CONNECT
			> CONNACK
			< 30 * "prop/qos0" 02 01 01 'message'
			< e0 00
			end`},
		{name: "03-publish-loop", version: packet.V5, id: "loop-test", script: `
			< CONNECT
			> CONNACK
			< 82 * 0001 00 "loop/test" 00
			> 90 * 0001 00 00
			> 30 * "loop/test" 00 'message'
			< 30 * "loop/test" 00 'message'
			< e0 00
			end`, act: func(m *mosquitto) {
			c := m.connect()
			m.subscribe(c, "loop/test", 0)
			got := m.receive("loop/test", "message", 0)
			m.publish(c, got.topic, got.payload, 0)
			m.leave(c)
		}},
	}
	// The four forms of an acknowledgement without an error. [MQTT5 3.4.2]
	for name, rest := range map[string]string{"len 2": "0001", "len 3": "0001 00", "len 4": "0001 00 00", "len >5": `0001 00 0d 26 "key" "value"`} {
		tests = append(tests,
			mosquittoTest{name: "03-publish-c2b-qos1-len/" + name, version: packet.V5, id: "publish-qos1-test", act: publishOne("pub/qos1/test", "message", 1), script: `
			< CONNECT
			> CONNACK
			< 32 * "pub/qos1/test" 0001 00 'message'
			> 40 * ` + rest + `
			< e0 00
			end`},
			mosquittoTest{name: "03-publish-c2b-qos2-len/" + name, version: packet.V5, id: "publish-qos2-test", act: publishOne("pub/qos2/test", "message", 2), script: `
			< CONNECT
			> CONNACK
			< 34 * "pub/qos2/test" 0001 00 'message'
			> 50 * ` + rest + `
			< 62 02 0001
			> 70 * ` + rest + `
			< e0 00
			end`})
	}
	runMosquitto(t, tests)
}

// TestMosquittoLimits tests the limits of a CONNACK: Receive Maximum, Maximum QoS and
// Maximum Packet Size.
func TestMosquittoLimits(t *testing.T) {
	const publish = `< 34 * "topic" 000%d 00 '12345'` + "\n"
	var one, two strings.Builder
	for id := 1; id <= 5; id++ {
		fmt.Fprintf(&one, publish+"> 50 02 000%[1]d\n < 62 02 000%[1]d\n > 70 02 000%[1]d\n", id)
	}
	for _, ids := range [][]int{{1, 2}, {3, 4}, {5}} {
		for _, line := range []string{publish, "> 50 02 000%d\n", "< 62 02 000%d\n", "> 70 02 000%d\n"} {
			for _, id := range ids {
				fmt.Fprintf(&two, line, id)
			}
		}
	}
	runMosquitto(t, []mosquittoTest{
		{name: "03-publish-c2b-qos1-receive-maximum", version: packet.V5, id: "publish-qos1-test", script: `
			< CONNECT
			> 20 * 00 00 03 21 0003
			< 32 * "topic" 0001 00 '12345'
			< 32 * "topic" 0002 00 '12345'
			< 32 * "topic" 0003 00 '12345'
			> 40 02 0001 40 02 0002
			< 32 * "topic" 0004 00 '12345'
			< 32 * "topic" 0005 00 '12345'
			> 40 02 0003
			< 32 * "topic" 0006 00 '12345'
			> 40 02 0004 40 02 0005 40 02 0006
			< e0 00
			end`, act: func(m *mosquitto) { inParallel(m, 1, 6) }},
		{name: "03-publish-c2b-qos2-receive-maximum-1", version: packet.V5, id: "publish-qos2-test",
			script: "< CONNECT\n > 20 * 00 00 03 21 0001\n" + one.String() + "< e0 00\n end",
			act:    func(m *mosquitto) { inParallel(m, 2, 5) }},
		{name: "03-publish-c2b-qos2-receive-maximum-2", version: packet.V5, id: "publish-qos2-test",
			script: "< CONNECT\n > 20 * 00 00 03 21 0002\n" + two.String() + "< e0 00\n end",
			act:    func(m *mosquitto) { inParallel(m, 2, 5) }},
		{name: "03-publish-c2b-qos2-pubrec-error", version: packet.V5, id: "publish-qos2-test", script: `
			< CONNECT
			> 20 * 00 00 03 21 0001
			< 34 * "topic" 0001 00 'rejected'
			> 50 03 0001 80
			< 34 * "topic" 0002 00 'accepted'
			> 50 02 0002
			< 62 02 0002
			> 70 02 0002
			< e0 00
			end`, act: func(m *mosquitto) {
			c := m.connect()
			code, err := c.Publish(m.ctx, &packet.Publish{Topic: []byte("topic"), Payload: []byte("rejected"), QoS: 2})
			if code != packet.ReasonUnspecifiedError || err != nil {
				m.Errorf("%v, %v", code, err)
			}
			m.publish(c, "topic", "accepted", 2)
			m.leave(c)
		}},
		{name: "03-publish-c2b-qos2-maximum-qos-0", version: packet.V5, id: "publish-qos2-test", script: `
			< CONNECT
			> 20 * 00 00 02 24 00
			< 30 * "maximum/qos/qos0" 00 'message'
			< e0 00
			end`, act: func(m *mosquitto) { upTo(m, 0) }},
		{name: "03-publish-c2b-qos2-maximum-qos-1", version: packet.V5, id: "publish-qos2-test", script: `
			< CONNECT
			> 20 * 00 00 02 24 01
			< 32 * "maximum/qos/qos1" 0001 00 'message'
			> 40 02 0001
			< 30 * "maximum/qos/qos0" 00 'message'
			< e0 00
			end`, act: func(m *mosquitto) { upTo(m, 1) }},
		// The suite sends 18 bytes of payload, 31 in all, as its library does not
		// count the first one. [MQTT5 3.2.2.3.6]
		{name: "11-prop-oversize-packet", version: packet.V5, id: "publish-qos0-test", script: `
			< CONNECT
			> 20 * 00 00 0b 22 000a 27 0000001e 21 0014
			< 30 * "pub/test" 00 '01234567890123456'
			< e0 00
			end`, act: oversize},
	})
}

// upTo publishes at QoS 2, 1 and 0, of which the broker allows the last ones.
func upTo(m *mosquitto, maximum byte) {
	c := m.connect()
	for _, qos := range []byte{2, 1, 0} {
		topic := fmt.Sprintf("maximum/qos/qos%d", qos)
		if qos <= maximum {
			m.publish(c, topic, "message", qos)
			continue
		}
		_, err := c.Publish(m.ctx, &packet.Publish{Topic: []byte(topic), Payload: []byte("message"), QoS: qos})
		wantLimit(m, topic, err)
	}
	m.leave(c)
}

func wantLimit(m *mosquitto, what string, err error) {
	m.Helper()
	var limit *LimitError
	if !errors.As(err, &limit) {
		m.Errorf("%s: got %v, want a limit", what, err)
	}
}

// oversize tries filters and a payload that are one byte too long.
func oversize(m *mosquitto) {
	c := m.connect()
	// Fixed header 2, packet identifier 2, properties 1, length 2, options 1.
	_, err := c.Subscribe(m.ctx, []packet.Subscription{{Filter: strings.Repeat("a", 23)}}, packet.Properties{})
	wantLimit(m, "SUBSCRIBE", err)
	_, err = c.Unsubscribe(m.ctx, []string{strings.Repeat("a", 24)})
	wantLimit(m, "UNSUBSCRIBE", err)
	payload := []byte("012345678901234567")
	_, err = c.Publish(m.ctx, &packet.Publish{Topic: []byte("pub/test"), Payload: payload})
	wantLimit(m, "PUBLISH", err)
	m.publish(c, "pub/test", string(payload[:17]), 0)
	m.leave(c)
}

// TestMosquittoResume is test/lib/03-publish-c2b-qos*-disconnect.py. The suite
// keeps its client's session through a CONNECT that asks for a clean one; here
// it is kept by one that does not. [MQTT-4.4.0-1]
func TestMosquittoResume(t *testing.T) {
	kept := func(cfg *Config) { cfg.CleanStart, cfg.Session = false, NewSession() }
	runMosquitto(t, []mosquittoTest{
		{name: "03-publish-c2b-qos1-disconnect", id: "publish-qos1-test", set: kept, script: `
			< 10 * "MQTT" 04 00 003c "publish-qos1-test"
			> 20 02 00 00
			< 32 * "pub/qos1/test" 0001 'message'
			cut
			accept
			< 10 * "MQTT" 04 00 003c "publish-qos1-test"
			> 20 02 01 00
			< 3a * "pub/qos1/test" 0001 'message'
			> 40 02 0001
			< e0 00
			end`, act: func(m *mosquitto) { resumed(m, "pub/qos1/test", 1, 2) }},
		{name: "03-publish-c2b-qos2-disconnect", id: "publish-qos2-test", set: kept, script: `
			< 10 * "MQTT" 04 00 003c "publish-qos2-test"
			> 20 02 00 00
			< 34 * "pub/qos2/test" 0001 'message'
			cut
			accept
			< 10 * "MQTT" 04 00 003c "publish-qos2-test"
			> 20 02 01 00
			< 3c * "pub/qos2/test" 0001 'message'
			> 50 02 0001
			< 62 02 0001
			cut
			accept
			< 10 * "MQTT" 04 00 003c "publish-qos2-test"
			> 20 02 01 00
			< 62 02 0001
			> 70 02 0001
			< e0 00
			end`, act: func(m *mosquitto) { resumed(m, "pub/qos2/test", 2, 3) }},
		// The suite's own bytes: after a clean start nothing is resent, and the client
		// learns that its message was dropped. [MQTT-3.1.2-6]
		{name: "03-publish-c2b-qos1-disconnect with a clean session", id: "publish-qos1-test",
			set: func(cfg *Config) { cfg.Session = NewSession() }, script: `
			< CONNECT
			> CONNACK
			< 32 * "pub/qos1/test" 0001 'message'
			cut
			accept
			< CONNECT
			> CONNACK
			< e0 00
			end`, act: func(m *mosquitto) {
				inFlight(m, "pub/qos1/test", 1)
				c := m.connect()
				if got := c.Resumed(); got.Present || got.Resent != 0 || !slices.Equal(got.Dropped, []int64{7}) {
					m.Errorf("resumed %+v", got)
				}
				m.leave(c)
			}},
		{name: "03-publish-helper-multiple-disconnect", id: "publish-helper-multiple-qos0-test", virtual: true, script: `
			< CONNECT
			> CONNACK
			< 30 * "publish-helper-multiple/qos0/test/0" 'message'
			< 30 * "publish-helper-multiple/qos0/test/1" 'message'
			cut
			accept
			< CONNECT
			> CONNACK
			< 30 * "publish-helper-multiple/qos0/test/2" 'message'
			< 30 * "publish-helper-multiple/qos0/test/3" 'message'
			< 30 * "publish-helper-multiple/qos0/test/4" 'message'
			< e0 00
			end`, act: reconnected},
	})
}

// inFlight publishes a message that is not acknowledged before the connection is cut.
func inFlight(m *mosquitto, topic string, qos byte) {
	m.Helper()
	c := m.connect()
	tmpl, err := c.Template(&packet.Publish{Topic: []byte(topic), Payload: []byte("message"), QoS: qos, PacketID: 1})
	if err != nil {
		m.Fatal(err)
	}
	if n, err := c.PublishN(tmpl, 1, 7, nil); n != 1 || err != nil {
		m.Fatalf("published %d, %v", n, err)
	}
	_ = c.Flush()
	<-c.Done()
}

// resumed makes that many connections of one session. On the last one the last
// acknowledgement arrives.
func resumed(m *mosquitto, topic string, qos byte, connections int) {
	acked := make(chan Ack, 4)
	m.cfg.Handler = acks{ch: acked}
	inFlight(m, topic, qos)
	for n := 2; n <= connections; n++ {
		c := m.connect()
		if got := c.Resumed(); !got.Present || got.Resent != 1 || len(got.Dropped) != 0 {
			m.Errorf("connection %d: resumed %+v", n, got)
		}
		if n < connections {
			<-c.Done()
			continue
		}
		for a := range acked {
			if a.Done {
				if a.Stamp != 7 || a.Code != packet.ReasonSuccess {
					m.Errorf("acknowledged %+v", a)
				}
				break
			}
		}
		m.leave(c)
	}
}

// acks passes on the acknowledgements.
type acks struct {
	NopHandler
	ch chan Ack
}

func (h acks) Acks(list []Ack) {
	for _, a := range list {
		h.ch <- a
	}
}

// reconnected publishes two messages, and the rest over a link's next connection.
func reconnected(m *mosquitto) {
	back := make(chan struct{}, 1)
	m.cfg.Handler = backAgain{ch: back}
	l, err := Open(m.ctx, LinkConfig{Config: m.cfg, Reconnect: true})
	if err != nil {
		m.Fatal(err)
	}
	for i := range 5 {
		if i == 2 {
			<-back
		}
		m.publish(l.Client(), fmt.Sprintf("publish-helper-multiple/qos0/test/%d", i), "message", 0)
	}
	if err := l.Disconnect(m.ctx, packet.ReasonNormalDisconnection); err != nil {
		m.Error(err)
	}
	<-l.Done()
	synctest.Wait()
}

// backAgain reports a reconnection.
type backAgain struct {
	NopHandler
	ch chan struct{}
}

func (backAgain) Up(*Client)              {}
func (backAgain) Down(error)              {}
func (b backAgain) Reconnected(Reconnect) { b.ch <- struct{}{} }

// TestMosquittoRequestResponse is test/lib/03-request-response*.py, with each of
// the two clients against its own half of the script.
func TestMosquittoRequestResponse(t *testing.T) {
	for _, tt := range []struct{ name, asked, passedOn, answered string }{
		{"03-request-response", `11 08 "response/topic"`, `11 08 "response/topic"`, "00"},
		{"03-request-response-correlation", `1c 08 "response/topic" 09 "corridor"`,
			`29 08 "response/topic" 09 "corridor" 26 "user" "data"`, `0b 09 "corridor"`},
	} {
		runMosquitto(t, []mosquittoTest{
			{name: tt.name + "/request", version: packet.V5, id: "request-test", script: `
			< CONNECT
			> CONNACK
			< 82 * 0001 00 "response/topic" 00
			> 90 * 0001 00 00
			< 30 * "request/topic" ` + tt.asked + ` 'action'
			> 30 * "response/topic" ` + tt.answered + ` 'a response'
			cut`, act: func(m *mosquitto) {
				c := m.connect()
				m.subscribe(c, "response/topic", 0)
				props := packet.Properties{ResponseTopic: new("response/topic")}
				if tt.answered != "00" {
					props.CorrelationData = []byte("corridor")
				}
				m.publishWith(c, "request/topic", "action", 0, props)
				if got := m.receive("response/topic", "a response", 0); !bytes.Equal(got.props.CorrelationData, props.CorrelationData) {
					m.Errorf("correlation data %q", got.props.CorrelationData)
				}
				<-c.Done()
			}},
			{name: tt.name + "/response", version: packet.V5, id: "response-test", script: `
			< CONNECT
			> CONNACK
			< 82 * 0001 00 "request/topic" 00
			> 90 * 0001 00 00
			> 30 * "request/topic" ` + tt.passedOn + ` 'action'
			< 30 * "response/topic" ` + tt.answered + ` 'a response'
			cut`, act: func(m *mosquitto) {
				c := m.connect()
				m.subscribe(c, "request/topic", 0)
				got := m.receive("request/topic", "action", 0).props
				var props packet.Properties
				if len(got.CorrelationData) > 0 {
					props.CorrelationData = got.CorrelationData
				}
				m.publishWith(c, *got.ResponseTopic, "a response", 0, props)
				<-c.Done()
			}},
		})
	}
}

// TestMosquittoTopicLevels is test/lib/09-util-topic-tokenise.py: the levels of
// a topic, empty ones included, here as the filters that have a + for each.
func TestMosquittoTopicLevels(t *testing.T) {
	for topic, levels := range map[string]int{
		"topic": 1, "a/deep/topic/hierarchy": 4, "/a/deep/topic/hierarchy": 5, "a/b/c": 3,
		"/a/b/c": 4, "a///hierarchy": 4, "/a///hierarchy": 5, "/a///hierarchy/": 6,
	} {
		for n := 1; n <= 7; n++ {
			filter := strings.TrimSuffix(strings.Repeat("+/", n), "/")
			if got := packet.MatchTopic(filter, topic); got != (n == levels) {
				t.Errorf("%s matches %s: %v", filter, topic, got)
			}
		}
	}
}
