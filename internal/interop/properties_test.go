package interop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/result"
)

// askAll are flags for everything that an MQTT 5 client can request. The Receive
// Maximum is far above the window, because Mosquitto 2.0.11 respects it only roughly
// at QoS 2.
var askAll = []string{
	"--protocol", "5", "--topics", "3", "--topics-per-publisher", "3", "--topics-per-subscriber", "3",
	"--topic-alias", "2", "--topic-alias-maximum", "4", "--receive-maximum", "1000", "--maximum-packet-size", "4096",
	"--message-expiry", "60s", "--content-type", "text/plain", "--response-topic", "re/%c", "--correlation-data", "hex:00ff", "--payload-format", "utf-8",
	"--user-property", "TraceId=x", "--user-property", "traceid=X", "--user-property", "a=b=c",
	"--subscription-identifier", "300", "--retain", "--retain-as-published", "--retain-handling", "2",
	"--request-problem-information=false", "--request-response-information",
	"--payload", "text:grüße aus köln", "--verify", "off", "--inflight", "10",
	"--messages", fmt.Sprint(messages), "--warmup", "0", "--iterations", fmt.Sprint(iterations),
}

// properties runs with all these flags against a broker.
func properties(t *testing.T, addr string, qos int) result.Case {
	t.Helper()
	c := run(t, append([]string{"--url", addr, "--topic", fmt.Sprintf("properties/%d/%%r/%%i", qos), "--qos", fmt.Sprint(qos)}, askAll...)...).Cases[0]
	if d := c.Delivery; d.Sent != messages*iterations || qos > 0 && d.Delivered != d.Sent || d.Delivered == 0 {
		t.Errorf("%+v", d)
	}
	return c
}

// TestMosquittoProperties: Mosquitto forwards all properties, and accepts and sets
// topic aliases.
func TestMosquittoProperties(t *testing.T) {
	port := startMosquitto(t)
	for qos := range 3 {
		t.Run(fmt.Sprintf("qos=%d", qos), func(t *testing.T) {
			c := properties(t, "127.0.0.1:"+port, qos)
			if len(c.Errors) > 0 || c.Aliases == nil || c.Aliases.Granted != 2 {
				t.Errorf("errors %+v, aliases %+v", c.Errors, c.Aliases)
			}
		})
	}
}

// TestMochiProperties: without a request for problem information mochi drops the
// User Properties of a PUBLISH, although the rule is about other packets
// [MQTT-3.1.2-29]. The report shows it.
func TestMochiProperties(t *testing.T) {
	c := properties(t, startMochi(t), 0)
	if len(c.Errors) != 1 || c.Errors[0].Kind != "property" || !strings.HasPrefix(c.Errors[0].Reason, "User Property was dropped") || c.Errors[0].Count != c.Delivery.Received {
		t.Errorf("%+v", c.Errors)
	}
}
