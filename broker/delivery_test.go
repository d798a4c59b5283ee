package broker

import (
	"fmt"
	"testing"

	"github.com/mqttload/mqttload/mqtt/packet"
)

var versions = []packet.Version{packet.V31, packet.V311, packet.V5}

// TestDelivery carries messages between all versions at all QoS: the QoS
// delivered is the smaller one of publication and subscription.
func TestDelivery(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	for _, from := range versions {
		for _, to := range versions {
			for pq := range byte(3) {
				for sq := range byte(3) {
					t.Run(fmt.Sprintf("from=%s/to=%s/publish=%d/subscribe=%d", from, to, pq, sq), func(t *testing.T) {
						s := connect(t, addr, clean(to, "s"))
						p := connect(t, addr, clean(from, "p"))
						if got := s.subscribe(sub("a/+", sq)).Codes[0]; got != packet.ReasonCode(sq) {
							t.Fatalf("granted %v", got)
						}
						for id := uint16(1); id <= 3; id++ {
							p.publish("a/b", fmt.Sprint(id), pq, id)
							finishPublish(p, pq, id)
							got := s.wantPublish("a/b", fmt.Sprint(id), min(pq, sq))
							if got.Dup || got.Retain {
								t.Fatalf("flags of %+v", got)
							}
							finishReceive(s, got.QoS, got.PacketID)
						}
						s.sync()
						p.sync()
						p.leave()
						s.leave()
					})
				}
			}
		}
	}
}

// TestDupOfMQTT31: a resent PUBREL or SUBSCRIBE of MQTT 3.1 has DUP set.
func TestDupOfMQTT31(t *testing.T) {
	addr := listen(t, startBroker(t, Config{}))
	c := connect(t, addr, clean(packet.V31, "c"))
	c.raw("8a 06 0001 0001 61 00")
	c.frame(packet.SUBACK)
	c.publish("a", "x", 2, 5)
	c.wantPublish("a", "x", 0)
	c.wantAck(packet.PUBREC, 5, 0)
	c.raw("6a 02 0005")
	c.wantAck(packet.PUBCOMP, 5, 0)
}

func finishPublish(p *peer, qos byte, id uint16) {
	p.t.Helper()
	switch qos {
	case 1:
		p.wantAck(packet.PUBACK, id, 0)
	case 2:
		p.wantAck(packet.PUBREC, id, 0)
		p.sendAck(packet.PUBREL, id)
		p.wantAck(packet.PUBCOMP, id, 0)
	}
}

func finishReceive(s *peer, qos byte, id uint16) {
	s.t.Helper()
	switch qos {
	case 1:
		s.sendAck(packet.PUBACK, id)
	case 2:
		s.sendAck(packet.PUBREC, id)
		s.wantAck(packet.PUBREL, id, 0)
		s.sendAck(packet.PUBCOMP, id)
	}
}
