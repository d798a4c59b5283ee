package interop

import (
	"context"
	"fmt"
	"net"
	"testing"

	paho5 "github.com/eclipse/paho.golang/paho"
	paho3 "github.com/eclipse/paho.mqtt.golang"
)

const pahoMessages = 300

// wait waits for one of paho's tokens.
func wait(t *testing.T, what string, token paho3.Token) {
	t.Helper()
	if !token.WaitTimeout(patience) {
		t.Fatalf("%s: no answer", what)
	}
	if err := token.Error(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// TestPaho3 sends through the embedded broker with Eclipse's client for 3.1
// and 3.1.1.
func TestPaho3(t *testing.T) {
	b := startEmbedded(t)
	for _, version := range []uint{3, 4} {
		for qos := range byte(3) {
			t.Run(fmt.Sprintf("protocol level %d, QoS %d", version, qos), func(t *testing.T) {
				topic := fmt.Sprintf("paho3/%d/%d", version, qos)
				got := make(chan string, pahoMessages)
				connect := func(id string) paho3.Client {
					c := paho3.NewClient(paho3.NewClientOptions().AddBroker("tcp://127.0.0.1:" + b.port).
						SetClientID(fmt.Sprint(id, version, qos)).SetProtocolVersion(version).SetOrderMatters(true))
					wait(t, "connect", c.Connect())
					t.Cleanup(func() { c.Disconnect(100) })
					return c
				}
				sub, pub := connect("sub"), connect("pub")
				wait(t, "subscribe", sub.Subscribe(topic+"/#", qos, func(_ paho3.Client, m paho3.Message) {
					got <- fmt.Sprint(m.Topic(), " ", m.Qos(), " ", string(m.Payload()))
				}))
				var tokens []paho3.Token
				for i := range pahoMessages {
					tokens = append(tokens, pub.Publish(topic+"/a", qos, false, fmt.Sprint(i)))
				}
				for i := range pahoMessages {
					wait(t, "publish", tokens[i])
					if text, want := receive(t, got), fmt.Sprintf("%s/a %d %d", topic, qos, i); text != want {
						t.Fatalf("message %d is %q, want %q", i, text, want)
					}
				}
			})
		}
	}
}

func receive(t *testing.T, got <-chan string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case text := <-got:
		return text
	case <-ctx.Done():
		t.Fatal("no message")
		return ""
	}
}

func connect5(t *testing.T, port, id string, got chan<- string) *paho5.Client {
	t.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	c := paho5.NewClient(paho5.ClientConfig{Conn: conn, OnPublishReceived: []func(paho5.PublishReceived) (bool, error){
		func(r paho5.PublishReceived) (bool, error) {
			p := r.Packet
			got <- fmt.Sprintf("%s %d %s %s %s %q", p.Topic, p.QoS, p.Payload, p.Properties.ResponseTopic, p.Properties.CorrelationData, p.Properties.User)
			return true, nil
		},
	}})
	ack, err := c.Connect(t.Context(), &paho5.Connect{ClientID: id, CleanStart: true, KeepAlive: 60})
	if err != nil {
		t.Fatal(err)
	}
	if ack.ReasonCode != 0 {
		t.Fatalf("CONNACK %#x", ack.ReasonCode)
	}
	t.Cleanup(func() { _ = c.Disconnect(&paho5.Disconnect{}) })
	return c
}

// TestPaho5 sends through the embedded broker with Eclipse's client for MQTT 5: the
// properties of a message arrive unchanged and in order.
func TestPaho5(t *testing.T) {
	b := startEmbedded(t)
	for qos := range byte(3) {
		t.Run(fmt.Sprint("QoS ", qos), func(t *testing.T) {
			topic := fmt.Sprint("paho5/", qos)
			got := make(chan string, pahoMessages)
			sub := connect5(t, b.port, fmt.Sprint("sub", qos), got)
			pub := connect5(t, b.port, fmt.Sprint("pub", qos), nil)
			suback, err := sub.Subscribe(t.Context(), &paho5.Subscribe{Subscriptions: []paho5.SubscribeOptions{{Topic: topic + "/+", QoS: qos}}})
			if err != nil || suback.Reasons[0] != qos {
				t.Fatalf("SUBACK %+v, %v", suback, err)
			}
			for i := range pahoMessages {
				_, err := pub.Publish(t.Context(), &paho5.Publish{
					Topic: topic + "/a", QoS: qos, Payload: []byte(fmt.Sprint(i)),
					Properties: &paho5.PublishProperties{
						ResponseTopic: "answer", CorrelationData: []byte{'c', byte('0' + i%10)},
						User: paho5.UserProperties{{Key: "TraceId", Value: "1"}, {Key: "TraceId", Value: "2"}},
					},
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			for i := range pahoMessages {
				want := fmt.Sprintf("%s/a %d %d answer c%d %q", topic, qos, i, i%10, paho5.UserProperties{{Key: "TraceId", Value: "1"}, {Key: "TraceId", Value: "2"}})
				if text := receive(t, got); text != want {
					t.Fatalf("message %d is %q, want %q", i, text, want)
				}
			}
		})
	}
}
