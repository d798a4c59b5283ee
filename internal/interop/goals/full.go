package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/mqttload/mqttload/internal/calibrate"
	"github.com/mqttload/mqttload/internal/cputime"
	"github.com/mqttload/mqttload/internal/pace"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// Kinds of work of -full: open loops over TCP with the smallest payload at QoS 0.
const (
	workRate  = "rate"  // one pair at several rates
	workPairs = "pairs" // one rate over a growing number of pairs
	workMany  = "many"  // one rate over as many connections as possible
)

const (
	pairsRate  = 20_000 // msg/s over all pairs
	manyRate   = 10_000 // msg/s over all connections
	fullRounds = 3      // at most, because each takes seconds
)

var (
	fullRates = []int{1_000, 10_000, 100_000}
	fullPairs = []int{1, 10, 100, 1_000}
)

// runFull measures the engine's open loop. A launch is a second of warm-up and
// one that counts.
func (m *measurement) runFull(ctx context.Context, peer *peer) error {
	m.open = &place{m: m, name: result.PlaceOwn, ends: &peer.ends, peer: peer}
	if err := m.open.planFull(); err != nil {
		return err
	}
	return m.open.measure(ctx)
}

func (p *place) planFull() error {
	type part struct {
		work     string
		what     result.Param
		settings []calibrate.Setting
	}
	rate := func(n int) calibrate.Setting { return set("rate", strconv.Itoa(n)) }
	var parts []part
	for _, n := range fullRates {
		parts = append(parts, part{workRate, param("rate", n), []calibrate.Setting{rate(n)}})
	}
	for _, n := range fullPairs {
		if 2*n <= p.m.many {
			parts = append(parts, part{workPairs, param("pairs", n), []calibrate.Setting{set("shape", "pairs"), set("pairs", strconv.Itoa(n)), rate(pairsRate)}})
		}
	}
	parts = append(parts, part{workMany, param("connections", p.m.many), []calibrate.Setting{set("pairs", strconv.Itoa(p.m.many)), rate(manyRate)}})
	common := []calibrate.Setting{
		set("transport", "tcp"), set("payload", strconv.Itoa(small)), set("qos", "0"), set("launches", strconv.Itoa(min(p.m.Rounds, fullRounds))),
	}
	for _, one := range parts {
		if err := p.add(one.work, []result.Param{one.what}, append(one.settings, common...)...); err != nil {
			return err
		}
	}
	return nil
}

// bareClients is the reference for workMany: as many connections to the echo, each
// with a goroutine that reads, and one goroutine that writes the messages due.
func (m *measurement) bareClients(p *place, c *scenarios.Case) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conns := make([]net.Conn, m.many)
	defer func() {
		for _, nc := range conns {
			if nc != nil {
				_ = nc.Close()
			}
		}
	}()
	_, _, err := storm(len(conns), func(i int) (_ func(), err error) {
		conns[i], err = p.ends.dialEcho(ctx, scenarios.TCP, nil)
		if err == nil {
			go drain(conns[i])
		}
		return nil, err
	})
	if err != nil {
		return fmt.Errorf("open %d bare connections: %w", len(conns), err)
	}
	w := pace.New()
	defer w.Stop()
	message, sent, start := make([]byte, packetSize(c)), 0, time.Now()
	send := func(until time.Duration) error {
		for tick := time.Since(start); tick < until; tick += leastTick {
			w.Until(start.Add(tick))
			for due := int(time.Since(start).Seconds() * manyRate); sent < due; sent++ {
				if _, err := conns[sent%len(conns)].Write(message); err != nil {
					return fmt.Errorf("write to a bare connection: %w", err)
				}
			}
		}
		return nil
	}
	if err := send(time.Second); err != nil {
		return err
	}
	before, warm := cputime.Total(), sent
	// The second begins now, not on schedule: on a busy machine it may be late.
	if err := send(time.Since(start) + time.Second); err != nil {
		return err
	}
	m.bare = append(m.bare, float64(cputime.Total()-before)/float64(max(sent-warm, 1)))
	return nil
}

func drain(nc net.Conn) {
	b := make([]byte, 512)
	for {
		if _, err := nc.Read(b); err != nil {
			return
		}
	}
}

func (m *measurement) fullFigures() {
	var first []float64
	for i := range m.open.cells {
		k := &m.open.cells[i]
		params := k.result.Params[2:3] // after work and place
		switch k.work {
		case workRate:
			m.openFigures(&k.result, params)
		case workPairs:
			if first == nil {
				first = k.own
			}
			m.ratio(fmt.Sprintf("CPU per message, client, at %d/s", pairsRate), "1 pair", "ns", k.own, first, goal{}, params...)
		case workMany:
			m.ratio(fmt.Sprintf("CPU per message, client, at %d/s", manyRate), "bare clients", "ns", k.own, m.bare, manyGoal, params...)
			m.openFigures(&k.result, params)
		}
	}
}

// openFigures adds how well an open loop kept its schedule.
func (m *measurement) openFigures(c *result.Case, params []result.Param) {
	lag := figure{Name: "open loop's send lag, p50", Unit: "ns", Params: params}
	if h := c.Latency.SendLag; h != nil {
		lag.Value = spreadOf([]float64{float64(h.P50NS)})
	}
	m.add(lag, latenessGoal)
	missed := figure{Name: "open loop's rate missed by", Unit: "%", Params: params}
	if o := c.Offered; o != nil && o.Achieved != nil && o.MessagesPerSec > 0 {
		missed.Value = spreadOf([]float64{max(0, 100*(1-*o.Achieved/o.MessagesPerSec))})
	}
	m.add(missed, missedGoal)
}
