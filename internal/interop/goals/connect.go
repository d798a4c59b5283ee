package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/mqttload/mqttload/internal/cputime"
	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
)

// dialers is how many connections are made at a time.
const dialers = 4

// connects has the cost of a connection in each round: CPU time of this process in
// ns, and connections per second.
type connects struct {
	bare, exchange, ours []float64
	bareRate, oursRate   []float64
}

// connect measures connections that carry nothing, connections that carry some
// bytes in both directions, and connections that carry CONNECT and CONNACK. It does
// not count closing them.
func (m *measurement) connect(ctx context.Context, p *peer) error {
	m.conns = map[scenarios.Transport]*connects{}
	for round := range m.Rounds {
		for _, t := range m.transports {
			m.tell("round %d of %d: connections over %s", round+1, m.Rounds, t)
			if m.conns[t] == nil {
				m.conns[t] = &connects{}
			}
			if err := m.conns[t].round(ctx, m, p, t); err != nil {
				return fmt.Errorf("measure connections over %s: %w", t, err)
			}
		}
	}
	return nil
}

func (k *connects) round(ctx context.Context, m *measurement, p *peer, t scenarios.Transport) error {
	over := m.caseOver(t)
	conf, err := p.ends.clientTLS(over)
	if err != nil {
		return err
	}
	raw := func(use func(net.Conn) error) func(int) (func(), error) {
		return func(int) (func(), error) {
			nc, err := p.ends.dialEcho(ctx, t, conf)
			if err != nil {
				return nil, err
			}
			return func() { _ = nc.Close() }, use(nc)
		}
	}
	cpu, rate, err := storm(m.connects, raw(func(net.Conn) error { return nil }))
	if err != nil {
		return err
	}
	k.bare, k.bareRate = append(k.bare, cpu), append(k.bareRate, rate)
	if cpu, _, err = storm(m.connects, raw(exchange)); err != nil {
		return err
	}
	k.exchange = append(k.exchange, cpu)
	s := mqtt.NewSweeper()
	defer s.Stop()
	routes := p.ends.routes(over)
	cpu, rate, err = storm(m.connects, func(i int) (func(), error) {
		c, err := connectMQTT(ctx, routes, i, s)
		if err != nil {
			return nil, err
		}
		return c.Close, nil
	})
	k.ours, k.oursRate = append(k.ours, cpu), append(k.oursRate, rate)
	return err
}

// exchange is the minimal cost of CONNECT and CONNACK: one write of as many bytes,
// and one read.
func exchange(nc net.Conn) error {
	b := make([]byte, 24)
	if _, err := nc.Write(b); err != nil {
		return err
	}
	_, err := nc.Read(b)
	return err
}

// caseOver returns a case over the transport, for its TLS options.
func (m *measurement) caseOver(t scenarios.Transport) *scenarios.Case {
	for i := range m.places[1].cases {
		if c := &m.places[1].cases[i]; c.Transport == t {
			return c
		}
	}
	return nil
}

// storm opens n connections, a few at a time, and closes them afterwards. It
// returns the CPU time in ns of opening one, and connections opened per second.
func storm(n int, open func(i int) (shut func(), err error)) (cpu, rate float64, err error) {
	shuts, errs := make([]func(), n), make([]error, n)
	var wg sync.WaitGroup
	before, start := cputime.Total(), time.Now()
	for d := range dialers {
		wg.Go(func() {
			for i := d; i < n; i += dialers {
				if shuts[i], errs[i] = open(i); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	cpu, rate = float64(cputime.Total()-before)/float64(n), float64(n)/time.Since(start).Seconds()
	for i := range n {
		if shuts[i] != nil {
			shuts[i]()
		}
		if err == nil {
			err = errs[i]
		}
	}
	return cpu, rate, err
}

// routes is how clients reach the broker over a transport, as in a run.
func (e *ends) routes(c *scenarios.Case) *dial.Routes {
	return dial.NewRoutes(&scenarios.At([]scenarios.Case{*c}, e.endpoints())[0], nil)
}

// connectMQTT connects client i as the engine does.
func connectMQTT(ctx context.Context, r *dial.Routes, i int, s *mqtt.Sweeper) (*mqtt.Client, error) {
	return mqtt.Connect(ctx, mqtt.Config{
		Dial: r.Dialer(i).Dial, Version: packet.V311, ClientID: fmt.Sprintf("calibrate%d", i), CleanStart: true, KeepAlive: time.Minute,
		Inflight: 100, Sweeper: s,
	})
}
