package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
)

// fanOut is how many subscribers the engine has in the work receive. The engine
// accepts only messages that it has sent itself, so the cost of a delivery includes
// 1/fanOut of that of a publish.
const fanOut = 20

// engineWorker does the work of the load engine. It connects for every run, and does
// not count that.
type engineWorker struct {
	c    scenarios.Case
	used usage
}

func newEngineWorker(c *conf) (child, error) {
	host, port, err := net.SplitHostPort(c.addr)
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(port)
	w := &engineWorker{c: scenarios.Case{
		ID: c.work, QoS: c.qos, Protocol: packet.V311, Transport: scenarios.TCP,
		Payload: scenarios.Payload{Size: c.payload},
		Target:  scenarios.Target{URLs: []scenarios.URL{{Scheme: "mqtt", Host: host, Port: n}}, ConnectTimeout: patience},
		Clients: scenarios.Clients{Topic: "t/%r/%i", ClientID: "c%r%i", CleanStart: true, KeepAlive: keepAlive * time.Second},
		Load: scenarios.Load{
			Shape: scenarios.Pairs, Pairs: 1, Topics: 1, Publishers: 1, Subscribers: 1, TopicsPerPublisher: 1, TopicsPerSubscriber: 1,
			Inflight: c.window, Launches: 1, Iterations: 1, MinTime: time.Second, Drain: 5 * time.Second, OperationsPerMessage: 1,
		},
	}}
	switch c.work {
	case "pair":
	case "burst":
		w.c.Load.Shape, w.c.Load.FreshIterations = scenarios.Loopback, true
	case "publish":
		w.c.Load.Shape, w.c.Load.Subscribers = scenarios.Publish, 0
	case "receive":
		w.c.Load.Shape, w.c.Load.Subscribers = scenarios.FanOut, fanOut
	default:
		return nil, fmt.Errorf("the engine does not do %s", c.work)
	}
	return w, nil
}

func (w *engineWorker) run(n int) error {
	w.c.Load.Messages = int64(n)
	sent := int64(n)
	if w.c.Load.FreshIterations {
		w.c.Load.Messages, w.c.Load.Iterations, sent = burstSize, n, int64(n)*burstSize
	}
	want := sent * int64(w.c.Load.Subscribers)
	results, err := load.New(load.Config{RunID: "peers"}).Run(context.Background(), []scenarios.Case{w.c})
	if err != nil {
		return err
	}
	r := &results[0]
	if d := r.Delivery; d.Sent != sent || w.c.QoS > 0 && d.Acked != sent || d.Delivered != want || d.Received != want || d.CountsOnly {
		return fmt.Errorf("the engine's account of %d messages and %d deliveries is %+v", sent, want, d)
	}
	w.used.cpu += time.Duration(r.CPU.UserNS + r.CPU.SystemNS)
	w.used.writes += r.IO.Writes
	w.used.reads += r.IO.Reads
	w.used.received += want
	return nil
}

func (w *engineWorker) usage() usage { return w.used }

func (w *engineWorker) end() {}
