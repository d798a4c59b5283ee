package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mqttload/mqttload/result"
)

// TestMosquittoQueues: messages that Mosquitto queues for disconnected clients arrive
// once, in order.
func TestMosquittoQueues(t *testing.T) {
	port := startMosquitto(t)
	for _, protocol := range []string{"3.1", "3.1.1", "5"} {
		// By default its queue for a disconnected client holds 1,000 messages.
		r := run(t, "offline", "--url", "mqtt://127.0.0.1:"+port, "--protocol", protocol, "--client-id", "q%r%i",
			"--pairs", "3", "--messages", "1500", "--warmup", "1", "--iterations", "2")
		for _, c := range r.Cases {
			if d := c.Delivery; !d.Clean() || d.Acked != 3000 || d.Delivered != 3000 || len(c.Errors) > 0 {
				t.Errorf("%s: %+v, %+v, %+v", c.ID, d, c.Errors, c.Warnings)
			}
		}
	}
}

// TestMosquittoChurn: Mosquitto counts as many connections as the report does.
func TestMosquittoChurn(t *testing.T) {
	port := startMosquitto(t)
	for _, protocol := range []string{"3.1.1", "5"} {
		file := filepath.Join(t.TempDir(), "report.json")
		stdout, stderr, code := try(t, "", toolPath, "run", "churn", "--no-progress", "--output", file, "--url", "mqtt://127.0.0.1:"+port,
			"--protocol", protocol, "--rate", "0,100", "--pairs", "10", "--duration", "2s", "--warmup", "0", "--iterations", "2")
		if code != 0 {
			t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
		}
		r, err := result.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Cases {
			n := c.Clients
			if n.Connected == 0 || n.Connected != n.Planned || n.Lost != 0 || c.Latency.EndToEnd.Count != n.Connected || c.Delivery.Sent != n.Connected {
				t.Errorf("%s: %+v, %+v", c.ID, n, c.Delivery)
			}
		}
	}
}

// startConfigured starts Mosquitto on a port, with lines of configuration that
// replace the one about persistence.
func startConfigured(t *testing.T, port, lines string) *process {
	t.Helper()
	text, err := os.ReadFile("../../configs/mosquitto.conf")
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "mosquitto.conf")
	filled := strings.NewReplacer("{{PORT}}", port, "persistence false", lines).Replace(string(text))
	if err := os.WriteFile(conf, []byte(filled), 0o644); err != nil {
		t.Fatal(err)
	}
	p := start(t, need(t, "mosquitto"), "-c", conf)
	awaitLine(t, p, p.stderr, "running")
	go drop(p.stderr)
	return p
}

// TestMosquittoRestarts: Mosquitto ends in the middle of a run and restarts with its
// saved sessions. Nothing is lost at QoS 1 and 2, and every client reconnects once.
func TestMosquittoRestarts(t *testing.T) {
	dir := t.TempDir()
	for qos := 1; qos <= 2; qos++ {
		port := freePort(t)
		// Mosquitto changes to this user only as root, and could then not write here.
		saving := "persistence true\npersistence_location " + dir + "/\nuser root\n"
		broker := startConfigured(t, port, saving)
		file := filepath.Join(dir, fmt.Sprint("report", qos, ".json"))
		load := start(t, toolPath, "run", "--output", file, "--url", "mqtt://127.0.0.1:"+port, "--qos", strconv.Itoa(qos), "--payload", "64",
			"--protocol", "3.1.1", "--clean-start=false", "--pairs", "5", "--rate", "500", "--duration", "4s", "--warmup", "0",
			"--reconnect", "--log", "bdn", "--drain", "10s")
		awaitLine(t, load, load.stderr, "WorkloadActual   1:")
		go drop(load.stderr)
		_ = broker.Process.Signal(syscall.SIGTERM)
		_ = broker.Wait()
		startConfigured(t, port, saving)
		_ = load.Wait()
		r, err := result.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		c := r.Cases[0]
		if code := load.ProcessState.ExitCode(); code != 4 || c.Clients.Lost != 10 || c.Clients.Reconnects != 10 {
			t.Errorf("QoS %d: exit code %d, %+v, %+v", qos, code, c.Clients, c.Errors)
		}
		if d := c.Delivery; d.Scheduled != 2000 || d.Unsent != 0 || d.Lost != 0 || d.Acked != 2000 || qos == 2 && d.Duplicated != 0 {
			t.Errorf("QoS %d: %+v", qos, d)
		}
	}
}
