//go:build unix

package cmd

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
)

// serveFake serves a broker that does as it is told on a port of its own.
func serveFake(t *testing.T, f *mqtttest.Fake) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { f.ServeConn(nc) })
		}
	})
	return "mqtt://" + l.Addr().String()
}

// execute runs the program as a process of its own, and reads its report.
func execute(t *testing.T, args ...string) (code int, c *result.Case, stderr string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r.json")
	cmd := exec.Command("mqttload", append(args, "--quiet", "-o", path)...)
	var out strings.Builder
	cmd.Stderr = &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	r, err := result.Read(path)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if err := r.Cases[0].Delivery.Check(); err != nil {
		t.Error(err)
	}
	return cmd.ProcessState.ExitCode(), &r.Cases[0], out.String()
}

// above counts the latencies of at least this much, but for the width of a bucket.
func above(t *testing.T, h *result.Histogram, least time.Duration) (n int64) {
	t.Helper()
	full, err := h.Decode()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range full.Distribution() {
		if b.To >= int64(least) {
			n += b.Count
		}
	}
	return n
}

// every makes what a broker delivers of each nth message, of the last of n.
func every(n int, change func(packet.Publish) []packet.Publish) func(int, packet.Publish) []packet.Publish {
	return func(i int, p packet.Publish) []packet.Publish {
		if i%n == n-1 {
			return change(p)
		}
		return []packet.Publish{p}
	}
}

// TestFaultsOverTCP: what the engine is known to say of a broker's faults on
// virtual time it says as a program on a real network: counts exactly, and no
// latency is less than the delay that was put in. How much more depends on what
// else the machine does.
func TestFaultsOverTCP(t *testing.T) {
	const messages = 1000 // in a second, at QoS 1
	type outcome struct {
		*result.Case
		code   int
		stderr string
	}
	whole := func(o outcome) error {
		if d := o.Delivery; o.code != 0 || d.Sent != messages || d.Acked != messages || d.Delivered != messages || d.Lost+d.Corrupted+d.Foreign+d.Late != 0 {
			return fmt.Errorf("exit code %d, %+v", o.code, d)
		}
		if e := o.Latency.EndToEnd; e.Count != messages {
			return fmt.Errorf("%d latencies", e.Count)
		}
		return nil
	}
	for name, test := range map[string]struct {
		window string // not in the way, but of what the broker cannot keep up with
		fake   *mqtttest.Fake
		check  func(outcome) error
	}{
		"delay of 10 ms": {
			"1000",
			&mqtttest.Fake{When: func(_ int, _ *packet.Publish, at time.Time) time.Time { return at.Add(10 * time.Millisecond) }},
			func(o outcome) error {
				l := o.Latency
				for leg, h := range map[string]*result.Histogram{"end to end": l.EndToEnd, "service": l.Service, "ack": l.Ack} {
					if h.MinNS < 10e6 || h.P50NS > 2e9 {
						return fmt.Errorf("%s: %+v", leg, h)
					}
				}
				return whole(o)
			},
		},
		// From message 400 on nothing moves for 200 ms. Message n is due at n ms, so
		// that the next 100 wait for 100 ms at least.
		"stall of 200 ms": {
			"1000",
			stalling(400, 200*time.Millisecond),
			func(o outcome) error {
				if e := o.Latency.EndToEnd; e.MaxNS < 200e6 || above(t, e, 100*time.Millisecond) < 100 {
					return fmt.Errorf("%+v", e)
				}
				return whole(o)
			},
		},
		"each 500th lost": {
			"1000",
			&mqtttest.Fake{Deliver: every(500, func(packet.Publish) []packet.Publish { return nil })},
			func(o outcome) error {
				d, l := o.Delivery, o.Losses
				if o.code != exitDelivery || d.Sent != messages || d.Lost != 2 || d.Delivered != messages-2 || l == nil || l.First != 499 || l.Last != 999 ||
					!strings.Contains(o.stderr, "2 of 1,000 messages were lost at QoS 1 (0.20 %)") {
					return fmt.Errorf("exit code %d, %+v, %+v\n%s", o.code, d, l, o.stderr)
				}
				return nil
			},
		},
		"each 100th twice": {
			"1000",
			&mqtttest.Fake{Deliver: every(100, func(p packet.Publish) []packet.Publish {
				again := p
				again.Dup = true
				return []packet.Publish{p, again}
			})},
			func(o outcome) error {
				if d := o.Delivery; d.Duplicated != 10 || d.Redelivered != 10 || d.Reordered != 0 {
					return fmt.Errorf("%+v", d)
				}
				return whole(o)
			},
		},
		"pairs of the first 400 swapped": {
			"1000",
			&mqtttest.Fake{Deliver: swapping(400)},
			func(o outcome) error {
				if d := o.Delivery; d.Reordered != 200 || d.Duplicated != 0 {
					return fmt.Errorf("%+v", d)
				}
				return whole(o)
			},
		},
		"capacity of 300/s": {
			"100",
			capacity(300),
			func(o outcome) error {
				d := o.Delivery
				if o.code != exitIncomplete || d.Scheduled != messages || d.Unsent == 0 || d.Delivered != d.Sent || o.Offered.MessagesPerSec != messages || o.RateKept() {
					return fmt.Errorf("exit code %d, %+v, %+v", o.code, d, o.Offered)
				}
				if o.Bottleneck.Kind == "target met" || !strings.Contains(o.stderr, "messages were not sent") {
					return fmt.Errorf("%+v\n%s", o.Bottleneck, o.stderr)
				}
				return nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serveFake(t, test.fake)
			var o outcome
			o.code, o.Case, o.stderr = execute(t, "run", "--url", url, "--qos", "1", "--payload", "100", "--protocol", "5",
				"--rate", "1000", "--duration", "1s", "--warmup", "0", "--drain", "2s", "--inflight", test.window)
			if err := test.check(o); err != nil {
				t.Error(err)
			}
		})
	}
}

// stalling is a broker that handles nothing from its nth message on for d.
func stalling(nth int, d time.Duration) *mqtttest.Fake {
	var mu sync.Mutex
	var until time.Time
	return &mqtttest.Fake{When: func(n int, _ *packet.Publish, at time.Time) time.Time {
		mu.Lock()
		defer mu.Unlock()
		if n == nth {
			until = at.Add(d)
		}
		if at.Before(until) {
			return until
		}
		return at
	}}
}

// swapping exchanges the messages 2k and 2k+1 of the first n.
func swapping(n int) func(int, packet.Publish) []packet.Publish {
	var held packet.Publish // the fake delivers under a lock
	return func(i int, p packet.Publish) []packet.Publish {
		switch {
		case i >= n:
			return []packet.Publish{p}
		case i%2 == 0:
			held = p
			return nil
		}
		return []packet.Publish{p, held}
	}
}

// capacity is a broker of so many messages per second.
func capacity(rate int) *mqtttest.Fake {
	var mu sync.Mutex
	var last time.Time
	return &mqtttest.Fake{When: func(_ int, _ *packet.Publish, at time.Time) time.Time {
		mu.Lock()
		defer mu.Unlock()
		if at.After(last) {
			last = at
		}
		last = last.Add(time.Second / time.Duration(rate))
		return last
	}}
}
