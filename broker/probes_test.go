package broker

import (
	"slices"
	"testing"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestProbes sends packets, valid and invalid by the tables of the standard, and checks
// whether the connection ends, and with which reason code.
func TestProbes(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	for _, set := range []struct {
		name   string
		v      packet.Version
		probes []mqtttest.Probe
	}{
		{"properties", packet.V5, mqtttest.PropertyProbes("client")},
		{"lengths", packet.V5, mqtttest.LengthProbes("client")},
		{"lengths", packet.V311, mqtttest.LengthProbes("client 3.1.1")},
		{"flags", packet.V5, mqtttest.FlagProbes(5)},
		{"flags", packet.V311, mqtttest.FlagProbes(4)},
		{"reason codes", packet.V5, mqtttest.ReasonProbes("client")},
		{"subscription options", packet.V5, mqtttest.OptionProbes(5)},
		{"subscription options", packet.V311, mqtttest.OptionProbes(4)},
		{"connect flags", packet.V5, mqtttest.ConnectFlagProbes(5)},
		{"connect flags", packet.V311, mqtttest.ConnectFlagProbes(4)},
		{"names", packet.V5, mqtttest.NameProbes(5)},
		{"names", packet.V311, mqtttest.NameProbes(4)},
	} {
		t.Run(set.name+" "+set.v.String(), func(t *testing.T) {
			bad := 0
			for _, p := range set.probes {
				if p.Codes != nil {
					bad++
				}
				if p.Codes != nil && set.v != packet.V5 {
					p.Codes = []byte{0}
				}
				probe(t, addr, set.v, p)
			}
			t.Logf("%d packets, %d of them bad", len(set.probes), bad)
		})
	}
}

// probe fails unless the broker treats p as the standard says.
func probe(t *testing.T, addr string, v packet.Version, p mqtttest.Probe) {
	t.Helper()
	c := join(t, addr)
	defer func() { _ = c.nc.Close() }()
	c.v = v
	if p.Packet[0] != byte(packet.CONNECT)<<4 {
		conn := clean(v, "probe")
		if v == packet.V5 {
			conn.Properties.SessionExpiry = ptr(uint32(1))
		}
		c.connect(conn)
	}
	c.write(append(p.Packet[:len(p.Packet):len(p.Packet)], packet.AppendPingreq(nil)...), nil)
	code, open := c.fate()
	switch {
	case p.Codes != nil:
		if open || !slices.Contains(p.Codes, code) {
			t.Errorf("%s: % x: open=%v, code 0x%02x, want % x", p.Name, p.Packet, open, code, p.Codes)
		}
	case open == (packet.Type(p.Packet[0]>>4) == packet.DISCONNECT) || code != 0:
		t.Errorf("%s: % x: open=%v, code 0x%02x", p.Name, p.Packet, open, code)
	}
}

// fate reads until PINGRESP or the end, and returns the reason code of the CONNACK or
// DISCONNECT.
func (c *peer) fate() (code byte, open bool) {
	for {
		f, err := c.next()
		if err != nil {
			return code, false
		}
		switch f.Type() {
		case packet.PINGRESP:
			return code, true
		case packet.CONNACK:
			code = f.Body[1]
		case packet.DISCONNECT:
			if len(f.Body) > 0 {
				code = f.Body[0]
			}
		}
	}
}
