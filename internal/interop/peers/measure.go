package main

import (
	"fmt"
	"time"
)

// sample is one measurement of one client at one work.
type sample struct {
	Units       int     `json:"units"` // messages or connections
	CPUNS       float64 `json:"cpu_ns_per_unit"`
	Writes      float64 `json:"writes_per_unit"`
	Reads       float64 `json:"reads_per_unit"`
	RSSBytes    float64 `json:"rss_bytes_per_unit,omitempty"`
	UnitsPerSec float64 `json:"units_per_second"`
}

// measure runs one child through warm-up and measurement. A difference between the
// counts of client and server is an error.
func (r *runner) measure(w *work, s *server, client string) (got sample, version string, err error) {
	c := w.conf
	c.client, c.addr, c.ca = client, s.addr, s.ca
	p, err := start(1, r.command(client, c.args())...)
	if err != nil {
		return sample{}, "", err
	}
	defer p.stop()
	if err := p.ask("", "ready", &version); err != nil {
		return sample{}, "", err
	}
	if s.want, err = s.count(); err != nil {
		return sample{}, "", err
	}
	n, err := r.warmUp(w, s, p, client)
	if err != nil {
		return sample{}, "", err
	}
	if got, err = turn(w, s, p, client, n); err != nil {
		return sample{}, "", err
	}
	p.stop() // messages that it still sends now are too many
	return got, version, s.await()
}

// warmUp determines how many repetitions take about the time of a measurement.
func (r *runner) warmUp(w *work, s *server, p *process, client string) (n int, err error) {
	if w.conf.work == "connect" {
		_, err := turn(w, s, p, client, max(w.repeat/20, 1))
		return w.repeat, err
	}
	least := max(r.least/w.units, 1)
	n = least
	for _, share := range []time.Duration{4, 1} {
		began := time.Now()
		if _, err := turn(w, s, p, client, n); err != nil {
			return 0, fmt.Errorf("warm-up: %w", err)
		}
		speed := float64(n) / time.Since(began).Seconds()
		n = min(max(int((r.span/share).Seconds()*speed), least), 20_000_000/w.units)
	}
	return n, nil
}

// turn makes a child do n repetitions.
func turn(w *work, s *server, p *process, client string, n int) (sample, error) {
	before, err := p.usage()
	if err != nil {
		return sample{}, err
	}
	began := time.Now()
	if err := p.ask(fmt.Sprint("run ", n), "done"); err != nil {
		return sample{}, err
	}
	want := w.expects(client, n)
	s.want.add(want.counts)
	if err := s.await(); err != nil {
		return sample{}, err
	}
	elapsed := time.Since(began)
	after, err := p.usage()
	if err != nil {
		return sample{}, err
	}
	if got := after.received - before.received; got != want.received {
		return sample{}, fmt.Errorf("the client received %d messages of %d", got, want.received)
	}
	units := float64(n * w.unitsOf(client))
	return sample{
		Units: n * w.unitsOf(client), CPUNS: float64(after.cpu-before.cpu) / units,
		Writes: float64(after.writes-before.writes) / units, Reads: float64(after.reads-before.reads) / units,
		RSSBytes: float64(after.rss-before.rss) / units, UnitsPerSec: units / elapsed.Seconds(),
	}, nil
}

// await waits until the server has counted exactly what is expected: some messages
// may still be in flight. More is as wrong as fewer.
func (s *server) await() error {
	for deadline := time.Now().Add(s.patience); ; time.Sleep(time.Millisecond) {
		now, err := s.count()
		if err != nil {
			return err
		}
		if s.want.connections < 0 {
			now.connections = s.want.connections
		}
		if now == s.want {
			return nil
		}
		if now.in > s.want.in || now.out > s.want.out || now.connections > s.want.connections || time.Now().After(deadline) {
			return fmt.Errorf("the server counted %+v, expected %+v", now, s.want)
		}
	}
}

// expected are the counts of server and client after n repetitions.
type expected struct {
	counts
	received int64
}

func (w *work) expects(client string, n int) (e expected) {
	units := int64(n * w.unitsOf(client))
	if client == engine && w.conf.work != "burst" {
		e.connections = anyNumber // it makes them for every run
	}
	switch w.conf.work {
	case "publish":
		e.in = units
	case "receive":
		e.out, e.received = units, units
		if client == engine {
			e.in = int64(n)
		}
	case "pair":
		e.in, e.out, e.received = units, units, units
	case "burst":
		e.in, e.out, e.received, e.connections = units, units, units, int64(n)
	case "connect":
		e.connections = units
	}
	return e
}
