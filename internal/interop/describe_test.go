package interop

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// told is a packet, or a part of one, field by field with the names that
// mqtt-packet gives them: see node/oracle.js.
type told map[string]any

var commands = [...]string{"", "connect", "connack", "publish", "puback", "pubrec", "pubrel", "pubcomp", "subscribe", "suback",
	"unsubscribe", "unsuback", "pingreq", "pingresp", "disconnect", "auth"}

// describe lists the fields of c as a packet of version v.
func describe(c control, v packet.Version) told {
	var m told
	var props *packet.Properties
	switch p := c.(type) {
	case *connect:
		m, props = describeConnect(&p.Connect), &p.Properties
	case *packet.Connack:
		m, props = told{"cmd": "connack", "sessionPresent": p.SessionPresent, "returnCode": p.Code}, &p.Properties
		if v == packet.V5 {
			delete(m, "returnCode")
			m["reasonCode"] = p.Code
		}
	case *packet.Publish:
		m, props = describePublish(p)
	case *packet.Ack:
		m, props = told{"cmd": commands[p.Type], "messageId": p.PacketID, "reasonCode": p.Code}, &p.Properties
	case *packet.Subscribe:
		m, props = told{"cmd": "subscribe", "messageId": p.PacketID, "subscriptions": describeFilters(p, v)}, &p.Properties
	case *packet.Suback:
		m, props = told{"cmd": "suback", "messageId": p.PacketID, "granted": numbers(p.Codes)}, &p.Properties
	case *packet.Unsubscribe:
		m, props = told{"cmd": "unsubscribe", "messageId": p.PacketID, "unsubscriptions": p.Filters}, &p.Properties
	case *packet.Unsuback:
		m, props = told{"cmd": "unsuback", "messageId": p.PacketID}, &p.Properties
		if v == packet.V5 {
			m["granted"] = numbers(p.Codes)
		}
	case *packet.Disconnect:
		m, props = told{"cmd": "disconnect", "reasonCode": p.Code}, &p.Properties
	case *packet.Auth:
		m, props = told{"cmd": "auth", "reasonCode": p.Code}, &p.Properties
	case *ping:
		return told{"cmd": commands[p.t]}
	}
	if v != packet.V5 {
		delete(m, "reasonCode")
	} else if !props.IsZero() {
		m["properties"] = describeProperties(props)
	}
	return m
}

func describeConnect(p *packet.Connect) told {
	m := told{"cmd": "connect", "protocolId": "MQTT", "protocolVersion": p.Version, "clean": p.CleanStart,
		"keepalive": p.KeepAlive, "clientId": p.ClientID}
	if p.Version == packet.V31 {
		m["protocolId"] = "MQIsdp"
	}
	if p.HasUsername {
		m["username"] = p.Username
	}
	if p.HasPassword {
		m["password"] = hex.EncodeToString(p.Password)
	}
	if w := p.Will; w != nil {
		will := told{"retain": w.Retain, "qos": w.QoS, "topic": w.Topic, "payload": hex.EncodeToString(w.Payload)}
		if p.Version == packet.V5 && !w.Properties.IsZero() {
			will["properties"] = describeProperties(&w.Properties)
		}
		m["will"] = will
	}
	return m
}

func describePublish(p *packet.Publish) (told, *packet.Properties) {
	m := told{"cmd": "publish", "qos": p.QoS, "dup": p.Dup, "retain": p.Retain, "topic": string(p.Topic),
		"payload": hex.EncodeToString(p.Payload)}
	if p.QoS > 0 {
		m["messageId"] = p.PacketID
	}
	props := &packet.Properties{}
	if err := p.ParseProperties(props); err != nil {
		m["properties"] = err.Error()
	}
	return m, props
}

func describeFilters(p *packet.Subscribe, v packet.Version) (list []told) {
	for _, s := range p.Subscriptions {
		m := told{"topic": s.Filter, "qos": s.QoS}
		if v == packet.V5 {
			m["nl"], m["rap"], m["rh"] = s.NoLocal, s.RetainAsPublished, s.RetainHandling
		}
		list = append(list, m)
	}
	return list
}

// numbers lists codes as numbers: as a []byte they would become text.
func numbers(codes []packet.ReasonCode) (list []int) {
	for _, c := range codes {
		list = append(list, int(c))
	}
	return list
}

// put sets m[name] if the property is present.
func put[T any](m told, name string, value *T) {
	if value != nil {
		m[name] = *value
	}
}

// truth is put for a byte that mqtt-packet reads as a boolean.
func truth(m told, name string, value *byte) {
	if value != nil {
		m[name] = *value != 0
	}
}

func describeProperties(p *packet.Properties) told {
	m := told{}
	truth(m, "payloadFormatIndicator", p.PayloadFormat)
	put(m, "messageExpiryInterval", p.MessageExpiry)
	put(m, "contentType", p.ContentType)
	put(m, "responseTopic", p.ResponseTopic)
	put(m, "sessionExpiryInterval", p.SessionExpiry)
	put(m, "assignedClientIdentifier", p.AssignedClientID)
	put(m, "serverKeepAlive", p.ServerKeepAlive)
	put(m, "authenticationMethod", p.AuthMethod)
	truth(m, "requestProblemInformation", p.RequestProblemInfo)
	put(m, "willDelayInterval", p.WillDelay)
	truth(m, "requestResponseInformation", p.RequestResponseInfo)
	put(m, "responseInformation", p.ResponseInfo)
	put(m, "serverReference", p.ServerReference)
	put(m, "reasonString", p.ReasonString)
	put(m, "receiveMaximum", p.ReceiveMaximum)
	put(m, "topicAliasMaximum", p.TopicAliasMaximum)
	put(m, "topicAlias", p.TopicAlias)
	put(m, "maximumQoS", p.MaximumQoS)
	truth(m, "retainAvailable", p.RetainAvailable)
	put(m, "maximumPacketSize", p.MaximumPacketSize)
	truth(m, "wildcardSubscriptionAvailable", p.WildcardSubAvailable)
	truth(m, "subscriptionIdentifiersAvailable", p.SubIDAvailable)
	truth(m, "sharedSubscriptionAvailable", p.SharedSubAvailable)
	if p.CorrelationData != nil {
		m["correlationData"] = hex.EncodeToString(p.CorrelationData)
	}
	if p.AuthData != nil {
		m["authenticationData"] = hex.EncodeToString(p.AuthData)
	}
	switch ids := p.SubscriptionIDs; len(ids) {
	case 0:
	case 1:
		m["subscriptionIdentifier"] = ids[0]
	default:
		m["subscriptionIdentifier"] = ids
	}
	for _, u := range p.UserProperties {
		list, _ := m["userProperties"].([][2]string)
		m["userProperties"] = append(list, [2]string{u.Name, u.Value})
	}
	return m
}

// text formats m so that equal packets have equal texts.
func (m told) text() string {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(b)
}

// retell converts the output of node to the format of text.
func retell(raw json.RawMessage) (string, error) {
	var m told
	if err := json.Unmarshal(raw, &m); err != nil {
		return "", err
	}
	return m.text(), nil
}
