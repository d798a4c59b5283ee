package load_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/internal/pace"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// server is a broker, or a fake of one.
type server interface{ ServeConn(nc net.Conn) }

// faulty is a broker with faults.
func faulty(faults ...broker.Fault) server { return broker.New(broker.Config{Faults: faults}) }

// against runs one case of so many messages in one iteration against f, in
// virtual time, over pipes.
func against(t *testing.T, f server, change func(*scenarios.Case)) (*result.Case, error) {
	t.Helper()
	if b, ok := f.(io.Closer); ok {
		defer func() { _ = b.Close() }() // virtual time ends with the last goroutine
	}
	dial := func(context.Context, string, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go f.ServeConn(far)
		return near, nil
	}
	c := testCase(1, 100, packet.V5)
	c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "h", Port: 1883}}
	c.Load.Warmup, c.Load.Iterations, c.Load.Messages = 0, 1, messages
	if change != nil {
		change(&c)
	}
	results, err := load.New(load.Config{RunID: "r1", Dial: dial, Waiter: pace.Sleeper, Observer: load.Observer{Ledger: ledgers(t)}}).Run(t.Context(), []scenarios.Case{c})
	r := &results[0]
	if e := r.Delivery.Check(); e != nil {
		t.Error(e)
	}
	return r, err
}

// atRate makes an open loop of a constant rate, in messages per second. Its
// window is as wide as it can be, so that nothing but the broker holds it.
func atRate(rate float64, d time.Duration) func(*scenarios.Case) {
	return func(c *scenarios.Case) {
		c.Load.Stages, c.Load.Duration = []scenarios.Stage{{Duration: d, From: rate, To: rate}}, d
		c.Load.Inflight = 65535
	}
}

// ledgers checks that the accounts of streams balance.
func ledgers(t *testing.T) func(*scenarios.Case, []result.StreamAccount) {
	return func(_ *scenarios.Case, rows []result.StreamAccount) {
		for _, r := range rows {
			if r.Sent != r.Delivered+r.Lost || (r.Lost > 0) != (r.FirstLost >= 0) || r.FirstLost > r.LastLost || r.Publisher == "" || r.Subscriber == "" {
				t.Errorf("stream account %+v", r)
			}
		}
	}
}

func keep(p packet.Publish) []packet.Publish { return []packet.Publish{p} }

// TestKnownFaults injects one kind of fault into 60,000 messages, or 6,000, and
// expects exact figures.
func TestKnownFaults(t *testing.T) {
	var held packet.Publish
	for name, tt := range map[string]struct {
		// Either faults of the broker, or a fake of one.
		faults []broker.Fault
		fake   *mqtttest.Fake
		want   result.Delivery
	}{
		"none": {nil, nil, result.Delivery{Acked: messages, Received: messages, Delivered: messages}},
		"drop each 1,000th": {
			[]broker.Fault{{Every: 1000, Effect: broker.Lose{}}}, nil,
			result.Delivery{Acked: messages, Received: messages - messages/1000, Delivered: messages - messages/1000, Lost: messages / 1000},
		},
		"duplicate each 100th": {
			[]broker.Fault{{Every: 100, Effect: broker.Repeat{Copies: 1, DUP: true}}}, nil,
			result.Delivery{Acked: messages, Received: messages + messages/100, Delivered: messages, Duplicated: messages / 100, Redelivered: messages / 100},
		},
		"swap the pairs of the first 1,000": {
			nil, &mqtttest.Fake{Deliver: func(n int, p packet.Publish) []packet.Publish {
				if n < 1000 && n%2 == 0 {
					held = p
					return nil
				}
				if n < 1000 {
					return []packet.Publish{p, held}
				}
				return keep(p)
			}},
			result.Delivery{Acked: messages, Received: messages, Delivered: messages, Reordered: 500},
		},
		"flip a byte each 500th, truncate each 700th": {
			nil, &mqtttest.Fake{Deliver: func(n int, p packet.Publish) []packet.Publish {
				switch {
				case n%700 == 699:
					p.Payload = p.Payload[:50]
				case n%500 == 499:
					p.Payload[50] ^= 1
				}
				return keep(p)
			}},
			// Of 60,000, 120 flipped and 85 truncated, of which 17 are both.
			result.Delivery{Acked: messages, Received: messages, Delivered: messages, Corrupted: messages/500 + messages/700 - messages/3500},
		},
		"foreign": {
			nil, &mqtttest.Fake{Deliver: func(n int, p packet.Publish) []packet.Publish {
				if n%6000 != 0 {
					return keep(p)
				}
				a, empty, junk := p, p, p
				a.Payload, empty.Payload, junk.Payload = []byte("a"), nil, make([]byte, 1<<20)
				return []packet.Publish{a, p, empty, junk}
			}},
			result.Delivery{Acked: messages, Received: messages, Delivered: messages, Foreign: messages / 2000},
		},
		"quota exceeded each 10th": {
			nil, &mqtttest.Fake{Ack: func(n int, p *packet.Publish) (packet.ReasonCode, bool) {
				if n%10 == 9 {
					return packet.ReasonQuotaExceeded, true
				}
				return 0, true
			}},
			result.Delivery{Acked: messages - messages/10, Nacked: messages / 10, Received: messages, Delivered: messages},
		},
		"five acknowledgements never come": {
			nil, &mqtttest.Fake{Ack: func(n int, p *packet.Publish) (packet.ReasonCode, bool) {
				return 0, n%(messages/6) != 77 || n > messages/6*5
			}},
			result.Delivery{Acked: messages - 5, Received: messages, Delivered: messages},
		},
	} {
		for model, change := range map[string]func(*scenarios.Case){"closed": nil, "open": atRate(100_000, messages*10*time.Microsecond)} {
			t.Run(name+"/"+model, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := faulty(tt.faults...)
					if tt.fake != nil {
						f = &mqtttest.Fake{Deliver: tt.fake.Deliver, Ack: tt.fake.Ack}
					}
					r, err := against(t, f, change)
					if err != nil {
						t.Fatal(err)
					}
					want := tt.want
					want.Scheduled, want.Sent, want.Expected = messages, messages, messages
					if r.Delivery != want {
						t.Errorf("got  %+v\nwant %+v", r.Delivery, want)
					}
					if n := want.Nacked; n > 0 && (len(r.Errors) != 1 || r.Errors[0].Count != n || r.Errors[0].Reason != "Quota exceeded (0x97)") {
						t.Errorf("errors %+v", r.Errors)
					}
					if l := r.Losses; want.Lost > 0 && (l == nil || *l != result.Losses{First: 999, Last: messages - 1, Acked: messages / 1000}) {
						t.Errorf("losses %+v", l)
					}
				})
			})
		}
	}
}

// TestNothingReceived: a broker that swallows everything is a loud failure,
// after the drain time and not later.
func TestNothingReceived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r, err := against(t, faulty(broker.Fault{Effect: broker.Lose{}}), nil)
		if err == nil || !strings.Contains(err.Error(), "nothing received: of 100 messages none came back within the drain time of 5s") {
			t.Errorf("got %v", err)
		}
		if d := r.Delivery; d.Scheduled != messages || d.Sent != 100 || d.Unsent != messages-100 || d.Lost != 100 || r.Summary.MeanNS != nil {
			t.Errorf("%+v %+v", d, r.Summary)
		}
		if d := time.Since(began); d > 6*time.Second {
			t.Errorf("took %s", d)
		}
	})
}

// TestLateIsNotANewDelivery: what comes after its iteration was given up is
// late, and the next iteration's figures are its own.
func TestLateIsNotANewDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held []packet.Publish
		f := &mqtttest.Fake{Deliver: func(n int, p packet.Publish) []packet.Publish {
			switch {
			case n >= 990 && n < 1000:
				held = append(held, p)
				return nil
			case n == 1000:
				return append(held, p)
			}
			return keep(p)
		}}
		r, err := against(t, f, func(c *scenarios.Case) { c.QoS, c.Load.Messages, c.Load.Iterations = 0, 1000, 2 })
		if err != nil {
			t.Fatal(err)
		}
		if d := r.Delivery; d.Lost != 10 || d.Late != 10 || d.Delivered != 1990 || d.Duplicated+d.Foreign != 0 {
			t.Errorf("%+v", d)
		}
		if a, b := r.Iterations[0], r.Iterations[1]; !a.Stalled || a.Lost != 10 || b.Stalled || b.Received != 1000 {
			t.Errorf("%+v\n%+v", a, b)
		}
	})
}

// TestSubscriptionRefused fails before any load. (eclipse-mosquitto/mosquitto#1413)
func TestSubscriptionRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := against(t, &mqtttest.Fake{Suback: func(packet.Subscription) packet.ReasonCode { return packet.ReasonNotAuthorized }}, nil)
		if err == nil || !strings.Contains(err.Error(), `subscription "t/r1/1" refused: Not authorized (0x87)`) || !load.Unreachable(err) {
			t.Errorf("got %v", err)
		}
		if r.Delivery.Sent != 0 {
			t.Errorf("%d sent", r.Delivery.Sent)
		}
	})
}

func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := against(t, &mqtttest.Fake{Connack: packet.Connack{Code: packet.ReasonBadUserNameOrPassword}}, nil)
		if err == nil || !strings.Contains(err.Error(), "connect mqtt://h:1883: refused by the broker: Bad User Name or Password (0x86)") || !load.Unreachable(err) {
			t.Errorf("got %v", err)
		}
	})
}

// TestPacketTooLarge is refused here, before an id is used or a byte is sent.
func TestPacketTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := uint32(50)
		r, err := against(t, &mqtttest.Fake{Connack: packet.Connack{Properties: packet.Properties{MaximumPacketSize: &limit}}}, nil)
		if err == nil || !strings.Contains(err.Error(), "packet of 113 B is larger than the broker's maximum of 50 B") || !load.Unreachable(err) {
			t.Errorf("got %v", err)
		}
		if r.Delivery.Sent != 0 {
			t.Errorf("%d sent", r.Delivery.Sent)
		}
	})
}

// TestHangup: a connection that is lost in mid-run ends its pair at once, is
// counted, and leaves the other pairs alone.
func TestHangup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := faulty(broker.Fault{Topic: "t/r1/1", From: 501, Times: 1, Effect: broker.Cut{}})
		r, err := against(t, f, func(c *scenarios.Case) { c.Load.Topics, c.Load.Messages, c.Load.Iterations = 4, 4000, 2 })
		if err != nil {
			t.Fatal(err)
		}
		d := r.Delivery
		if r.Clients.Lost != 1 || d.Scheduled != 8000 || d.Sent+d.Unsent != 8000 || d.Delivered < 3*1000+500 {
			t.Errorf("clients %+v delivery %+v", r.Clients, d)
		}
		if len(r.Errors) != 1 || r.Errors[0].Kind != "disconnect" || r.Errors[0].Reason != "closed by the broker" {
			t.Errorf("errors %+v", r.Errors)
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("took %s", d)
		}
	})
}

// TestInterrupt: an ended context stops the sending, drains, and returns what
// there is.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := &mqtttest.Fake{Deliver: func(n int, p packet.Publish) []packet.Publish {
			if n == 5000 {
				cancel()
			}
			return keep(p)
		}}
		dial := func(context.Context, string, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go f.ServeConn(far)
			return near, nil
		}
		c := testCase(1, 100, packet.V5)
		c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "h", Port: 1883}}
		c.Load.Warmup, c.Load.Iterations, c.Load.Messages = 0, 3, 60_000
		results, err := load.New(load.Config{RunID: "r1", Dial: dial}).Run(ctx, []scenarios.Case{c})
		if err == nil || len(results) != 1 {
			t.Fatalf("%v, %d results", err, len(results))
		}
		d := results[0].Delivery
		if d.Sent < 5000 || d.Sent > 6000 || d.Delivered != d.Sent || d.Unsent != 60_000-d.Sent {
			t.Errorf("%+v", d)
		}
	})
}

// TestInterruptOpenLoop: one that ends in its warm-up has nothing to show, and
// what is not due yet when it ends is neither unsent nor a stall, whether it is
// delivered, acknowledged or only written.
func TestInterruptOpenLoop(t *testing.T) {
	for _, at := range []time.Duration{1500 * time.Millisecond, 5500 * time.Millisecond} {
		for _, subscribers := range []int{0, 1} {
			for qos := range byte(2) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), at)
					defer cancel()
					f := &mqtttest.Fake{Deliver: func(_ int, p packet.Publish) []packet.Publish { return keep(p) }}
					dial := func(context.Context, string, string, string) (net.Conn, error) {
						near, far := net.Pipe()
						go f.ServeConn(far)
						return near, nil
					}
					c := testCase(qos, 100, packet.V5)
					c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: "h", Port: 1883}}
					atRate(0.5, time.Minute)(&c)
					c.Load.Warmup, c.Load.Subscribers = 2, subscribers
					results, err := load.New(load.Config{RunID: "r1", Dial: dial, Waiter: pace.Sleeper}).Run(ctx, []scenarios.Case{c})
					if err == nil || len(results) != 1 {
						t.Fatalf("%v, %d results", err, len(results))
					}
					r := results[0]
					want := int64(at.Seconds() / 2) // the first was sent to warm up
					if d := r.Delivery; d.Sent != want || d.Unsent != 0 || len(r.Errors) > 0 {
						t.Errorf("%d subscribers, QoS %d, after %s: %+v, %+v", subscribers, qos, at, d, r.Errors)
					}
					for _, w := range r.Warnings {
						if w.Code == "publishers-stalled" {
							t.Errorf("%d subscribers, QoS %d, after %s: %+v", subscribers, qos, at, w)
						}
					}
				})
			}
		}
	}
}

// TestRejectedPublishes: a broker that rejects every message is the only fault,
// with its reason, its code and the remedy for it.
func TestRejectedPublishes(t *testing.T) {
	for code, remedy := range map[packet.ReasonCode]string{
		packet.ReasonNotAuthorized:    "access control list",
		packet.ReasonQuotaExceeded:    "quota",
		packet.ReasonTopicNameInvalid: "--topic",
		packet.ReasonUnspecifiedError: "log",
	} {
		for name, pace := range map[string]func(*scenarios.Case){"closed": nil, "open": atRate(1000, time.Second)} {
			for qos := byte(1); qos <= 2; qos++ {
				synctest.Test(t, func(t *testing.T) {
					f := &mqtttest.Fake{
						Deliver: func(int, packet.Publish) []packet.Publish { return nil },
						Ack:     func(int, *packet.Publish) (packet.ReasonCode, bool) { return code, true },
					}
					r, err := against(t, f, func(c *scenarios.Case) {
						c.QoS, c.Load.Messages = qos, 1000
						if pace != nil {
							pace(c)
						}
					})
					if !errors.Is(err, load.ErrAllRejected) {
						t.Errorf("%s, QoS %d: %v", name, qos, err)
					}
					reason := fmt.Sprintf("%s (0x%02X)", code, byte(code))
					if len(r.Errors) != 1 || r.Errors[0].Kind != result.ErrorPublish || r.Errors[0].Count != r.Delivery.Nacked ||
						r.Errors[0].Reason != reason || r.Errors[0].Example != "publish: "+reason || !strings.Contains(r.Errors[0].Remedy(), remedy) {
						t.Errorf("%s, QoS %d: errors %+v of %+v", name, qos, r.Errors, r.Delivery)
					}
				})
			}
		}
	}
}

// TestStalledForGood: once a broker has stopped, the run ends after one drain
// time, not after one for each iteration that is left.
func TestStalledForGood(t *testing.T) {
	for qos := byte(0); qos <= 2; qos++ {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			f := &mqtttest.Fake{
				Deliver: func(n int, p packet.Publish) []packet.Publish {
					if n >= 2500 {
						return nil
					}
					return keep(p)
				},
				Ack: func(n int, _ *packet.Publish) (packet.ReasonCode, bool) { return 0, n < 2500 },
			}
			r, err := against(t, f, func(c *scenarios.Case) { c.QoS, c.Load.Messages, c.Load.Iterations = qos, 1000, 15 })
			if !errors.Is(err, load.ErrNothingReceived) {
				t.Errorf("QoS %d: %v", qos, err)
			}
			if d := time.Since(began); d > 12*time.Second || len(r.Iterations) > 4 {
				t.Errorf("QoS %d: took %s for %d iterations", qos, d, len(r.Iterations))
			}
		})
	}
}
