package interop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/result"
)

const (
	messages   = 2000
	warmup     = 1
	iterations = 2
)

// cell is one cell of the matrix for other brokers.
type cell struct {
	qos, payload int
	protocol     string
}

func (c cell) String() string {
	return fmt.Sprintf("qos=%d,payload=%d,protocol=%s", c.qos, c.payload, c.protocol)
}

func cells(protocols ...string) (list []cell) {
	for _, protocol := range protocols {
		for qos := range 3 {
			for _, payload := range []int{10, 1024, 8192} {
				list = append(list, cell{qos, payload, protocol})
			}
		}
	}
	return list
}

// measure runs one cell over topic and checks that no message is lost that must not
// be. It returns how many messages were sent, warm-up included.
func (c cell) measure(t *testing.T, url, topic string) (sent int64) {
	t.Helper()
	r := run(t, "--url", url, "--topic", topic+"/%i", "--qos", fmt.Sprint(c.qos), "--payload", fmt.Sprint(c.payload),
		"--protocol", c.protocol, "--messages", fmt.Sprint(messages), "--warmup", fmt.Sprint(warmup), "--iterations", fmt.Sprint(iterations))
	if len(r.Cases) != 1 {
		t.Fatalf("%d cases", len(r.Cases))
	}
	for _, it := range r.Cases[0].Iterations {
		sent += it.Sent
	}
	d := r.Cases[0].Delivery
	if want := int64(messages * iterations); d.Sent != want || sent != want+messages*warmup {
		t.Errorf("%d messages sent, %d with warm-up; %d asked for in each of %d iterations", d.Sent, sent, messages, warmup+iterations)
	}
	if c.qos > 0 {
		d.Reordered = 0 // order is not guaranteed between resends
		if !d.Clean() || d.Acked != d.Sent {
			t.Errorf("QoS %d: %+v", c.qos, d)
		}
	}
	if h := r.Cases[0].Latency.Ack; c.qos > 0 && (h == nil || h.Count != d.Acked) {
		t.Errorf("%d acknowledged, latency of %+v", d.Acked, h)
	}
	checkStages(t, r.Cases[0])
	return sent
}

func checkStages(t *testing.T, c result.Case) {
	t.Helper()
	n := map[string]int{}
	for _, it := range c.Iterations {
		n[it.Stage]++
		if it.Stalled || it.Lost > 0 && c.Delivery.Lost == 0 {
			t.Errorf("%s iteration %d: %+v", it.Stage, it.Index, it)
		}
	}
	if n[result.StageWarmup] != warmup || n[result.StageActual] != iterations {
		t.Errorf("iterations: %v", n)
	}
}

// TestMosquitto measures Mosquitto while mosquitto_sub counts the messages.
func TestMosquitto(t *testing.T) {
	need(t, "mosquitto_sub")
	port := startMosquitto(t)
	for _, c := range cells("3.1.1", "5") {
		t.Run(c.String(), func(t *testing.T) {
			topic := strings.NewReplacer(",", "/", "=", "").Replace("interop/" + c.String())
			count := witness(t, port, topic)
			sent := c.measure(t, "mqtt://127.0.0.1:"+port, topic)
			if got := count(); c.qos > 0 && got != sent {
				t.Errorf("mosquitto_sub counts %d messages, the report %d", got, sent)
			}
		})
	}
}

// witness subscribes mosquitto_sub to everything below topic. The function that it
// returns ends it and returns how many messages it has received. Messages mark its
// start and its end: a retained one arrives when it has subscribed, and the broker
// keeps the order of the last one and those of the run.
func witness(t *testing.T, port, topic string) (count func() int64) {
	t.Helper()
	pub := func(name, flag string) {
		command(t, "", need(t, "mosquitto_pub"), "-p", port, "-q", "2", "-t", topic+"/"+name, "-m", name, flag)
	}
	pub("first", "-r")
	p := start(t, need(t, "mosquitto_sub"), "-p", port, "-q", "2", "-t", topic+"/#", "-F", "%t")
	awaitLine(t, p, p.stdout, topic+"/first")
	return func() (n int64) {
		pub("last", "-d")
		for p.stdout.Scan() {
			if p.stdout.Text() == topic+"/last" {
				return n
			}
			n++
		}
		t.Fatal("mosquitto_sub ended before its last message")
		return n
	}
}

// TestMochi measures mochi v2.7.9 over MQTT 3.1.1 only: with MQTT 5 and a burst of
// QoS 1 it takes a read lock twice and deadlocks (Inflight.NextImmediate calls
// GetAll). With its default limits it silently drops bursts of QoS 2, so they are
// raised, and the window stays below them. When it refuses 3.1.1 clients it answers
// with reason codes of MQTT 5.
func TestMochi(t *testing.T) {
	addr := startMochi(t)
	for _, c := range cells("3.1.1") {
		t.Run(c.String(), func(t *testing.T) {
			c.measure(t, "mqtt://"+addr, "interop/"+strings.ReplaceAll(c.String(), ",", "/"))
		})
	}
}

// TestTLSDoesNotStall runs the cell for which other tools publish no figure: 8 KiB at
// QoS 1 over TLS. There a short write of one message of a hundred thousand stalls an
// iteration until a timer of the client resends it. This client has no such timer: a
// lost message would stay lost, and end the iteration. The test does not limit how
// long an iteration takes.
func TestTLSDoesNotStall(t *testing.T) {
	r := run(t, "--tls", "--qos", "1", "--payload", "8192", "--messages", "500", "--warmup", "2", "--iterations", "100")
	if r.Target.TLS == nil || !r.Target.Embedded || r.Target.TLS.Insecure {
		t.Errorf("target %+v", r.Target)
	}
	for _, c := range r.Cases {
		if !c.Delivery.Clean() || c.Delivery.Delivered != 50_000 || c.Summary.N != 100 {
			t.Errorf("%s: delivery %+v, n %d", c.ID, c.Delivery, c.Summary.N)
		}
		for _, it := range c.Iterations {
			if it.Stalled || it.Operations != 500 {
				t.Errorf("%s: iteration %d has %d operations after %d ns (stalled: %v)", c.ID, it.Index, it.Operations, it.ElapsedNS, it.Stalled)
			}
		}
	}
}
