package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/mqttload/mqttload/internal/calibrate"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// options say how much to measure: those of `mqttload calibrate`, whose scenario
// this program shares, and the rest.
type options struct {
	calibrate.Options
	// messages is over how many messages allocations are counted: enough to hide
	// the few that an iteration itself makes.
	messages int64
	// connects is how many connections are opened per round, kind and transport,
	// and idle how many are open while memory is measured.
	connects, idle int
	// full says to measure open loops, too, with up to many connections.
	full bool
	many int
}

func transports(cases []scenarios.Case) (list []scenarios.Transport) {
	for _, c := range cases {
		if !slices.Contains(list, c.Transport) {
			list = append(list, c.Transport)
		}
	}
	return list
}

// measurement is one run of this program.
type measurement struct {
	options
	table      []figure
	transports []scenarios.Transport
	places     []*place
	conns      map[scenarios.Transport]*connects
	idles      map[scenarios.Transport]idle
	pacers     []pacing
	open       *place           // the open loops; nil unless full
	bare       []float64        // CPU per message of bare clients, in ns
	allocs     map[byte]float64 // per message, by QoS
}

func (m *measurement) tell(format string, args ...any) {
	if m.Progress != nil {
		m.Progress(fmt.Sprintf(format, args...))
	}
}

// run measures everything and fills the table.
func (m *measurement) run(ctx context.Context) error {
	sc, err := m.Scenario()
	if err != nil {
		return err
	}
	cases, err := sc.Cases()
	if err != nil {
		return err
	}
	m.transports = transports(cases)
	peer, err := startPeer(m.Peer)
	if err != nil {
		return err
	}
	defer peer.close()
	local, err := openEnds()
	if err != nil {
		return err
	}
	defer local.close()
	m.places = []*place{{name: result.PlaceIn, ends: &local.ends}, {name: result.PlaceOwn, ends: &peer.ends, peer: peer}}
	for _, p := range m.places {
		p.m = m
		if err := p.run(ctx); err != nil {
			return err
		}
	}
	if err := m.allocations(ctx); err != nil {
		return err
	}
	if err := m.connect(ctx, peer); err != nil {
		return err
	}
	if err := m.idleMemory(ctx, peer); err != nil {
		return err
	}
	if err := m.pacing(ctx); err != nil {
		return err
	}
	if m.full {
		if err := m.runFull(ctx, peer); err != nil {
			return err
		}
	}
	m.figures()
	return nil
}
