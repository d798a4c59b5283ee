//go:build unix

package cmd

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
)

// connServer is a broker, or what stands for one.
type connServer interface{ ServeConn(nc net.Conn) }

// faulty is a broker with faults.
func faulty(faults ...broker.Fault) connServer { return broker.New(broker.Config{Faults: faults}) }

// serve serves s on a port of its own until stop is called, which waits for the
// connections to end and returns at once when called again.
func serve(s connServer) (port int, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { s.ServeConn(nc) })
		}
	})
	return l.Addr().(*net.TCPAddr).Port, func() {
		_ = l.Close()
		if b, ok := s.(io.Closer); ok {
			_ = b.Close()
		}
		wg.Wait()
	}, nil
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
		broker connServer
		check  func(outcome) error
	}{
		"delay of 10 ms": {
			"1000",
			faulty(broker.Fault{Effect: broker.Delay(10 * time.Millisecond)}),
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
		// From message 401 on nothing is read for 200 ms. Message n is due at n ms, so
		// that the next 100 wait for 100 ms at least.
		"stall of 200 ms": {
			"1000",
			faulty(broker.Fault{From: 401, Times: 1, Effect: broker.Stall(200 * time.Millisecond)}),
			func(o outcome) error {
				if e := o.Latency.EndToEnd; e.MaxNS < 200e6 || above(t, e, 100*time.Millisecond) < 100 {
					return fmt.Errorf("%+v", e)
				}
				return whole(o)
			},
		},
		"each 500th lost": {
			"1000",
			faulty(broker.Fault{Every: 500, Effect: broker.Lose{}}),
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
			faulty(broker.Fault{Every: 100, Effect: broker.Repeat{Copies: 1, DUP: true}}),
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
			faulty(broker.Fault{Effect: broker.Stall(time.Second / 300)}),
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
			port, stop, err := serve(test.broker)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(stop)
			var o outcome
			o.code, o.Case, o.stderr = execute(t, "run", "--port", strconv.Itoa(port), "--qos", "1", "--payload", "100", "--protocol", "5",
				"--rate", "1000", "--duration", "1s", "--warmup", "0", "--drain", "2s", "--inflight", test.window)
			if err := test.check(o); err != nil {
				t.Error(err)
			}
		})
	}
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
