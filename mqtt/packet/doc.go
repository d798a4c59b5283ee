// Package packet encodes and decodes the control packets of MQTT 3.1, 3.1.1 and
// 5.0. It is pure: functions on []byte, without I/O and without goroutines.
//
// To encode, fill in a packet such as [Connect] or [Subscribe] and append it to a
// buffer. Append does not allocate if the buffer has room. It leaves out what the
// version does not have, such as properties in 3.x, and returns an [*InvalidError]
// for a packet that must not be sent:
//
//	p := packet.Subscribe{PacketID: 1, Subscriptions: []packet.Subscription{{Filter: "a/#", QoS: 1}}}
//	out, err = p.Append(out, packet.V5)
//
// A PUBLISH that is sent many times is encoded once, as a [Template]; then each copy
// costs a memory copy and two bytes for the packet identifier.
//
// To decode, read bytes into a [Scanner], which returns each packet as a [Frame], and
// decode the frame. A decoder checks every rule that can be checked in one packet
// alone, and returns a [*MalformedError]. A decoded [Publish] points into the frame
// and is valid only as long; all other packets are copies. [PublishDecoder] is faster
// for many messages to the same topic.
//
// The package does not know which side may send a packet, or when: rules about sequences
// of packets, such as one CONNECT per connection, are the caller's. It trusts no length
// that a peer announces: a buffer grows with the bytes received.
package packet
