package preflight

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
)

// cases expands a scenario with settings.
func cases(t *testing.T, settings ...string) []scenarios.Case {
	t.Helper()
	sc, err := scenarios.Parse("test.yaml", []byte("name: test\n"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(settings); i += 2 {
		if err := sc.SetFrom("", settings[i], strings.Fields(settings[i+1])...); err != nil {
			t.Fatal(err)
		}
	}
	list, err := sc.Cases()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// to makes connections to fakes by host name; a host without one refuses.
func to(fakes map[string]*mqtttest.Fake) func(context.Context, string, string, string) (net.Conn, error) {
	return func(_ context.Context, _, address, _ string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address)
		f := fakes[host]
		if f == nil {
			return nil, errors.New("no route to " + host)
		}
		near, far := net.Pipe()
		go f.ServeConn(far)
		return near, nil
	}
}

// summary is the checks that are not ok, and the cases that cannot run.
func summary(l Checklist) string {
	var b strings.Builder
	for _, one := range l.Lines {
		if one.Status != OK {
			b.WriteString(one.Target + " " + string(one.Status) + " " + one.Check + ": " + one.Message + "\n")
		}
	}
	for _, c := range l.Cells {
		if !c.Runs {
			b.WriteString("not " + c.ID + "\n")
		}
	}
	return b.String()
}

func TestBrokers(t *testing.T) {
	connack := func(p packet.Properties) *mqtttest.Fake {
		return &mqtttest.Fake{Connack: packet.Connack{Properties: p}}
	}
	for _, test := range []struct {
		name     string
		fakes    map[string]*mqtttest.Fake
		settings []string
		want     string
	}{
		{"good", map[string]*mqtttest.Fake{"a": {}}, []string{"qos", "0 1 2", "protocol", "3.1.1 5"}, ""},
		{"one of two targets is dead", map[string]*mqtttest.Fake{"a": {}}, []string{"url", "mqtt://a mqtt://b"},
			"mqtt://b:1883 fail tcp: connect mqtt://b:1883: no route to b\n"},
		{"retain", map[string]*mqtttest.Fake{"a": connack(packet.Properties{RetainAvailable: new(byte(0))})}, []string{"retain", "true", "protocol", "5"},
			" fail cases: no case can run\nnot qos=0/payload=10/protocol=5\n"},
		{"shared subscriptions", map[string]*mqtttest.Fake{"a": connack(packet.Properties{SharedSubAvailable: new(byte(0))})}, []string{"share", "g", "subscribers", "2", "protocol", "5"},
			" fail cases: no case can run\nnot qos=0/payload=10/protocol=5\n"},
		{"Receive Maximum", map[string]*mqtttest.Fake{"a": connack(packet.Properties{ReceiveMaximum: new(uint16(10))})}, []string{"qos", "1", "protocol", "5"},
			"mqtt://a:1883 warn window: --inflight 100 is reduced to the broker's Receive Maximum of 10\n"},
		{"granted QoS", map[string]*mqtttest.Fake{"a": {Suback: func(packet.Subscription) packet.ReasonCode { return 0 }}}, []string{"qos", "1"},
			"mqtt://a:1883 warn subscribe: the broker granted QoS 0 of 2\n"},
		{"no subscription", map[string]*mqtttest.Fake{"a": {Suback: func(packet.Subscription) packet.ReasonCode { return 0x80 }}}, nil,
			"mqtt://a:1883 fail subscribe: subscription \"mqttload/r1/1\" refused: Unspecified error (0x80)\n fail cases: no case can run\nnot qos=0/payload=10/protocol=3.1.1\n"},
		{"acknowledgements withheld", map[string]*mqtttest.Fake{"a": {Ack: func(int, *packet.Publish) (packet.ReasonCode, bool) { return 0, false }}}, []string{"qos", "1"},
			"mqtt://a:1883 fail qos 1: no acknowledgement within 5s\nmqtt://a:1883 fail qos 2: no acknowledgement within 5s\nmqtt://a:1883 fail payload 10 B: no acknowledgement within 5s\n fail cases: no case can run\nnot qos=1/payload=10/protocol=3.1.1\n"},
		{"large messages are swallowed", map[string]*mqtttest.Fake{"a": {Deliver: func(_ int, p packet.Publish) []packet.Publish {
			if len(p.Payload) > 1000 {
				return nil
			}
			return []packet.Publish{p}
		}}}, []string{"qos", "1", "payload", "10 4096"},
			"mqtt://a:1883 fail payload 4,096 B: the message did not come back within 5s\n fail cases: 1 of 2 cases cannot run\nnot qos=1/payload=4096/protocol=3.1.1\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				list := cases(t, append([]string{"url", "mqtt://a"}, test.settings...)...)
				got := summary(Brokers(t.Context(), list, Options{RunID: "r1", Open: to(test.fakes)}))
				if got != test.want {
					t.Errorf("got\n%swant\n%s", got, test.want)
				}
			})
		})
	}
}

// TestBusy: a broker that is busy is asked again until the connect timeout.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := &mqtttest.Fake{Connack: packet.Connack{Code: packet.ReasonServerBusy}}
		list := cases(t, "url", "mqtt://a", "protocol", "5", "connect-timeout", "3s")
		began := time.Now()
		l := Brokers(t.Context(), list, Options{RunID: "r1", Open: to(map[string]*mqtttest.Fake{"a": busy}), Short: true})
		if d := time.Since(began); d != 3*time.Second {
			t.Errorf("it was asked for %v", d)
		}
		want := "mqtt://a:1883 fail connect: MQTT 5: connect mqtt://a:1883: refused by the broker: Server busy (0x89)\n fail cases: no case can run\nnot qos=0/payload=10/protocol=5\n"
		if got := summary(l); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}
