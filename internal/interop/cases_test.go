package interop

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/result"
)

// Bugs that users of other clients have reported, tried with Mosquitto.

// TestMosquittoPayloadSizes: payloads at the limits of buffers, and of the length
// field of their packet, arrive whole. (petabridge/TurboMqtt#69,
// knolleary/pubsubclient#1064)
func TestMosquittoPayloadSizes(t *testing.T) {
	port := startMosquitto(t)
	for _, protocol := range []string{"3.1.1", "5"} {
		for qos := range 3 {
			// The remaining length besides the payload: topic, identifier, property length.
			const topic = "sizes/a"
			rest := 2 + len(topic) + 2*min(qos, 1)
			if protocol == "5" {
				rest++
			}
			sizes := []string{"8191", "8192", "8193", "16383", "16384", "65535", "65536", "2097151", "2097152"}
			for _, border := range []int{1 << 7, 1 << 14, 1 << 21} {
				sizes = append(sizes, strconv.Itoa(border-1-rest), strconv.Itoa(border-rest))
			}
			r := run(t, "--url", "mqtt://127.0.0.1:"+port, "-t", topic, "--protocol", protocol, "--qos", strconv.Itoa(qos),
				"--payload", strings.Join(sizes, ","), "--messages", "20", "-F", "5", "--warmup", "0", "--iterations", "1")
			if len(r.Cases) != len(sizes) {
				t.Errorf("%d cases", len(r.Cases))
			}
			for _, c := range r.Cases {
				if d := c.Delivery; !d.Clean() || d.Delivered != 20 || len(c.Errors) > 0 {
					t.Errorf("%s: %+v, %+v", c.ID, d, c.Errors)
				}
			}
		}
	}
}

// TestMosquittoLargest: the largest message that MQTT can carry arrives. Between
// receiving its last byte and sending its first one Mosquitto copies it, and shows no
// sign of life.
func TestMosquittoLargest(t *testing.T) {
	port := startMosquitto(t)
	r := run(t, "--url", "mqtt://127.0.0.1:"+port, "--payload", "268435400", "--messages", "1", "--warmup", "0", "--iterations", "1", "--qos", "1", "--protocol", "5", "--drain", "2m")
	if d := r.Cases[0].Delivery; !d.Clean() || d.Delivered != 1 {
		t.Errorf("%+v", d)
	}
}

// TestMosquittoKills: Mosquitto is killed five times at full load, with unsaved
// messages, and restarted. The run ends, every connection comes back each time, and
// no message is left unsent. Messages that Mosquitto has acknowledged and not saved
// are lost, and the report shows them.
// (eclipse-paho/paho.mqtt.golang#509, chirpstack/chirpstack-gateway-bridge#103)
func TestMosquittoKills(t *testing.T) {
	for protocol, qos := range map[string]int{"3.1.1": 2, "5": 1} {
		t.Run(fmt.Sprintf("protocol=%s/qos=%d", protocol, qos), func(t *testing.T) { mosquittoKills(t, protocol, qos) })
	}
}

func mosquittoKills(t *testing.T, protocol string, qos int) {
	const kills, each, iterations, pairs, window = 5, 400, 12, 4, 20
	dir := t.TempDir()
	port := freePort(t)
	// Mosquitto saves after every change. It changes to this user only as root, and
	// could then not write here.
	saving := "persistence true\nautosave_on_changes true\nautosave_interval 1\npersistence_location " + dir + "/\nuser root\n"
	broker := startConfigured(t, port, saving)
	file := filepath.Join(dir, "report.json")
	args := []string{"run", "--output", file, "--url", "mqtt://127.0.0.1:" + port, "--qos", strconv.Itoa(qos), "--payload", "64", "--protocol", protocol,
		"--pairs", strconv.Itoa(pairs), "-F", strconv.Itoa(window), "--messages", strconv.Itoa(each), "--warmup", "0", "--iterations", strconv.Itoa(iterations), "--reconnect", "--log", "bdn", "--drain", "3s"}
	// Mosquitto 2.0 saves no MQTT 5 session that began with a clean start.
	args = append(args, "--clean-start=false")
	if protocol == "5" {
		args = append(args, "--session-expiry", "1h")
	}
	load := start(t, toolPath, args...)
	for k := range kills {
		awaitLine(t, load, load.stderr, fmt.Sprintf("WorkloadActual  %2d:", 2*k+1))
		_ = broker.Process.Kill()
		_ = broker.Wait()
		broker = startConfigured(t, port, saving)
	}
	go drop(load.stderr)
	_ = load.Wait()
	r, err := result.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	c := r.Cases[0]
	d := c.Delivery
	want := 4
	if d.Lost > 0 || qos == 2 && d.Duplicated > 0 {
		want = 5 // sessions are kept, so the broker owes the messages
	}
	if code := load.ProcessState.ExitCode(); code != want || c.Clients.Lost < kills*pairs || c.Clients.Reconnects != c.Clients.Lost {
		t.Errorf("exit code %d, want %d: %+v, %+v", code, want, c.Clients, c.Errors)
	}
	if err := d.Check(); err != nil || d.Scheduled != each*iterations || d.Unsent != 0 || d.Acked != d.Sent || len(c.Iterations) != iterations {
		t.Errorf("%v, %d iterations, %+v", err, len(c.Iterations), d)
	}
	t.Logf("%d connections lost, %d messages were resent; %d lost, %d duplicated", c.Clients.Lost, d.Resent, d.Lost, d.Duplicated)
}
