//go:build unix

package mqtt_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/cputime"
	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// targetVariable makes the test binary run a mqtttest.Target of that kind. It prints
// its address, and for every line of stdin the number of messages so far.
const targetVariable = "MQTTLOAD_TEST_TARGET"

// TestTargetProcess is the other process of the benchmarks, not a test.
func TestTargetProcess(t *testing.T) {
	kind, err := strconv.Atoi(os.Getenv(targetVariable))
	if err != nil {
		t.Skip("runs as the other process of the benchmarks")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target := &mqtttest.Target{Kind: mqtttest.Kind(kind)}
	go func() { _ = target.Serve(l) }()
	fmt.Println(l.Addr())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(target.Messages())
	}
}

// remoteTarget is a Target in another process.
type remoteTarget struct {
	addr  string
	ask   io.Writer
	reply *bufio.Reader
}

func startTarget(b *testing.B, kind mqtttest.Kind) *remoteTarget {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestTargetProcess$")
	cmd.Env = append(os.Environ(), targetVariable+"="+strconv.Itoa(int(kind)))
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { stdin.Close(); _ = cmd.Wait() })
	r := &remoteTarget{ask: stdin, reply: bufio.NewReader(stdout)}
	r.addr = r.line(b)
	return r
}

func (r *remoteTarget) line(b *testing.B) string {
	s, err := r.reply.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(s)
}

// messages returns the number of messages that the target has received.
func (r *remoteTarget) messages(b *testing.B) int {
	fmt.Fprintln(r.ask)
	n, err := strconv.Atoi(r.line(b))
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func (r *remoteTarget) connect(b *testing.B, v packet.Version, window int, h mqtt.Handler) *mqtt.Client {
	b.Helper()
	c, err := mqtt.Connect(context.Background(), mqtt.Config{
		Dial:    func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", r.addr) },
		Version: v, CleanStart: true, Inflight: window, Handler: h,
	})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// meter measures this process, and one connection of it.
type meter struct {
	c     *mqtt.Client
	cpu   time.Duration
	calls int64
}

func (m *meter) start(b *testing.B) {
	b.ReportAllocs()
	runtime.GC()
	m.cpu, m.calls = cputime.Total(), m.c.Stats().Writes
	b.ResetTimer()
}

func (m *meter) stop(b *testing.B) {
	b.StopTimer()
	b.ReportMetric(float64(cputime.Total()-m.cpu)/float64(b.N), "cpu-ns/msg")
	b.ReportMetric(float64(m.c.Stats().Writes-m.calls)/float64(b.N), "writes/msg")
}

// publisher keeps the window full and stamps every message, as package load does.
type publisher struct {
	mqtt.NopHandler
	c       *mqtt.Client
	tmpl    *packet.Template
	fill    func([]byte)
	n       int // to be sent
	sent    int
	settled atomic.Int64
	room    chan struct{}
	done    chan struct{}
}

func (p *publisher) Acks(acks []mqtt.Ack) {
	var done int64
	for i := range acks {
		if acks[i].Done {
			done++
		}
	}
	if p.settled.Add(done) == int64(p.n) {
		close(p.done)
	}
}

// BatchEnd publishes more: at QoS 1 and 2 the reader does.
func (p *publisher) BatchEnd() {
	if p.tmpl != nil && p.tmpl.QoS() > 0 {
		p.more()
	}
}

func (p *publisher) more() {
	k, _ := p.c.PublishN(p.tmpl, p.n-p.sent, 0, p.fill)
	p.sent += k
}

func (p *publisher) Room() {
	select {
	case p.room <- struct{}{}:
	default:
	}
}

// run publishes n messages.
func (p *publisher) run(n int) {
	p.n, p.sent, p.done = n, 0, make(chan struct{})
	p.settled.Store(0)
	if p.tmpl.QoS() > 0 {
		p.more()
		_ = p.c.Flush()
		<-p.done
		return
	}
	for p.sent < n {
		before := p.sent
		p.more()
		_ = p.c.Flush()
		if p.sent == before {
			<-p.room
		}
	}
}

func benchPublish(b *testing.B, kind mqtttest.Kind, v packet.Version, qos byte, payload, window int) {
	target := startTarget(b, kind)
	p := &publisher{room: make(chan struct{}, 1)}
	p.c = target.connect(b, v, window, p)
	seq := uint64(0)
	p.fill = func(b []byte) { binary.BigEndian.PutUint64(b, seq); seq++ }
	m := packet.Publish{QoS: qos, Topic: []byte("bench/topic"), Payload: make([]byte, payload)}
	var err error
	if p.tmpl, err = p.c.Template(&m); err != nil {
		b.Fatal(err)
	}
	const warmup = 5000
	p.run(warmup)
	meter := meter{c: p.c}
	meter.start(b)
	p.run(b.N)
	meter.stop(b)
	_ = p.c.Disconnect(context.Background(), packet.ReasonSuccess)
	for deadline := time.Now().Add(10 * time.Second); target.messages(b) != b.N+warmup; runtime.Gosched() {
		if time.Now().After(deadline) {
			b.Fatalf("the target got %d messages of %d", target.messages(b), b.N+warmup)
		}
	}
}

// BenchmarkPublish measures what a client spends on a message, with the sink in
// another process.
func BenchmarkPublish(b *testing.B) {
	for _, v := range []packet.Version{packet.V311, packet.V5} {
		for _, payload := range []int{10, 1024, 8192} {
			b.Run(fmt.Sprintf("protocol=%s/qos=0/payload=%d", v, payload), func(b *testing.B) {
				benchPublish(b, mqtttest.Sink, v, 0, payload, 0)
			})
			for qos := byte(1); qos <= 2; qos++ {
				for _, window := range []int{100, 1000} {
					b.Run(fmt.Sprintf("protocol=%s/qos=%d/payload=%d/window=%d", v, qos, payload, window), func(b *testing.B) {
						benchPublish(b, mqtttest.AckingSink, v, qos, payload, window)
					})
				}
			}
		}
	}
}

// receiver reads the clock for every batch, and checks topic and number of every
// message.
type receiver struct {
	mqtt.NopHandler
	topic string
	n     int
	got   int
	wrong int
	began time.Time
	now   time.Duration
	done  chan struct{}
}

func (r *receiver) BatchStart() { r.now = time.Since(r.began) }

func (r *receiver) Message(m *packet.Publish) {
	if string(m.Topic) != r.topic || binary.BigEndian.Uint64(m.Payload) != uint64(r.got) {
		r.wrong++
	}
	r.got++
}

func (r *receiver) BatchEnd() {
	if r.got == r.n {
		r.got++ // once
		close(r.done)
	}
}

// BenchmarkReceive measures what a client spends on a received message, with the
// source in another process.
func BenchmarkReceive(b *testing.B) {
	for _, v := range []packet.Version{packet.V311, packet.V5} {
		for qos := byte(0); qos <= 2; qos++ {
			for _, payload := range []int{10, 1024, 8192} {
				b.Run(fmt.Sprintf("protocol=%s/qos=%d/payload=%d", v, qos, payload), func(b *testing.B) {
					target := startTarget(b, mqtttest.Flood)
					r := &receiver{topic: mqtttest.FloodTopic(payload, b.N), n: b.N, began: time.Now(), done: make(chan struct{})}
					c := target.connect(b, v, 0, r)
					defer c.Close()
					meter := meter{c: c}
					meter.start(b)
					subs := []packet.Subscription{{Filter: r.topic, QoS: qos}}
					if _, err := c.Subscribe(context.Background(), subs, packet.Properties{}); err != nil {
						b.Fatal(err)
					}
					<-r.done
					meter.stop(b)
					if r.wrong != 0 {
						b.Errorf("%d messages were not the one that was next", r.wrong)
					}
				})
			}
		}
	}
}
