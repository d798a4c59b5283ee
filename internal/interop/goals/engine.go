package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/mqttload/mqttload/internal/calibrate"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// workEcho is the kind of work that is not result.WorkEngine.
const workEcho = "echo"

// place is where the broker and the echo run, and the measurements made there. It
// observes the engine, which runs a launch of every case in turn: these are the
// rounds. It measures the echo before the first QoS of each payload.
type place struct {
	m     *measurement
	name  string
	ends  *ends
	peer  *peer // nil for this process
	cases []scenarios.Case
	err   error

	cells  []cell  // by index of the case
	echoes []*cell // in the order they were first run
	peerAt time.Duration
}

// cell has the measurements of one case, by round. own and other are the CPU time
// of this and of the other process per message, in ns.
type cell struct {
	c          *scenarios.Case
	work       string
	own, other []float64
	writes     []float64 // per message
	result     result.Case
}

// run runs the engine's cases of this place.
func (p *place) run(ctx context.Context) error {
	if err := p.plan(); err != nil {
		return err
	}
	return p.measure(ctx)
}

func (p *place) measure(ctx context.Context) error {
	for i := range p.cases {
		p.cells[i].c = &p.cases[i]
	}
	x := load.New(load.Config{RunID: p.m.RunID, Observer: load.Observer{Phase: p.phase, LaunchDone: p.launchDone}, Embedded: p.peer == nil})
	cases, err := x.Run(ctx, p.cases)
	if p.err != nil {
		err = p.err
	}
	if err != nil {
		return fmt.Errorf("calibrate the engine, broker %s: %w", p.name, err)
	}
	for i := range cases {
		if d := cases[i].Delivery; !sound(d) {
			return fmt.Errorf("calibrate %s: the delivery account is not clean: %+v", cases[i].ID, d)
		}
		p.cells[i].result = cases[i]
	}
	return nil
}

// sound reports whether every message sent was delivered once, in order, and
// unchanged. A rate that a busy machine did not keep is a figure, not an error.
func sound(d result.Delivery) bool {
	d.Scheduled, d.Unsent = d.Sent, 0
	return d.Clean()
}

// plan makes the cases: the scenario's, then MQTT 5 with the smallest payload
// over the first transport.
func (p *place) plan() error {
	if err := p.add(result.WorkEngine, nil); err != nil {
		return err
	}
	return p.add(result.WorkEngine, nil, set("payload", strconv.Itoa(small)), set("transport", string(p.m.transports[0])), set("protocol", "5"))
}

// add adds the cases of the scenario with the settings, told apart by the work
// and params.
func (p *place) add(work string, params []result.Param, settings ...calibrate.Setting) error {
	o := p.m.Options
	o.Settings = slices.Concat(o.Settings, settings)
	sc, err := o.Scenario()
	if err != nil {
		return err
	}
	cases, err := sc.Cases()
	for _, c := range scenarios.At(cases, p.ends.endpoints()) {
		c.Params = slices.Concat([]result.Param{param(result.ParamWork, work), param(result.ParamPlace, p.name)}, params, c.Params)
		c.ID = result.CaseID(c.Params)
		p.cases = append(p.cases, c)
		p.cells = append(p.cells, cell{work: work})
	}
	return err
}

func set(key, value string) calibrate.Setting {
	return calibrate.Setting{Place: "goals", Key: key, Values: []string{value}}
}

// otherCPU is the CPU time of the other process, or 0 if there is none.
func (p *place) otherCPU() (time.Duration, error) {
	if p.peer == nil {
		return 0, nil
	}
	a, err := p.peer.ask(request{Do: "usage"})
	return time.Duration(a.CPUNS), err
}

// phase measures the echo before the clients of a launch connect.
func (p *place) phase(_ context.Context, phase load.Phase, l load.Launch) error {
	if phase != load.Connecting {
		return nil
	}
	c, index, launch := l.Case, l.Index, l.Number
	p.m.tell("round %d of %d: %s", launch, p.m.Rounds, c.ID)
	switch work := p.cells[index].work; {
	case p.err != nil:
	case work == result.WorkEngine && c.QoS == p.cases[0].QoS && !p.repeats(index):
		p.err = p.echo(c)
	case work == workMany:
		p.err = p.m.bareClients(p, c)
	}
	at, err := p.otherCPU()
	p.peerAt = at
	p.fail(err)
	return p.err
}

// repeats reports whether an earlier case has the same transport and payload,
// at the same QoS.
func (p *place) repeats(index int) bool {
	c := p.cases[index]
	return slices.ContainsFunc(p.cases[:index], func(o scenarios.Case) bool {
		return o.Transport == c.Transport && o.Payload.Name == c.Payload.Name && o.QoS == c.QoS
	})
}

func (p *place) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// launchDone adds the measurements of a launch to its cell.
func (p *place) launchDone(index int, r *result.Case) {
	at, err := p.otherCPU()
	p.fail(err)
	k := &p.cells[index]
	last := &k.result
	messages := float64(r.Delivery.Delivered - last.Delivery.Delivered)
	if messages <= 0 {
		return // Run returns the error
	}
	everything := 0.0
	for _, it := range r.Iterations[len(last.Iterations):] {
		everything += float64(it.Received)
	}
	k.own = append(k.own, float64(r.CPU.UserNS+r.CPU.SystemNS-last.CPU.UserNS-last.CPU.SystemNS)/messages)
	// The broker's time is known from launch to launch, warm-up included.
	k.other = append(k.other, float64(at-p.peerAt)/everything)
	k.writes = append(k.writes, float64(r.IO.Writes-last.IO.Writes)/messages)
	k.result = *r
}

// echo measures the raw echo of packets like c's.
func (p *place) echo(c *scenarios.Case) error {
	conf, err := p.ends.clientTLS(c)
	if err != nil {
		return err
	}
	dial := func(ctx context.Context) (net.Conn, error) { return p.ends.dialEcho(ctx, c.Transport, conf) }
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := rawEcho(ctx, dial, p.m.Time, packetSize(c), p.otherCPU)
	if err != nil {
		return fmt.Errorf("raw echo over %s: %w", c.Transport, err)
	}
	p.echoOf(c).add(r)
	return nil
}

// echoOf returns the echo for c, and makes it the first time.
func (p *place) echoOf(c *scenarios.Case) *cell {
	for _, e := range p.echoes {
		if e.c.Transport == c.Transport && e.c.Payload.Name == c.Payload.Name {
			return e
		}
	}
	e := &cell{c: c, work: workEcho}
	p.echoes = append(p.echoes, e)
	return e
}

// add adds one round of echo. A packet that came back counts as a message.
func (k *cell) add(r echoRun) {
	n := r.bytes / int64(packetSize(k.c))
	k.own = append(k.own, float64(r.own)/float64(n))
	k.other = append(k.other, float64(r.other)/float64(n))
}

// find returns the cell of the work, or nil.
func (p *place) find(work string, t scenarios.Transport, payload int, qos byte, protocol string) *cell {
	for i := range p.cells {
		k := &p.cells[i]
		if k.work == work && k.c.Transport == t && k.c.Payload.Size == payload && k.c.QoS == qos && k.c.Protocol.String() == protocol {
			return k
		}
	}
	return nil
}

// findEcho returns the echo of packets with the payload, or nil.
func (p *place) findEcho(t scenarios.Transport, payload int) *cell {
	for _, e := range p.echoes {
		if e.c.Transport == t && e.c.Payload.Size == payload {
			return e
		}
	}
	return nil
}
