package calibrate

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// smallest is the payload of the cases that are about messages, not bytes.
const smallest = 10

// place is where the broker runs.
type place struct {
	name   string // result.PlaceIn or result.PlaceOwn
	broker endpoints
}

// measure runs the engine's cases, a launch of each in turn: those are the
// rounds. It adds them to r.
func (p *place) measure(ctx context.Context, o *Options, r *result.Report) error {
	cases, err := p.cases(o)
	if err != nil {
		return err
	}
	connected := func(t result.Target) {
		t.Embedded = true // in whatever process
		// The first connection over TLS tells more than the first one.
		if t.TLS != nil || r.Target.TLS == nil {
			r.Target = t
		}
	}
	phase := func(_ context.Context, phase load.Phase, l load.Launch) error {
		if phase == load.Connecting {
			o.tell("round %d of %d: %s", l.Number, o.Rounds, l.Case.ID)
		}
		return nil
	}
	measured, err := load.New(load.Config{
		RunID: o.RunID, Observer: load.Observer{Connected: connected, Phase: phase}, Embedded: p.name == result.PlaceIn,
	}).Run(ctx, cases)
	if err != nil {
		return err
	}
	for _, c := range measured {
		if !c.Delivery.Clean() {
			return fmt.Errorf("%s: the delivery account is not clean: %+v", c.ID, c.Delivery)
		}
		r.Cases = append(r.Cases, c)
	}
	return nil
}

// cases are the scenario's, then MQTT 5 with the smallest payload over the first
// transport.
func (p *place) cases(o *Options) ([]scenarios.Case, error) {
	list, err := p.add(nil, o)
	if err != nil {
		return nil, err
	}
	v5 := *o
	v5.Settings = slices.Concat(o.Settings, []Setting{
		set("payload", strconv.Itoa(smallest)), set("transport", string(list[0].Transport)), set("protocol", "5"),
	})
	return p.add(list, &v5)
}

// add adds the cases of a scenario, told apart by the place.
func (p *place) add(list []scenarios.Case, o *Options) ([]scenarios.Case, error) {
	sc, err := o.Scenario()
	if err != nil {
		return nil, err
	}
	cases, err := sc.Cases()
	for _, c := range scenarios.At(cases, p.broker) {
		c.Params = append([]result.Param{{Key: result.ParamWork, Value: result.WorkEngine}, {Key: result.ParamPlace, Value: p.name}}, c.Params...)
		c.ID = result.CaseID(c.Params)
		list = append(list, c)
	}
	return list, err
}
