package mqtt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// journal is a LinkHandler that records its calls.
type journal struct {
	NopHandler
	mu         sync.Mutex
	lines      []string
	reconnects []Reconnect
	err        error
}

func (j *journal) note(line string) {
	j.mu.Lock()
	j.lines = append(j.lines, line)
	j.mu.Unlock()
}
func (j *journal) Up(*Client)     { j.note("up") }
func (j *journal) Down(err error) { j.note("down: " + EndOf(err)) }
func (j *journal) Closed(err error) {
	j.note("closed: " + EndOf(err))
	j.err = err
}

func (j *journal) Reconnected(r Reconnect) {
	j.note("reconnected")
	j.mu.Lock()
	j.reconnects = append(j.reconnects, r)
	j.mu.Unlock()
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, ", ")
}

// theatre gives each connection attempt the next scene: a script for the peer. With a nil
// scene the dialer fails.
type theatre struct {
	t      *testing.T
	v      packet.Version
	scenes []func(*mqtttest.Peer)
	dials  []time.Time
}

var errNobody = errors.New("connection refused")

func (s *theatre) dial(context.Context) (net.Conn, error) {
	n := len(s.dials)
	s.dials = append(s.dials, time.Now())
	if n >= len(s.scenes) || s.scenes[n] == nil {
		return nil, errNobody
	}
	peer, nc := mqtttest.Pipe(s.t, s.v)
	go s.scenes[n](peer)
	return nc, nil
}

// half replaces the random numbers of a Backoff, so that waits are exact.
func half() float64 { return 0.5 }

func (s *theatre) config(j *journal) LinkConfig {
	return LinkConfig{
		Config:    Config{Dial: s.dial, Version: s.v, ClientID: "c", KeepAlive: time.Minute, Handler: j},
		Reconnect: true, Backoff: Backoff{Rand: half},
	}
}

func accept(p *mqtttest.Peer, connack string) {
	p.ExpectType(packet.CONNECT)
	p.Send(connack)
}

// settled waits until Open has returned: if the connection were lost earlier, Open would
// fail. In a synctest bubble time passes only when all goroutines wait.
func settled() { time.Sleep(time.Millisecond) }

// TestLink: after its connection is lost, a link reconnects with waits that double. It
// uses the session, and its own keep alive although the broker had set another. Then the
// link is closed.
func TestLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		s := &theatre{t: t, v: packet.V311}
		second := make(chan struct{})
		s.scenes = []func(*mqtttest.Peer){
			func(p *mqtttest.Peer) {
				p.Expect("10 0d 0004 4d515454 04 00 003c 0001 63")
				p.Send(connack311)
				p.Expect("32 07 0001 61 0001 6869")
				p.Close()
			},
			nil, nil,
			func(p *mqtttest.Peer) {
				p.Expect("10 0d 0004 4d515454 04 00 003c 0001 63")
				p.Send(resumed311)
				p.Expect("3a 07 0001 61 0001 6869")
				p.Send("40 02 0001")
				<-second
			},
		}
		cfg := s.config(j)
		cfg.Session = NewSession()
		l, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		publish(t, l.Client(), 1, 1, 0)
		began := time.Now()
		// Half of 0.1, 0.2 and 0.4 s.
		time.Sleep(10 * time.Second)
		synctest.Wait()
		want := []time.Duration{50 * time.Millisecond, 150 * time.Millisecond, 350 * time.Millisecond}
		for i, w := range want {
			if d := s.dials[i+1].Sub(began); d != w {
				t.Errorf("attempt %d after %s, want %s", i+1, d, w)
			}
		}
		l.Close()
		close(second)
		if got, want := j.String(), "up, down: closed by the broker, up, reconnected, closed: closed by this side"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		r := j.reconnects[0]
		if r.Attempts != 3 || r.Down != want[2] || !r.Resumed.Present || r.Resumed.Resent != 1 || !errors.Is(r.Cause, io.EOF) || r.Client != l.Client() {
			t.Errorf("reconnect %+v", r)
		}
		if !errors.Is(l.Err(), ErrClosed) || cfg.Session.InFlight() != 0 {
			t.Errorf("ended by %v with %d in flight", l.Err(), cfg.Session.InFlight())
		}
	})
}

// TestLinkMQTT5: a reconnecting link sends its own keep alive although the broker had set
// another, uses the assigned client identifier, and does not repeat the clean start once
// there is a session. If the broker has lost the session, it subscribes again.
// (eclipse-paho/paho.mqtt.c#1421, eclipse-paho/paho.mqtt.cpp#423)
func TestLinkMQTT5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		s := &theatre{t: t, v: packet.V5}
		quit := make(chan struct{})
		suback := func(p *mqtttest.Peer) {
			p.Expect("82 07 0001 00 0001 62 01")
			p.Send("90 04 0001 00 01")
		}
		s.scenes = []func(*mqtttest.Peer){
			func(p *mqtttest.Peer) {
				p.Expect("10 12 0004 4d515454 05 02 003c 05 1100000064 0000")
				p.Send("20 0a 00 00 07 13 0002 12 0001 78") // Server Keep Alive 2, Assigned Client Identifier x
				suback(p)
				for range 3 {
					p.Expect("c0 00")
					p.Send("d0 00")
				}
				p.Close()
			},
			func(p *mqtttest.Peer) {
				p.Expect("10 13 0004 4d515454 05 00 003c 05 1100000064 0001 78")
				p.Send(connack5)
				suback(p)
				p.Close()
			},
			func(p *mqtttest.Peer) {
				p.Expect("10 13 0004 4d515454 05 00 003c 05 1100000064 0001 78")
				p.Send(resumed5) // with its subscriptions
				<-quit
				p.ExpectEnd()
			},
		}
		cfg := s.config(j)
		cfg.ClientID, cfg.CleanStart, cfg.Session = "", true, NewSession()
		cfg.Properties.SessionExpiry = new(uint32(100))
		cfg.Subscriptions = []packet.Subscription{{Filter: "b", QoS: 1}}
		l, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if err := l.Client().Err(); err != nil {
			t.Error(err)
		}
		if n := len(j.reconnects); n == 0 || !j.reconnects[n-1].Resumed.Present {
			t.Errorf("reconnects %+v", j.reconnects)
		}
		close(quit)
		l.Close()
	})
}

// TestLinkEnds: errors after which a link does not try again, and their texts.
func TestLinkEnds(t *testing.T) {
	hold := func(p *mqtttest.Peer) { accept(p, connack5); p.Drain() }
	closes := func(p *mqtttest.Peer) { accept(p, connack5); settled(); p.Close() }
	kick := func(bytes string) func(*mqtttest.Peer) {
		return func(p *mqtttest.Peer) { accept(p, connack5); settled(); p.Send(bytes); p.Drain() }
	}
	refuse := func(connack string) func(*mqtttest.Peer) {
		return func(p *mqtttest.Peer) { accept(p, connack); p.Drain() }
	}
	for name, tt := range map[string]struct {
		scenes []func(*mqtttest.Peer)
		dials  int
		want   string
	}{
		"taken over":     {[]func(*mqtttest.Peer){kick("e0 01 8e"), hold}, 1, "another client uses this id"},
		"not authorized": {[]func(*mqtttest.Peer){closes, refuse("20 03 00 87 00"), hold}, 2, "Not authorized (0x87)"},
		"bad password":   {[]func(*mqtttest.Peer){closes, refuse("20 03 00 86 00"), hold}, 2, "Bad User Name or Password (0x86)"},
		"busy, then bad": {[]func(*mqtttest.Peer){closes, refuse("20 03 00 89 00"), refuse("20 03 00 88 00"), refuse("20 03 00 8a 00"), hold}, 4, "Banned (0x8A)"},
		"moved":          {[]func(*mqtttest.Peer){closes, refuse("20 08 00 9d 05 1c 0002 6832"), hold}, 2, `it refers to "h2"`},
		"use another":    {[]func(*mqtttest.Peer){kick("e0 07 9c 05 1c 0002 6832"), hold}, 1, `Use another server (0x9C), it refers to "h2"`},
		"unreachable":    {[]func(*mqtttest.Peer){closes}, 0, "could not reconnect within 20s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := new(journal)
				s := &theatre{t: t, v: packet.V5, scenes: tt.scenes}
				cfg := s.config(j)
				cfg.GiveUp = 20 * time.Second
				l, err := Open(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				<-l.Done()
				if l.Err() != j.err || !strings.Contains(l.Err().Error(), tt.want) {
					t.Errorf("ended by %v, the handler knows %v", l.Err(), j.err)
				}
				var gaveUp *GaveUpError
				if errors.As(l.Err(), &gaveUp) != (name == "unreachable") {
					t.Errorf("gave up: %+v", gaveUp)
				} else if gaveUp != nil && EndOf(l.Err()) != "could not reconnect within 20s: connection refused" {
					t.Errorf("class %q of %v", EndOf(l.Err()), l.Err())
				}
				if tt.dials > 0 && len(s.dials) != tt.dials {
					t.Errorf("%d attempts, want %d", len(s.dials), tt.dials)
				}
				if d := time.Since(began); d > cfg.GiveUp+time.Millisecond {
					t.Errorf("after %s", d)
				}
				if got := errors.Is(l.Err(), ErrTakenOver); got != (name == "taken over") {
					t.Errorf("taken over: %v", got)
				}
				if strings.Contains(j.String(), "reconnected") {
					t.Error(j)
				}
			})
		})
	}
}

// TestLinkRefer: with LinkConfig.Refer a link follows server references, but not without end.
func TestLinkRefer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		moved := func(p *mqtttest.Peer) { accept(p, "20 08 00 9c 05 1c 0002 6832"); p.Drain() }
		far := &theatre{t: t, v: packet.V5, scenes: []func(*mqtttest.Peer){
			func(p *mqtttest.Peer) { accept(p, connack5); p.Send("e0 07 9d 05 1c 0002 6833"); p.Drain() },
			moved, moved, moved, moved, moved, moved,
		}}
		near := &theatre{t: t, v: packet.V5, scenes: []func(*mqtttest.Peer){
			func(p *mqtttest.Peer) { accept(p, connack5); settled(); p.Send("e0 07 9c 05 1c 0002 6832"); p.Drain() },
		}}
		cfg := near.config(j)
		var refs []string
		cfg.Refer = func(ref string) (Dialer, error) { refs = append(refs, ref); return far.dial, nil }
		l, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		<-l.Done()
		if want := []string{"h2", "h3", "h2", "h2", "h2", "h2"}; !slices.Equal(refs, want) || !strings.Contains(l.Err().Error(), "5 server references") {
			t.Errorf("referred to %q, ended by %v", refs, l.Err())
		}
		if len(near.dials) != 1 || len(far.dials) != 6 {
			t.Errorf("%d and %d attempts", len(near.dials), len(far.dials))
		}
	})
}

// TestLinkClosedMeanwhile: Close ends a link in every state, and all of its goroutines.
func TestLinkClosedMeanwhile(t *testing.T) {
	silent := func(p *mqtttest.Peer) { p.Drain() }
	closes := func(p *mqtttest.Peer) { accept(p, connack311); settled(); p.Close() }
	deaf := func(p *mqtttest.Peer) { accept(p, connack311); p.Drain() }
	for name, tt := range map[string]struct {
		second func(*mqtttest.Peer)
		subs   []packet.Subscription
	}{
		"waiting":     {nil, nil},
		"connecting":  {silent, nil},
		"subscribing": {deaf, []packet.Subscription{{Filter: "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, politely := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					j := new(journal)
					s := &theatre{t: t, v: packet.V311, scenes: []func(*mqtttest.Peer){closes, tt.second}}
					if tt.subs != nil {
						s.scenes[0] = func(p *mqtttest.Peer) {
							accept(p, connack311)
							p.ExpectType(packet.SUBSCRIBE)
							p.Send("90 03 0001 00")
							settled()
							p.Close()
						}
					}
					cfg := s.config(j)
					cfg.Subscriptions = tt.subs
					cfg.Backoff.Rand = func() float64 { return 0.999 }
					l, err := Open(t.Context(), cfg)
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(90 * time.Millisecond)
					if tt.second != nil {
						time.Sleep(time.Second)
					}
					if politely {
						_ = l.Disconnect(t.Context(), 0)
					} else {
						l.Close()
					}
					if !errors.Is(j.err, ErrClosed) {
						t.Errorf("ended by %v: %s", j.err, j)
					}
					// If a goroutine is left in the bubble, synctest fails the test.
				})
			}
		})
	}
}

// TestLinkOpenFails: Open does not retry, and a refused subscription (SUBACK 0x87) is an
// error that names the filter.
func TestLinkOpenFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		s := &theatre{t: t, v: packet.V5, scenes: []func(*mqtttest.Peer){
			nil,
			func(p *mqtttest.Peer) {
				accept(p, connack5)
				p.ExpectType(packet.SUBSCRIBE)
				p.Send("90 04 0001 00 87")
				p.Drain()
			},
			func(p *mqtttest.Peer) { accept(p, connack5); p.ExpectType(packet.SUBSCRIBE); p.Close() },
			func(p *mqtttest.Peer) { p.Drain() },
		}}
		cfg := s.config(j)
		cfg.Subscriptions = []packet.Subscription{{Filter: "t/#", QoS: 1}}
		for i, want := range []string{"connection refused", `subscription "t/#" refused: Not authorized (0x87)`, "EOF", "no answer within the connect timeout"} {
			began := time.Now()
			if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
			if d := time.Since(began); i == 3 && d != 10*time.Second || i < 3 && d != 0 {
				t.Errorf("attempt %d took %s", i, d)
			}
		}
		if len(s.dials) != 4 {
			t.Errorf("%d attempts, want 4", len(s.dials))
		}
	})
}

// TestLinkFlaps: the waits go on growing after a connection that was lost at once, but
// start again at the minimum after one that lasted.
func TestLinkFlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		s := &theatre{t: t, v: packet.V311}
		flap := func(p *mqtttest.Peer) { accept(p, connack311); settled(); p.Close() }
		holds := func(p *mqtttest.Peer) { accept(p, connack311); time.Sleep(20 * time.Second); p.Close() }
		s.scenes = []func(*mqtttest.Peer){flap, flap, flap, flap, holds, flap, func(p *mqtttest.Peer) { accept(p, connack311); p.Drain() }}
		l, err := Open(t.Context(), s.config(j))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		ms := time.Millisecond
		want := []time.Duration{51 * ms, 101 * ms, 201 * ms, 401 * ms, 20*time.Second + 50*ms, 101 * ms}
		for i, w := range want {
			if i+1 >= len(s.dials) {
				t.Fatalf("%d attempts, want %d", len(s.dials), len(want)+1)
			}
			if d := s.dials[i+1].Sub(s.dials[i]); d != w {
				t.Errorf("attempt %d after %s, want %s", i+1, d, w)
			}
		}
		l.Close()
	})
}

// TestLinkSubscribesUntilAnswered: if a connection is lost before its SUBACK, the
// broker's session may lack the subscriptions. So the next connection makes them although
// the session is present.
func TestLinkSubscribesUntilAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		s := &theatre{t: t, v: packet.V311}
		subscribed := false
		const subscribe, suback = "82 06 000%d 0001 62 01", "90 03 000%d 01"
		s.scenes = []func(*mqtttest.Peer){
			func(p *mqtttest.Peer) {
				accept(p, connack311)
				p.Expect(fmt.Sprintf(subscribe, 1))
				p.Send(fmt.Sprintf(suback, 1))
				settled()
				p.Close()
			},
			func(p *mqtttest.Peer) { accept(p, connack311); p.Expect(fmt.Sprintf(subscribe, 1)); p.Close() },
			func(p *mqtttest.Peer) { accept(p, resumed311); p.Expect(fmt.Sprintf(subscribe, 2)); p.Close() },
			func(p *mqtttest.Peer) {
				accept(p, resumed311)
				p.Expect(fmt.Sprintf(subscribe, 3))
				p.Send(fmt.Sprintf(suback, 3))
				settled()
				p.Close()
			},
			func(p *mqtttest.Peer) { accept(p, resumed311); p.ExpectEnd(); subscribed = true },
		}
		cfg := s.config(j)
		cfg.Session = NewSession()
		cfg.Subscriptions = []packet.Subscription{{Filter: "b", QoS: 1}}
		l, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		l.Close()
		synctest.Wait()
		if !subscribed || len(s.dials) != len(s.scenes) || len(j.reconnects) != 2 {
			t.Errorf("%d connections, %s", len(s.dials), j)
		}
	})
}
