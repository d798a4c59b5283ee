package cmd

import (
	"context"

	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// observer makes the report grow as the engine goes on, and tells the user.
// The engine calls it from one goroutine.
type observer struct {
	report    *result.Report
	outs      outputs
	view      *progress
	done      []*result.Case // by index of the case
	connected bool
}

// asked are the calls that the engine makes.
func (o *observer) asked() load.Observer {
	return load.Observer{Connected: o.Connected, Phase: o.Phase, Iteration: o.Iteration, LaunchDone: o.LaunchDone}
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
		o.view.launch(l.Case, l.Index, l.Number)
	case load.Publishing:
		o.view.ready(l.Case, l.Connections)
	}
	return nil
}

// Iteration shows what was measured.
func (o *observer) Iteration(c *scenarios.Case, it result.Iteration) { o.view.iteration(c, it) }

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
