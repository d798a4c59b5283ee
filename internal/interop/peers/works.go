package main

import "fmt"

// engine is mqttload's load engine, with delivery ledger and latency on.
const engine = "mqttload, engine"

const (
	ourClient     = "mqttload"
	pahoUnordered = "paho.mqtt.golang, unordered"
)

// work is one task for all clients.
type work struct {
	id      string
	unit    string // the figures are per this
	server  string
	tls     bool
	conf    conf
	units   int // messages or connections per repetition
	repeat  int // repetitions; 0 means as many as fill the time
	clients []string
	goals   []goal
}

// unitsOf is how many messages or connections one repetition of a client has.
func (w *work) unitsOf(client string) int {
	if client == engine && w.conf.work == "receive" {
		return fanOut
	}
	return w.units
}

// serverOf is the kind of the other end for a client. The engine accepts only
// messages that it has sent itself.
func (w *work) serverOf(client string) string {
	if client == engine && w.conf.work == "receive" {
		return "broker"
	}
	return w.server
}

// goal compares mqttload with a peer, or its own figure with a bound.
type goal struct {
	ours string
	// peers are the clients of which the best counts; nil means all.
	peers     []string
	must, aim float64 // how many times less CPU time
	// rss bounds the memory of a connection instead, in KiB.
	rss float64
}

var (
	goClients  = []string{ourClient, "paho.mqtt.golang", "paho.golang", "gomqtt", "gomqtt, no delay", "at-wat/mqtt-go"}
	allClients = append(goClients[:len(goClients):len(goClients)], "libmosquitto", "mqtt.js")
	withEngine = append([]string{engine}, allClients...)
	receivers  = append([]string{pahoUnordered}, withEngine...) // where something is received
	paho       = []string{"paho.mqtt.golang", pahoUnordered}
	bothGomqtt = []string{"gomqtt", "gomqtt, no delay"}
)

func allWorks(connections int) []work {
	var works []work
	add := func(w work) { works = append(works, w) }
	for qos, g := range []goal{{must: 20, aim: 40}, {must: 25, aim: 60}, {must: 50, aim: 150}} {
		g.ours, g.peers = ourClient, paho
		add(work{
			id: fmt.Sprintf("work=burst/qos=%d/payload=10", qos), unit: "message", server: "broker", units: burstSize,
			conf: conf{work: "burst", qos: byte(qos), payload: 10, window: burstSize}, clients: receivers, goals: []goal{g},
		})
	}
	for _, payload := range []int{10, 1024, 8192} {
		w := work{
			id: fmt.Sprintf("work=publish/qos=0/payload=%d", payload), unit: "message", server: "sink", units: 1,
			conf: conf{work: "publish", payload: payload, window: 1000}, clients: withEngine,
		}
		if payload == 10 {
			w.goals = []goal{{ours: ourClient, peers: bothGomqtt, must: 4, aim: 10}}
		}
		add(w)
	}
	for _, payload := range []int{10, 1024} {
		w := work{
			id: fmt.Sprintf("work=receive/qos=0/payload=%d", payload), unit: "message", server: "flood", units: 1,
			conf: conf{work: "receive", payload: payload, window: 1000}, clients: receivers,
		}
		if payload == 10 {
			w.goals = []goal{{ours: engine, peers: paho, must: 52, aim: 100}, {ours: ourClient, peers: paho, must: 52, aim: 100}}
		}
		add(w)
	}
	for _, g := range []struct {
		window, qos int
		must, aim   float64
	}{{100, 1, 40, 80}, {100, 2, 50, 100}, {1000, 1, 100, 200}, {1000, 2, 120, 240}} {
		add(work{
			id: fmt.Sprintf("work=publish/qos=%d/payload=10/window=%d", g.qos, g.window), unit: "message", server: "ack", units: 1,
			conf: conf{work: "publish", qos: byte(g.qos), payload: 10, window: g.window}, clients: append(withEngine[:len(withEngine):len(withEngine)], rawBytes),
			goals: []goal{{ours: ourClient, peers: paho, must: g.must, aim: g.aim}},
		})
	}
	for qos := range 2 {
		add(work{
			id: fmt.Sprintf("work=pair/qos=%d/payload=1024/window=100", qos), unit: "message", server: "broker", units: 1,
			conf: conf{work: "pair", qos: byte(qos), payload: 1024, window: 100}, clients: receivers,
			goals: []goal{{ours: ourClient, peers: bothGomqtt, must: 3, aim: 5}, {ours: engine, peers: bothGomqtt, must: 3, aim: 5}},
		})
	}
	for i, transport := range []string{"tcp", "tls"} {
		add(work{
			id: "work=connect/transport=" + transport, unit: "connection", server: "broker", tls: i == 1, units: 1, repeat: connections,
			conf: conf{work: "connect", window: 1000}, clients: allClients,
			goals: []goal{{ours: ourClient, rss: []float64{8, 28}[i]}},
		})
	}
	return works
}
