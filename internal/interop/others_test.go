package interop

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// measureAll runs the matrix against the broker at addr.
func measureAll(t *testing.T, addr string, list []cell) {
	for _, c := range list {
		t.Run(c.String(), func(t *testing.T) {
			// No dots: RabbitMQ treats them as slashes.
			c.measure(t, "mqtt://"+addr, "interop/"+strings.NewReplacer(",", "/", "=", "", ".", "").Replace(c.String()))
		})
	}
}

// TestAedes measures Aedes, which speaks 3.1 and 3.1.1.
func TestAedes(t *testing.T) {
	p := startNode(t, "aedes.js")
	go drop(p.stderr)
	measureAll(t, awaitLine(t, p, p.stdout, "127.0.0.1:"), cells("3.1.1"))
}

// TestNATS measures the MQTT of nats-server, which speaks 3.1.1.
func TestNATS(t *testing.T) {
	nats := filepath.Join(t.TempDir(), "nats")
	if out, err := exec.Command("go", "build", "-o", nats, "./nats").CombinedOutput(); err != nil {
		t.Fatalf("build ./nats: %v\n%s", err, out)
	}
	var err error
	for range 5 { // another process may take the port meanwhile
		p := start(t, nats, freePort(t), t.TempDir())
		var addr string
		if addr, err = findLine(p.stdout, "127.0.0.1:"); err == nil {
			go drop(p.stderr)
			measureAll(t, addr, cells("3.1.1"))
			return
		}
	}
	t.Fatal("nats: ", err)
}

// TestMQTTjs sends through the embedded broker with MQTT.js, in each version at
// each QoS: every message comes back once, in order, with its properties.
func TestMQTTjs(t *testing.T) {
	const count = 300
	b := startEmbedded(t)
	for version := 3; version <= 5; version++ {
		for qos := range 3 {
			t.Run(fmt.Sprintf("protocol level %d, QoS %d", version, qos), func(t *testing.T) {
				p := startNode(t, "client.js", b.port, fmt.Sprint(version), fmt.Sprint(qos), fmt.Sprint(count))
				for i := range count {
					want := []any{fmt.Sprintf("mqttjs/%d/%d/a", version, qos), float64(qos), fmt.Sprint(i), nil, nil, nil}
					if version == 5 {
						want = append(want[:3], "answer", "c", map[string]any{"TraceId": []any{"1", "2"}})
					}
					line := awaitLine(t, p, p.stdout, "[")
					var got []any
					if err := json.Unmarshal([]byte(line), &got); err != nil || !reflect.DeepEqual(got, want) {
						t.Fatalf("message %d is %s, want %v (%v)", i, line, want, err)
					}
				}
				var said []string
				for p.stderr.Scan() {
					said = append(said, p.stderr.Text())
				}
				if p.stdout.Scan() || len(said) > 0 {
					t.Errorf("more than %d messages: %q, or an error: %s", count, p.stdout.Text(), strings.Join(said, "\n"))
				}
			})
		}
	}
}
