package mqtt

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestMosquittoConnect is test/lib/01-*.py of Eclipse Mosquitto.
func TestMosquittoConnect(t *testing.T) {
	will := func(topic, payload string, qos byte, retain bool) func(cfg *Config) {
		return func(cfg *Config) {
			cfg.Will = &packet.Will{Topic: topic, Payload: []byte(payload), QoS: qos, Retain: retain}
		}
	}
	user := func(name, password string) func(cfg *Config) {
		return func(cfg *Config) {
			cfg.HasUsername, cfg.Username, cfg.HasPassword, cfg.Password = true, name, true, []byte(password)
		}
	}
	runMosquitto(t, []mosquittoTest{
		{name: "01-con-discon-success", id: "01-con-discon-success", act: comeAndGo, script: `
			< CONNECT
			> CONNACK
			< e0 00
			end`},
		{name: "01-con-discon-success-v5", version: packet.V5, id: "01-con-discon-success-v5", act: comeAndGo,
			set: func(cfg *Config) { cfg.Properties.MaximumPacketSize = new(uint32(1000)) },
			// The suite has the two properties in the other order, which is equivalent.
			script: `
			< 10 * "MQTT" 05 02 003c 08 21 0014 27 000003e8 "01-con-discon-success-v5"
			> CONNACK
			< e0 00
			end`},
		{name: "01-con-discon-will", id: "01-con-discon-will", act: comeAndGo, set: will("will/topic", "will-payload", 1, true), script: `
			< 10 * "MQTT" 04 2e 003c "01-con-discon-will" "will/topic" "will-payload"
			> CONNACK
			< e0 00
			end`},
		{name: "01-con-discon-will-v5", version: packet.V5, id: "01-con-discon-will", act: comeAndGo,
			set: func(cfg *Config) {
				will("will/topic", "will-payload", 1, true)(cfg)
				cfg.Will.Properties.PayloadFormat = new(byte(1))
			}, script: `
			< 10 * "MQTT" 05 2e 003c 03 21 0014 "01-con-discon-will" 02 01 01 "will/topic" "will-payload"
			> CONNACK
			< e0 00
			end`},
		{name: "01-con-discon-will-clear", id: "01-con-discon-will", act: comeAndGo,
			set: func(cfg *Config) {
				will("will/topic", "will-payload", 1, true)(cfg)
				cfg.Will = nil
			}, script: `
			< CONNECT
			> CONNACK
			< e0 00
			end`},
		{name: "01-no-clean-session", id: "01-no-clean-session", act: come, set: func(cfg *Config) { cfg.CleanStart = false }, script: `
			< 10 * "MQTT" 04 00 003c "01-no-clean-session"
			> CONNACK
			cut`},
		// This client has no callback before CONNECT: every connection has its Config.
		{name: "01-pre-connect-callback", id: "01-pre-connect", act: come, set: user("uname", ";'[08gn=#"), script: `
			< 10 * "MQTT" 04 c2 003c "01-pre-connect" "uname" ";'[08gn=#"
			> CONNACK
			cut`},
		{name: "01-unpwd-set", id: "01-unpwd-set", act: come, set: user("uname", ";'[08gn=#"), script: `
			< 10 * "MQTT" 04 c2 003c "01-unpwd-set" "uname" ";'[08gn=#"
			> CONNACK
			cut`},
		{name: "01-will-set", id: "01-will-set", act: come, set: will("topic/on/unexpected/disconnect", "will message", 1, true), script: `
			< 10 * "MQTT" 04 2e 003c "01-will-set" "topic/on/unexpected/disconnect" "will message"
			> CONNACK
			cut`},
		{name: "01-will-unpwd-set", id: "01-will-unpwd-set", act: come,
			set: func(cfg *Config) {
				will("will-topic", "will message", 2, false)(cfg)
				user("oibvvwqw", "#'^2hg9a&nm38*us")(cfg)
			}, script: `
			< 10 * "MQTT" 04 d6 003c "01-will-unpwd-set" "will-topic" "will message" "oibvvwqw" "#'^2hg9a&nm38*us"
			> CONNACK
			cut`},
	})
}

// TestMosquittoKeepAlive is the part of test/lib that waits for a PINGREQ.
func TestMosquittoKeepAlive(t *testing.T) {
	every := func(interval time.Duration) func(cfg *Config) {
		return func(cfg *Config) { cfg.KeepAlive = interval }
	}
	runMosquitto(t, []mosquittoTest{
		{name: "01-keepalive-pingreq", id: "01-keepalive-pingreq", virtual: true, act: come, set: every(5 * time.Second), script: `
			< 10 * "MQTT" 04 02 0005 "01-keepalive-pingreq"
			> CONNACK
			< c0 00
			> d0 00
			< c0 00
			cut`},
		// The client asks for 60 seconds, the broker sets 4, and the script waits for 10.
		{name: "01-server-keepalive-pingreq", version: packet.V5, id: "01-server-keepalive-pingreq", virtual: true, act: come, script: `
			< CONNECT
			> 20 * 00 00 09 13 0004 22 000a 21 0014
			< c0 00
			> d0 00
			< c0 00
			cut`},
		{name: "03-publish-b2c-qos1-unexpected-puback", id: "publish-qos1-test", virtual: true, set: every(5 * time.Second), script: `
			< 10 * "MQTT" 04 02 0005 "publish-qos1-test"
			> CONNACK
			> 40 02 346f
			< c0 00
			cut`, act: unexpected},
		{name: "03-publish-b2c-qos2-unexpected-pubcomp", id: "publish-qos2-test", virtual: true, set: every(5 * time.Second), script: `
			< 10 * "MQTT" 04 02 0005 "publish-qos2-test"
			> CONNACK
			> 70 02 346f
			< c0 00
			cut`, act: unexpected},
	})
}

// unexpected is come, and checks that an unexpected acknowledgement is counted.
func unexpected(m *mosquitto) {
	c := m.connect()
	<-c.Done()
	if n := c.Unexpected(); n != 1 {
		m.Errorf("%d unexpected acknowledgements, want 1", n)
	}
}

// testMethod is an authentication method that always gives the same answer, or none.
type testMethod struct {
	answer string
	err    error
}

func (m testMethod) Method() string                  { return "test-method" }
func (m testMethod) Start() ([]byte, error)          { return nil, nil }
func (m testMethod) Continue([]byte) ([]byte, error) { return []byte(m.answer), m.err }
func (m testMethod) Finish([]byte) error             { return nil }
func (m testMethod) set(cfg *Config)                 { cfg.Auth = m }

// refusedBy connects, and must be refused.
func refusedBy(m *mosquitto) (err *ProtocolError) {
	m.Helper()
	if _, got := Connect(m.ctx, m.cfg); !errors.As(got, &err) {
		m.Fatalf("got %v, want a protocol error", got)
	}
	return err
}

// TestMosquittoAuth is test/lib/01-extended-auth-*.py. The suite's CONNECT has no
// authentication method, although a server must not send AUTH then [MQTT-4.12.0-6].
// Here CONNECT has one; without it, this client rejects the AUTH.
func TestMosquittoAuth(t *testing.T) {
	runMosquitto(t, []mosquittoTest{
		{name: "01-extended-auth-continue", version: packet.V5, id: "01-extended-auth", act: comeAndGo, set: testMethod{answer: "test-reply"}.set, script: `
			< 10 * "MQTT" 05 02 003c 11 15 "test-method" 21 0014 "01-extended-auth"
			> f0 * 18 1d 15 "test-method" 16 "test-request"
			< f0 * 18 1b 15 "test-method" 16 "test-reply"
			> 20 * 00 00 0e 15 "test-method"
			< e0 00
			end`},
		// The suite expects nothing more, but a DISCONNECT is allowed [MQTT-3.1.2-30].
		{name: "01-extended-auth-failure", version: packet.V5, id: "01-extended-auth", set: testMethod{err: errors.New("no")}.set, script: `
			< 10 * "MQTT" 05 02 003c 11 15 "test-method" 21 0014 "01-extended-auth"
			> f0 * 18 1d 15 "test-method" 16 "test-request"
			< e0 01 80
			end`, act: func(m *mosquitto) { _ = refusedBy(m) }},
		{name: "01-extended-auth-continue without a method", version: packet.V5, id: "01-extended-auth", script: `
			< CONNECT
			> f0 * 18 1d 15 "test-method" 16 "test-request"
			< e0 01 82
			end`, act: func(m *mosquitto) { _ = refusedBy(m) }},
	})
}

// TestMosquittoSubscribe is test/lib/02-*.py.
func TestMosquittoSubscribe(t *testing.T) {
	var tests []mosquittoTest
	for qos := range byte(3) {
		tests = append(tests, mosquittoTest{
			name: fmt.Sprintf("02-subscribe-qos%d", qos), id: fmt.Sprintf("subscribe-qos%d-test", qos), script: fmt.Sprintf(`
			< CONNECT
			> CONNACK
			< 82 * 0001 "qos%d/test" %02x
			> 90 * 0001 %02[1]x
			< e0 00
			end`, qos, qos),
			act: func(m *mosquitto) {
				c := m.connect()
				m.subscribe(c, fmt.Sprintf("qos%d/test", qos), qos)
				m.leave(c)
			}})
	}
	unsubscribe := func(codes int, filters ...string) func(m *mosquitto) {
		return func(m *mosquitto) {
			c := m.connect()
			got, err := c.Unsubscribe(m.ctx, filters)
			if err != nil || len(got) != codes {
				m.Errorf("%v, %v", got, err)
			}
			m.leave(c)
		}
	}
	runMosquitto(t, append(tests, []mosquittoTest{
		{name: "02-subscribe-helper-qos2", id: "subscribe-qos2-test", script: `
			< CONNECT
			> CONNACK
			< 82 * 0001 "qos2/test" 02
			> 90 * 0001 02
			> 30 * "qos2/test" 'message'
			< e0 00
			end`, act: func(m *mosquitto) {
			c := m.connect()
			m.subscribe(c, "qos2/test", 2)
			m.receive("qos2/test", "message", 0)
			m.leave(c)
		}},
		{name: "02-unsubscribe", id: "unsubscribe-test", act: unsubscribe(0, "unsubscribe/test"), script: `
			< CONNECT
			> CONNACK
			< a2 * 0001 "unsubscribe/test"
			> b0 * 0001
			< e0 00
			end`},
		// The suite's has a User Property, which this client's Unsubscribe does not support.
		{name: "02-unsubscribe-v5", version: packet.V5, id: "unsubscribe-test", act: unsubscribe(1, "unsubscribe/test"), script: `
			< CONNECT
			> CONNACK
			< a2 * 0001 00 "unsubscribe/test"
			> b0 * 0001 00 00
			< e0 00
			end`},
		{name: "02-unsubscribe-multiple-v5", version: packet.V5, id: "unsubscribe-test", script: `
			< CONNECT
			> CONNACK
			< 82 * 0001 00 "unsubscribe/test" 02
			> 90 * 0001 00 02
			< a2 * 0002 00 "unsubscribe/test" "no-sub"
			> b0 * 0002 00 00 11
			< e0 00
			end`, act: func(m *mosquitto) {
			c := m.connect()
			m.subscribe(c, "unsubscribe/test", 2)
			codes, err := c.Unsubscribe(m.ctx, []string{"unsubscribe/test", "no-sub"})
			if err != nil || len(codes) != 2 || codes[0] != packet.ReasonSuccess || codes[1] != packet.ReasonNoSubscriptionExisted {
				m.Errorf("%v, %v", codes, err)
			}
			m.leave(c)
		}},
	}...))
}

// TestMosquittoReceive tests messages from the broker: test/lib/03-publish-b2c-*.py and
// 11-prop-recv-*.py. This client's handler gets a message before the exchange has
// ended. Where the script must wait for that end, the broker tells the client.
func TestMosquittoReceive(t *testing.T) {
	take := func(qos byte) func(m *mosquitto) {
		return func(m *mosquitto) {
			c := m.connect()
			m.receive(fmt.Sprintf("pub/qos%d/receive", qos), "message", qos)
			<-c.Done()
		}
	}
	tests := []mosquittoTest{
		{name: "03-publish-b2c-qos1", id: "publish-qos1-test", act: take(1), script: `
			< CONNECT
			> CONNACK
			> 32 * "pub/qos1/receive" 007b 'message'
			< 40 02 007b
			cut`},
		// [MQTT-4.4.0-1] Nothing is resent on a timer, neither there nor here.
		{name: "03-publish-b2c-qos2", id: "publish-qos2-test", act: take(2), script: `
			< CONNECT
			> CONNACK
			> 34 * "pub/qos2/receive" 346f 'message'
			< 50 02 346f
			> 62 02 346f
			< 70 02 346f
			cut`},
		{name: "03-publish-b2c-qos2-unexpected-pubrel", id: "publish-qos2-test", script: `
			< CONNECT
			> CONNACK
			> 62 02 03e8
			< 70 02 03e8
			> 34 * "pub/qos2/receive" 346f 'message'
			< 50 02 346f
			> 62 02 346f
			< 70 02 346f
			> 30 * "quit" 'quit'
			cut`, act: func(m *mosquitto) {
			c := m.connect()
			m.receive("pub/qos2/receive", "message", 2)
			m.receive("quit", "quit", 0)
			<-c.Done()
		}},
	}
	for name, pubrel := range map[string]string{
		"len 2": "62 02 0038", "len 3": "62 03 0038 00", "len 4": "62 04 0038 00 00",
		"len >5": `62 * 0038 00 0d 26 "key" "value"`,
	} {
		tests = append(tests, mosquittoTest{name: "03-publish-b2c-qos2-len/" + name, version: packet.V5, id: "publish-qos2-test", script: `
			< CONNECT
			> CONNACK
			> 34 * "len/qos2/test" 0038 00 'message'
			< 50 02 0038
			> ` + pubrel + `
			< 70 02 0038
			> 30 * "go" 00 'on'
			< e0 00
			end`, act: func(m *mosquitto) {
			c := m.connect()
			m.receive("len/qos2/test", "message", 2)
			m.receive("go", "on", 0)
			m.leave(c)
		}})
	}
	for qos, exchange := range []string{"> 30 * ID", "> 32 * ID\n< 40 02 0001", "> 34 * ID\n< 50 02 0001\n> 62 02 0001\n< 70 02 0001"} {
		id := `"prop/test"`
		if qos > 0 {
			id += " 0001"
		}
		tests = append(tests, mosquittoTest{name: fmt.Sprintf("11-prop-recv-qos%d", qos), version: packet.V5, id: "prop-test", script: `
			< CONNECT
			> CONNACK
			` + strings.Replace(exchange, "ID", id+` 17 03 "plain/text" 08 "msg/123" 'message'`, 1) + `
			> 30 * "go" 00 'on'
			< 30 * "ok" 00 'ok'
			cut`, act: func(m *mosquitto) {
			c := m.connect()
			got := m.receive("prop/test", "message", byte(qos)).props
			if got.ContentType == nil || *got.ContentType != "plain/text" || got.ResponseTopic == nil || *got.ResponseTopic != "msg/123" {
				m.Errorf("properties %+v", got)
			}
			m.receive("go", "on", 0)
			m.publish(c, "ok", "ok", 0)
			<-c.Done()
		}})
	}
	runMosquitto(t, tests)
}
