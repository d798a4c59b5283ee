package main

import (
	"fmt"

	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// goal is the bound of a figure, and the aim; 0 means none.
type goal struct{ must, aim float64 }

// The goals come from a prototype without statistics or TLS options, with a margin
// for the rest of the tool.
var (
	echoGoals    = map[int]goal{10: {4, 2.5}, 1024: {1.6, 1.2}, 8192: {1.8, 1.4}} // by payload
	qosGoals     = map[byte]goal{1: {2.5, 1.8}, 2: {4, 2.5}}
	tlsGoals     = map[int]goal{10: {3.5, 2.5}, 1024: {4.5, 3}} // by payload
	idleGoals    = map[scenarios.Transport]goal{scenarios.TCP: {8 << 10, 6 << 10}, scenarios.TLS: {28 << 10, 20 << 10}}
	brokerGoal   = goal{1.5, 1.1}
	v5Goal       = goal{must: 1.1}
	writesGoal   = goal{0.01, 0.002}
	allocsGoal   = goal{must: 0.01}
	latenessGoal = goal{150e3, 50e3}
	missedGoal   = goal{must: 0.1}
	connectGoal  = goal{1.3, 1.1}
	manyGoal     = goal{must: 1.3}
)

// small is the payload, in bytes, of the figures about messages rather than bytes.
const small = 10

var protocols = struct{ v311, v5 string }{"3.1.1", "5"}

// figures fills the table from the measurements.
func (m *measurement) figures() {
	for _, p := range m.places {
		for _, t := range m.transports {
			p.echoFigures(t)
			p.qosFigures(t)
		}
		p.tlsFigures()
	}
	m.places[1].ownFigures(m.transports[0])
	m.allocFigures()
	m.pacingFigures()
	m.connectionFigures()
	if m.open != nil {
		m.fullFigures()
	}
}

// add judges a figure by its goal and adds it to the table.
func (m *measurement) add(f figure, g goal) {
	if g.must > 0 {
		f.Must = &g.must
	}
	if g.aim > 0 {
		f.Aim = &g.aim
	}
	f.judge()
	m.table = append(m.table, f)
}

// ratio adds the figure of a over b, both by round.
func (m *measurement) ratio(name, against, unit string, a, b []float64, g goal, params ...result.Param) {
	m.add(figure{
		Name: name, Params: params, Unit: unit, Against: against,
		Value: spreadOf(a), Ratio: spreadOf(ratios(a, b)),
	}, g)
}

func param(key string, value any) result.Param {
	return result.Param{Key: key, Value: fmt.Sprint(value)}
}

// cpuName names the processes whose CPU time is measured.
func (p *place) cpuName() string {
	if p.peer == nil {
		return "CPU per message, client and broker"
	}
	return "CPU per message, client"
}

func (p *place) params(t scenarios.Transport, qos byte, payload int) []result.Param {
	return []result.Param{param(result.ParamPlace, p.name), param("transport", t), param("qos", qos), param("payload", payload)}
}

func (p *place) echoFigures(t scenarios.Transport) {
	for _, payload := range []int{10, 1024, 8192} {
		k, e := p.find(result.WorkEngine, t, payload, 0, protocols.v311), p.findEcho(t, payload)
		if k == nil || e == nil {
			continue
		}
		g := echoGoals[payload]
		if t != scenarios.TCP {
			g = goal{}
		}
		p.m.ratio(p.cpuName(), "raw echo", "ns", k.own, e.own, g, p.params(t, 0, payload)...)
	}
}

func (p *place) qosFigures(t scenarios.Transport) {
	base := p.find(result.WorkEngine, t, small, 0, protocols.v311)
	for qos := byte(1); qos <= 2; qos++ {
		k := p.find(result.WorkEngine, t, small, qos, protocols.v311)
		if k == nil || base == nil {
			continue
		}
		g := qosGoals[qos]
		if t != scenarios.TCP {
			g = goal{}
		}
		p.m.ratio(p.cpuName(), "QoS 0", "ns", k.own, base.own, g, p.params(t, qos, small)...)
	}
}

func (p *place) tlsFigures() {
	for _, payload := range []int{10, 1024} {
		k := p.find(result.WorkEngine, scenarios.TLS, payload, 0, protocols.v311)
		base := p.find(result.WorkEngine, scenarios.TCP, payload, 0, protocols.v311)
		if k != nil && base != nil {
			p.m.ratio(p.cpuName(), "TCP", "ns", k.own, base.own, tlsGoals[payload], p.params(scenarios.TLS, 0, payload)...)
		}
	}
}

// ownFigures adds those that need the broker's cost by itself.
func (p *place) ownFigures(t scenarios.Transport) {
	for qos := byte(0); qos <= 2; qos++ {
		k := p.find(result.WorkEngine, t, small, qos, protocols.v311)
		if k == nil {
			continue
		}
		params := p.params(t, qos, small)
		p.m.ratio("CPU per message, broker", "client", "ns", k.other, k.own, brokerGoal, params...)
		if v5 := p.find(result.WorkEngine, t, small, qos, protocols.v5); v5 != nil {
			p.m.ratio("CPU per message, client, MQTT 5", "MQTT 3.1.1", "ns", v5.own, k.own, v5Goal, params...)
		}
		p.m.add(figure{Name: "writes per message", Params: params, Value: spreadOf(k.writes)}, writesGoal)
	}
}

func (m *measurement) allocFigures() {
	for qos := byte(0); qos <= 2; qos++ {
		if n, ok := m.allocs[qos]; ok {
			m.add(figure{
				Name: "allocations per message, client and broker", Value: spreadOf([]float64{n}),
				Params: m.places[0].params(m.transports[0], qos, small),
			}, allocsGoal)
		}
	}
}

func (m *measurement) pacingFigures() {
	for _, k := range m.pacers {
		params := []result.Param{param("rate", k.rate), param("clock", k.kind)}
		m.add(figure{Name: "pacer's lateness, p50", Unit: "ns", Params: params, Value: spreadOf(k.p50)}, latenessGoal)
		m.add(figure{Name: "pacer's lateness, p99", Unit: "ns", Params: params, Value: spreadOf(k.p99)}, goal{})
		var percent []float64
		for _, x := range k.missed {
			percent = append(percent, 100*x)
		}
		m.add(figure{Name: "rate missed by", Unit: "%", Params: params, Value: spreadOf(percent)}, missedGoal)
	}
}

func (m *measurement) connectionFigures() {
	for _, t := range m.transports {
		k, bare := m.conns[t], "net.Dial"
		if t.Secure() {
			bare = "tls.Dial"
		}
		over := param("transport", t)
		m.ratio("CPU per connection, CONNECT and CONNACK included", bare, "ns", k.ours, k.bare, connectGoal, over)
		m.ratio("CPU per connection, one write and one read of raw bytes included", bare, "ns", k.exchange, k.bare, goal{}, over)
		m.ratio("CPU per connection, CONNECT and CONNACK included", "raw write and read", "ns", k.ours, k.exchange, goal{}, over)
		m.ratio("connections per second", bare, "/s", k.oursRate, k.bareRate, goal{}, over)
	}
	for _, t := range m.transports {
		f := figure{
			Name: "memory per idle connection", Unit: "bytes", Reason: m.idles[t].reason,
			Params: []result.Param{param("transport", t), param("connections", m.idle)},
		}
		if f.Reason == "" {
			f.Value = spreadOf([]float64{m.idles[t].bytes})
		}
		m.add(f, idleGoals[t])
	}
}
