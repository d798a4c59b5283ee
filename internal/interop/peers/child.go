package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mqttload/mqttload/internal/mqtttest"
)

// A session is one connection of a library.
type session interface {
	// subscribe returns after SUBACK.
	subscribe(filter string, qos byte) error
	// publish sends n messages, at most conf.window of them unacknowledged, and
	// returns when all are acknowledged. At QoS 0 it returns when the library
	// has taken them; with a gate, each waits for its turn there.
	publish(n int, g gate) error
	close()
}

// A library connects. It calls got for each message that it receives.
type library func(c *conf, id string, got func(payload []byte)) (session, error)

var libraries = map[string]library{
	"mqttload":         connectOurs,
	"paho.mqtt.golang": connectPaho3,
	pahoUnordered:      connectPaho3Unordered,
	"paho.golang":      connectPaho5,
	"gomqtt":           connectGomqtt,
	"gomqtt, no delay": connectGomqttNow,
	"at-wat/mqtt-go":   connectAtwat,
	rawBytes:           connectRaw,
}

// runChild runs a child process: it connects, prints "ready VERSION", and then
// obeys the lines of its standard input:
//
//	run N    do N units of the work and answer "done"
//	usage    answer "usage CPU_NS WRITES READS RSS_BYTES RECEIVED"
//
// It ends with its input. An error is a line that begins with "error".
func runChild(c conf, in io.Reader, out io.Writer) error {
	w, err := newWorker(&c)
	if err != nil {
		return err
	}
	defer w.end()
	fmt.Fprintln(out, "ready", versionOf(c.client))
	for lines := bufio.NewScanner(in); lines.Scan(); {
		command, arg, _ := strings.Cut(lines.Text(), " ")
		n, _ := strconv.Atoi(arg)
		switch command {
		case "run":
			if err := w.run(n); err != nil {
				return err
			}
			fmt.Fprintln(out, "done")
		case "usage":
			u := w.usage()
			fmt.Fprintln(out, "usage", int64(u.cpu), u.writes, u.reads, u.rss, u.received)
		default:
			return fmt.Errorf("command %q", lines.Text())
		}
	}
	return nil
}

// modules are those of the libraries.
var modules = map[string]string{
	"paho.mqtt.golang": "github.com/eclipse/paho.mqtt.golang",
	pahoUnordered:      "github.com/eclipse/paho.mqtt.golang",
	"paho.golang":      "github.com/eclipse/paho.golang",
	"gomqtt":           "github.com/256dpi/gomqtt",
	"gomqtt, no delay": "github.com/256dpi/gomqtt",
	"at-wat/mqtt-go":   "github.com/at-wat/mqtt-go",
}

// versionOf is the version of a module in this program.
func versionOf(client string) string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == modules[client] {
			return m.Version
		}
	}
	return "-"
}

// worker does the work of the Go libraries.
type worker struct {
	*conf
	connect  library
	tally    *tally
	pub, sub session
	idle     []session
	bursts   time.Duration // CPU time of bursts
}

func newWorker(c *conf) (child, error) {
	if c.client == engine {
		return newEngineWorker(c)
	}
	w := &worker{conf: c, connect: libraries[c.client], tally: newTally(c.payload)}
	if w.connect == nil {
		return nil, fmt.Errorf("client %q is unknown", c.client)
	}
	var err error
	if c.work == "publish" || c.work == "pair" {
		if w.pub, err = w.connect(c, "pub", w.tally.got); err != nil {
			return nil, err
		}
	}
	if c.work == "receive" || c.work == "pair" {
		if w.sub, err = w.connect(c, "sub", w.tally.got); err != nil {
			return nil, err
		}
	}
	if c.work == "pair" {
		if c.qos == 0 {
			w.tally.gate = make(gate, c.window)
		}
		return w, w.sub.subscribe(topic, c.qos)
	}
	return w, nil
}

// child is the work that runChild controls.
type child interface {
	run(n int) error
	usage() usage
	end()
}

func (w *worker) run(n int) error {
	switch w.work {
	case "publish":
		return w.pub.publish(n, nil)
	case "receive":
		done := w.tally.expect(n)
		if err := w.sub.subscribe(mqtttest.FloodTopic(w.payload, n), w.qos); err != nil {
			return err
		}
		return await(done)
	case "pair":
		done := w.tally.expect(n)
		if err := w.pub.publish(n, w.tally.gate); err != nil {
			return err
		}
		return await(done)
	case "burst":
		for range n {
			if err := w.burst(); err != nil {
				return err
			}
		}
		return nil
	case "connect":
		return w.connectMany(n)
	}
	return fmt.Errorf("work %q is unknown", w.work)
}

// burst publishes burstSize messages to itself on a connection of its own. Its
// CPU time is that from SUBACK to the last message and acknowledgement.
func (w *worker) burst() error {
	s, err := w.connect(w.conf, "burst", w.tally.got)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.subscribe(topic, w.qos); err != nil {
		return err
	}
	began := cpuTime()
	done := w.tally.expect(burstSize)
	if err := s.publish(burstSize, nil); err != nil {
		return err
	}
	if err := await(done); err != nil {
		return err
	}
	w.bursts += cpuTime() - began
	return nil
}

// burstSize is how many messages a burst has.
const burstSize = 1000

func (w *worker) connectMany(n int) error {
	for range n {
		s, err := w.connect(w.conf, fmt.Sprint("c", len(w.idle)), w.tally.got)
		if err != nil {
			return fmt.Errorf("connection %d: %w", len(w.idle)+1, err)
		}
		w.idle = append(w.idle, s)
	}
	return nil
}

func (w *worker) usage() usage {
	u := processUsage(w.work == "connect")
	u.received = w.tally.received.Load()
	if w.work == "burst" {
		u.cpu = w.bursts
	}
	return u
}

func (w *worker) end() {
	for _, s := range []session{w.pub, w.sub} {
		if s != nil {
			s.close()
		}
	}
}

// patience is the timeout of every wait.
const patience = 60 * time.Second

func await(done <-chan struct{}) error {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-done:
		return nil
	case <-t.C:
		return fmt.Errorf("messages did not come within %v", patience)
	}
}

// tally counts the messages that a library receives.
type tally struct {
	payload  int
	received atomic.Int64 // all of the right size
	target   atomic.Int64
	done     chan struct{}
	gate     gate // of messages at QoS 0, which are not acknowledged; nil for none
}

func newTally(payload int) *tally { return &tally{payload: payload, done: make(chan struct{}, 1)} }

// expect returns a channel that gets a value when n more messages have come.
func (t *tally) expect(n int) <-chan struct{} {
	t.target.Store(t.received.Load() + int64(n))
	return t.done
}

func (t *tally) got(payload []byte) {
	if len(payload) != t.payload {
		return
	}
	t.gate.leave()
	if t.received.Add(1) == t.target.Load() {
		t.done <- struct{}{}
	}
}

// A gate bounds the messages in flight by its capacity. A nil gate has no bound.
type gate chan struct{}

func (g gate) enter() {
	if g != nil {
		g <- struct{}{}
	}
}

func (g gate) leave() {
	if g != nil {
		<-g
	}
}

// enterMore takes up to n more free places, and returns how many it took.
func (g gate) enterMore(n int) int {
	for i := range n {
		select {
		case g <- struct{}{}:
		default:
			return i
		}
	}
	return n
}

// usage is the resource usage of a process so far.
type usage struct {
	cpu           time.Duration // user and system
	writes, reads int64         // system calls
	rss           int64         // bytes
	received      int64         // messages
}

// processUsage returns the usage of this process. It measures memory only when
// settled, because that needs a garbage collection.
func processUsage(memory bool) (u usage) {
	if memory {
		debug.FreeOSMemory()
		u.rss = procField("/proc/self/status", "VmRSS:") << 10
	}
	u.writes, u.reads = procField("/proc/self/io", "syscw:"), procField("/proc/self/io", "syscr:")
	u.cpu = cpuTime()
	return u
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// procField returns the number after a name in one of the kernel's files, or 0 if
// there is none.
func procField(file, name string) int64 {
	text, _ := os.ReadFile(file)
	f := strings.Fields(string(text))
	for i := range len(f) - 1 {
		if f[i] == name {
			n, _ := strconv.ParseInt(f[i+1], 10, 64)
			return n
		}
	}
	return 0
}

// inTurn publishes n messages with up to window of them in flight. It waits for the
// oldest first.
func inTurn[T any](n, window int, publish func() (T, error), wait func(T) error) error {
	ring := make([]T, min(n, window))
	for i := range n {
		slot := &ring[i%len(ring)]
		if i >= len(ring) {
			if err := wait(*slot); err != nil {
				return err
			}
		}
		var err error
		if *slot, err = publish(); err != nil {
			return err
		}
	}
	for _, t := range ring {
		if err := wait(t); err != nil {
			return err
		}
	}
	return nil
}

// atOnce publishes n messages from window goroutines, for libraries whose call
// returns when the message is acknowledged.
func atOnce(n, window int, publish func() error) error {
	var left atomic.Int64
	left.Store(int64(n))
	errs := make(chan error, window)
	for range window {
		go func() {
			for left.Add(-1) >= 0 {
				if err := publish(); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var first error
	for range window {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}
