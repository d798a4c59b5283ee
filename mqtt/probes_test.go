package mqtt

import (
	"bytes"
	"context"
	"net"
	"slices"
	"testing"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestProbes sends a client packets that the tables of the standard allow a server to
// send, and packets that they do not. It checks whether the connection ends, and the
// reason code of the client's DISCONNECT.
func TestProbes(t *testing.T) {
	for _, set := range []struct {
		name   string
		v      packet.Version
		probes []mqtttest.Probe
	}{
		{"properties", packet.V5, mqtttest.PropertyProbes("server")},
		{"lengths", packet.V5, mqtttest.LengthProbes("server")},
		{"lengths", packet.V311, mqtttest.LengthProbes("server 3.1.1")},
		{"flags", packet.V5, mqtttest.FlagProbes(5)},
		{"flags", packet.V311, mqtttest.FlagProbes(4)},
		{"reason codes", packet.V5, mqtttest.ReasonProbes("server")},
		{"topic names", packet.V5, publications(mqtttest.NameProbes(5))},
		{"topic names", packet.V311, publications(mqtttest.NameProbes(4))},
	} {
		t.Run(set.name+" "+set.v.String(), func(t *testing.T) {
			bad := 0
			for _, p := range set.probes {
				if p.Codes != nil {
					bad++
				}
				probe(t, set.v, p)
			}
			t.Logf("%d packets, %d of them bad", len(set.probes), bad)
		})
	}
}

// probe sends p to a client and checks that it does what the standard says.
func probe(t *testing.T, v packet.Version, p mqtttest.Probe) {
	t.Helper()
	typ := packet.Type(p.Packet[0] >> 4)
	peer, nc := mqtttest.Pipe(t, v)
	result := make(chan verdict)
	go func() { result <- serveProbe(t, peer, v, typ, p.Packet) }()
	aliases := uint16(2)
	c, err := Connect(t.Context(), Config{
		Dial: func(context.Context) (net.Conn, error) { return nc, nil }, Version: v, CleanStart: true,
		Properties: packet.Properties{TopicAliasMaximum: &aliases},
	})
	if err == nil {
		// An answer needs a request.
		switch typ {
		case packet.SUBACK:
			_, _ = c.Subscribe(t.Context(), []packet.Subscription{{Filter: "a"}}, packet.Properties{})
		case packet.UNSUBACK:
			_, _ = c.Unsubscribe(t.Context(), []string{"a"})
		}
	}
	got := <-result
	if c != nil {
		c.Close()
	}
	switch {
	case p.Codes == nil && typ != packet.DISCONNECT:
		if !got.alive {
			t.Errorf("%s: % x: %v, closed with 0x%02x", p.Name, p.Packet, err, got.code)
		}
	case got.alive, p.Codes == nil && got.code != 0,
		// CONNACK: a client that was not accepted need not send a reason.
		p.Codes != nil && v == packet.V5 && got.code != 0 && !slices.Contains(p.Codes, got.code),
		p.Codes != nil && v == packet.V5 && got.code == 0 && typ != packet.CONNACK:
		t.Errorf("%s: % x: alive=%v, closed with 0x%02x, want % x", p.Name, p.Packet, got.alive, got.code, p.Codes)
	}
}

// publications are the probes of PUBLISH, which a server may send too.
func publications(probes []mqtttest.Probe) []mqtttest.Probe {
	return slices.DeleteFunc(probes, func(p mqtttest.Probe) bool { return p.Packet[0] != byte(packet.PUBLISH)<<4 })
}

type verdict struct {
	alive bool // it answers a message after the probe
	code  byte // of its DISCONNECT
}

// serveProbe is a server that sends CONNACK, waits for a request if the packet answers
// one, sends the packet, and then a QoS 1 message. A probe of CONNACK replaces the first.
func serveProbe(t *testing.T, peer *mqtttest.Peer, v packet.Version, typ packet.Type, probe []byte) (got verdict) {
	hello, alive := connack311, "32 07 0001 61 ffff 7878"
	if v == packet.V5 {
		hello, alive = connack5, "32 08 0001 61 ffff 00 7878"
	}
	peer.ExpectType(packet.CONNECT)
	out := mqtttest.Hex(t, hello)
	if typ == packet.CONNACK {
		out = nil
	}
	if typ == packet.SUBACK || typ == packet.UNSUBACK {
		peer.SendBytes(out)
		out = nil
		peer.ExpectType(typ - 1)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		// The write fails if the client has closed, as it should for some probes.
		peer.TrySend(slices.Concat(out, probe, mqtttest.Hex(t, alive)))
	}()
	defer func() {
		peer.Close()
		<-written
	}()
	for {
		f, err := peer.TryNext()
		if err != nil {
			return got
		}
		switch {
		case f.Type() == packet.DISCONNECT && len(f.Body) > 0:
			got.code = f.Body[0]
		case f.Type() == packet.PUBACK && bytes.HasPrefix(f.Body, []byte{0xff, 0xff}):
			got.alive = true
			return got
		}
	}
}
