package main

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/scenarios"
)

// idle is the memory of an idle connection in bytes, or why it is unknown.
type idle struct {
	bytes  float64
	reason string
}

// idleMemory measures the resident memory of a process that only holds connections
// to another one. That of this process has other things in it.
func (m *measurement) idleMemory(ctx context.Context, broker *peer) error {
	m.idles = map[scenarios.Transport]idle{}
	for _, t := range m.transports {
		m.tell("memory of %d idle connections over %s", m.idle, t)
		holder, err := startPeer(m.Peer)
		if err != nil {
			return err
		}
		a, err := holder.ask(request{Do: "idle", N: m.idle, Ends: &broker.ends, Over: t})
		holder.close()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			m.idles[t] = idle{reason: err.Error()}
			continue
		}
		m.idles[t] = idle{bytes: float64(a.Bytes) / float64(m.idle)}
	}
	return nil
}

// errNoRSS: only Linux tells a process its resident memory.
var errNoRSS = errors.New("the resident memory is not known on this system")

// idleBytes opens n connections and returns by how many bytes the resident memory
// of this process has grown.
func idleBytes(ctx context.Context, e *ends, t scenarios.Transport, n int) (int64, error) {
	routes := e.routes(&scenarios.Case{Transport: t})
	s := mqtt.NewSweeper()
	defer s.Stop()
	clients := make([]*mqtt.Client, n)
	defer func() {
		for _, c := range clients {
			if c != nil {
				c.Close()
			}
		}
	}()
	open := func(i int) (_ func(), err error) {
		clients[i], err = connectMQTT(ctx, routes, i, s)
		return nil, err
	}
	if _, err := open(0); err != nil { // the first one allocates for all
		return 0, err
	}
	before, err := resident()
	if err != nil {
		return 0, err
	}
	if _, _, err := storm(n-1, func(i int) (func(), error) { return open(i + 1) }); err != nil {
		return 0, err
	}
	after, err := resident()
	return (after - before) * int64(n) / int64(n-1), err
}

// resident is the resident memory of this process in bytes, after a garbage
// collection.
func resident() (int64, error) {
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, errNoRSS
	}
	// The second field is the number of resident pages: proc_pid_statm(5).
	fields := strings.Fields(string(b))
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
