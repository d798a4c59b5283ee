package load_test

import (
	"testing"
	"time"

	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

// TestResumedHandshakes: the second launch takes up the sessions of the first,
// and its handshakes are counted apart.
func TestResumedHandshakes(t *testing.T) {
	bundle, err := tlsconf.ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := testCase(0, 16, packet.V311)
	c.Transport, c.TLS = scenarios.TLS, bundle.ClientOptions()
	c.TLS.Resume = true
	c.Load.Launches, c.Load.Warmup, c.Load.Iterations, c.Load.Messages = 2, 0, 1, 100
	cases := []scenarios.Case{c}
	serve(t, cases, bundle.ServerConfig())
	results, err := load.New(load.Config{RunID: "r1"}).Run(t.Context(), cases)
	if err != nil {
		t.Fatal(err)
	}
	// The first launch's second client may already have a session to take up.
	l := results[0].Latency
	if l.TLSHandshake == nil || l.TLSResumed == nil || l.TLSHandshake.Count+l.TLSResumed.Count != 4 || l.TLSResumed.Count < 2 {
		t.Errorf("full %+v, resumed %+v: want 4, 2 of them resumed", l.TLSHandshake, l.TLSResumed)
	}
}
