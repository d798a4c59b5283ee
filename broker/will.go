package broker

import (
	"bytes"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// will is the message published when a client is lost. [MQTT5 3.1.2.5]
type will struct {
	topic string
	pub   packet.Publish
	from  *session // of the client, for No Local
	delay uint32   // Will Delay Interval, seconds
}

func newWill(p *packet.Will, from *session) *will {
	if p == nil {
		return nil
	}
	w := &will{topic: string([]byte(p.Topic)), from: from}
	// [MQTT-3.1.2-9] [MQTT-3.1.2-14] [MQTT-3.1.2-15], [MQTT-3.1.2-16] and
	// [MQTT-3.1.2-17] of 3.1.1
	w.pub = packet.Publish{QoS: p.QoS, Retain: p.Retain, Payload: bytes.Clone(p.Payload)}
	props := p.Properties
	if props.WillDelay != nil {
		w.delay = *props.WillDelay
		props.WillDelay = nil
	}
	// All Will Properties but the delay are allowed in PUBLISH.
	if raw, err := packet.AppendProperties(nil, packet.PUBLISH, &props); err == nil {
		w.pub.RawProperties = raw
	}
	return w
}

// publishWills delivers wills like messages of their clients, but never waits for
// room, so that it does not block its caller. No Local applies to a client's own
// will, too. [MQTT-3.8.3-3]
func (b *Broker) publishWills(wills []*will) {
	for _, w := range wills {
		r := router{b: b, self: w.from, pub: w.pub, props: w.pub.RawProperties}
		r.scan = scanProperties(r.props)
		r.publish(r.lookup(viewOf(w.topic)))
		r.flush()
	}
}
