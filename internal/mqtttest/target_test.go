package mqtttest_test

import (
	"encoding/binary"
	"net"
	"testing"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// target serves one end of a pipe with t and returns the other, connected.
func target(t *testing.T, tg *mqtttest.Target) *mqtttest.Peer {
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- tg.ServeConn(far) }()
	p := mqtttest.NewPeer(t, near, packet.V311)
	t.Cleanup(func() {
		p.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	p.Send("10 0c 0004 4d515454 04 02 0000 0000")
	p.Expect("20 02 00 00")
	return p
}

func TestSink(t *testing.T) {
	var tg mqtttest.Target
	p := target(t, &tg)
	p.Send("32 06 0001 61 0001 78  34 06 0001 61 0002 78  30 04 0001 61 78")
	p.Send("c0 00")
	p.Expect("d0 00")
	if n := tg.Messages(); n != 3 {
		t.Errorf("%d messages, want 3", n)
	}
}

func TestAckingSink(t *testing.T) {
	tg := mqtttest.Target{Kind: mqtttest.AckingSink}
	p := target(t, &tg)
	p.Send("32 06 0001 61 0001 78  34 06 0001 61 0002 78  30 04 0001 61 78")
	p.Expect("40 02 0001")
	p.Expect("50 02 0002")
	p.Send("62 02 0002")
	p.Expect("70 02 0002")
	if n := tg.Messages(); n != 3 {
		t.Errorf("%d messages, want 3", n)
	}
}

func TestFlood(t *testing.T) {
	const n = 5000
	for qos := range byte(3) {
		tg := mqtttest.Target{Kind: mqtttest.Flood}
		p := target(t, &tg)
		s := packet.Subscribe{PacketID: 7, Subscriptions: []packet.Subscription{{Filter: mqtttest.FloodTopic(10, n), QoS: qos}}}
		b, err := s.Append(nil, packet.V311)
		if err != nil {
			t.Fatal(err)
		}
		p.SendBytes(b)
		p.ExpectType(packet.SUBACK)
		for i := range n {
			var m packet.Publish
			if err := m.Decode(p.ExpectType(packet.PUBLISH), packet.V311); err != nil {
				t.Fatal(err)
			}
			if got := binary.BigEndian.Uint64(m.Payload); got != uint64(i) || len(m.Payload) != 10 || m.QoS != qos {
				t.Fatalf("message %d: number %d, %d bytes, QoS %d", i, got, len(m.Payload), m.QoS)
			}
			if qos > 0 && (i+1)%1000 == 0 {
				settle(t, p, qos, i+1-1000)
			}
		}
		if got := tg.Messages(); got != n {
			t.Errorf("QoS %d: %d messages, want %d", qos, got, n)
		}
	}
}

// settle acknowledges the thousand messages from first on, all in flight.
func settle(t *testing.T, p *mqtttest.Peer, qos byte, first int) {
	t.Helper()
	var out []byte
	for i := range 1000 {
		id := uint16(first + i + 1)
		if qos == 1 {
			out = packet.AppendAck(out, packet.PUBACK, id)
			continue
		}
		out = packet.AppendAck(out, packet.PUBREC, id)
	}
	p.SendBytes(out)
	if qos == 1 {
		return
	}
	out = out[:0]
	for i := range 1000 {
		p.ExpectType(packet.PUBREL)
		out = packet.AppendAck(out, packet.PUBCOMP, uint16(first+i+1))
	}
	p.SendBytes(out)
}
