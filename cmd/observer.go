package cmd

import (
	"context"

	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/result"
)

// observer makes the report grow as the engine goes on, and tells the user.
// The engine calls it from one goroutine.
type observer struct {
	report    *result.Report
	outs      outputs
	view      view
	done      []*result.Case // by index of the case
	connected bool
}

// asked are the calls that the engine makes.
func (o *observer) asked() load.Observer {
	return load.Observer{Connected: o.Connected, Phase: o.Phase, Iteration: o.view.iteration, Tick: o.view.tick, LaunchDone: o.LaunchDone}
}

// Connected takes the target as its CONNACK described it. A later call adds
// what the first connection could not know, such as what TLS negotiated.
func (o *observer) Connected(t result.Target) {
	if o.connected {
		o.report.Target.TLS = t.TLS
		return
	}
	o.connected = true
	o.report.Target = t
}

// Phase shows what begins.
func (o *observer) Phase(_ context.Context, p load.Phase, l load.Launch) error {
	switch p {
	case load.Connecting:
		o.view.launch(l)
	case load.Publishing:
		o.view.ready(l)
	}
	return nil
}

// LaunchDone takes the case's result so far into the report and its files.
func (o *observer) LaunchDone(index int, r *result.Case) {
	o.done[index] = r
	o.report.Cases = o.results()
	o.outs.save(o.report)
	o.view.done(index, r)
}

func (o *observer) results() []result.Case {
	var list []result.Case
	for _, c := range o.done {
		if c != nil {
			list = append(list, *c)
		}
	}
	return list
}
