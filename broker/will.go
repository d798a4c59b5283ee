package broker

import (
	"bytes"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// will is the message published when a client is lost. [MQTT5 3.1.2.5]
type will struct {
	topic string
	pub   packet.Publish
	delay uint32 // Will Delay Interval, seconds
}

func newWill(p *packet.Will) *will {
	if p == nil {
		return nil
	}
	w := &will{topic: string([]byte(p.Topic))}
	w.pub = packet.Publish{QoS: p.QoS, Retain: p.Retain, Payload: bytes.Clone(p.Payload)}
	props := p.Properties
	if props.WillDelay != nil {
		w.delay = *props.WillDelay
		props.WillDelay = nil
	}
	// What is allowed in Will Properties but the delay is allowed in PUBLISH.
	if raw, err := packet.AppendProperties(nil, packet.PUBLISH, &props); err == nil {
		w.pub.RawProperties = raw
	}
	return w
}

// publishWills delivers wills like messages of nobody: they never wait for
// room, because whoever calls must not be held up.
func (b *Broker) publishWills(wills []*will) {
	for _, w := range wills {
		r := router{b: b, pub: w.pub, props: w.pub.RawProperties}
		r.scan = scanProperties(r.props)
		r.publish(r.lookup(viewOf(w.topic)))
		r.flush()
	}
}
