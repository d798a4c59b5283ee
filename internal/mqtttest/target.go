package mqtttest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// A Kind is the behaviour of a [Target].
type Kind uint8

const (
	// Sink reads every PUBLISH and acknowledges none.
	Sink Kind = iota
	// AckingSink acknowledges every PUBLISH, all those of a read in one write.
	AckingSink
	// Flood sends to a client that subscribes to a topic of [FloodTopic]: as fast
	// as the connection allows at QoS 0, and at QoS 1 and 2 with up to floodWindow
	// messages in flight.
	Flood
)

// floodWindow is how many messages a Flood has in flight at QoS 1 and 2.
const floodWindow = 1000

// FloodTopic is the topic by which a subscriber asks a [Flood] for n messages
// of so many bytes. A payload of 8 bytes or more starts with the number of the
// message, from 0, in 8 bytes, big endian.
func FloodTopic(payload, n int) string { return fmt.Sprintf("flood/%d/%d", payload, n) }

// Target is the other end of a measurement: the cheapest replacement of a broker.
// It accepts every CONNECT, grants every SUBSCRIBE, answers PINGREQ, and allocates
// nothing per message.
type Target struct {
	Kind     Kind
	messages atomic.Int64
}

// Messages is how many PUBLISH packets have been read so far, or those sent by
// a [Flood], on all connections.
func (t *Target) Messages() int64 { return t.messages.Load() }

// Serve serves connections, each in a goroutine, until l fails or is closed.
func (t *Target) Serve(l net.Listener) error {
	for {
		nc, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() { _ = t.ServeConn(nc) }()
	}
}

// ServeConn serves one client until its connection ends, and closes it. The error
// is that of a packet that it could not decode; the end of the connection is not
// an error.
func (t *Target) ServeConn(nc net.Conn) error {
	defer func() { _ = nc.Close() }()
	c := targetConn{Target: t, scan: packet.NewScanner(make([]byte, targetBuffer), 0)}
	for {
		n, err := nc.Read(c.scan.Space())
		if err != nil {
			return nil
		}
		c.scan.Advance(n)
		if err := c.batch(); err != nil {
			return err
		}
		for {
			if len(c.out) > 0 {
				if _, err := nc.Write(c.out); err != nil {
					return nil
				}
				c.out = c.out[:0]
			}
			if !c.flood() {
				break
			}
		}
	}
}

// targetBuffer is the size of a read, and about that of a write, in bytes.
const targetBuffer = 64 << 10

// targetConn is one connection of a Target.
type targetConn struct {
	*Target
	scan *packet.Scanner
	v    packet.Version
	out  []byte
	read int64 // messages of this batch

	message []byte // the PUBLISH of a flood
	idAt    int    // offset of its packet identifier
	stampAt int    // offset of its number; 0 if it has none
	qos     byte
	left    int // messages yet to be sent
	number  uint64
	id      uint16
	open    int // messages in flight
}

// batch handles the packets of a read, and appends answers to c.out.
func (c *targetConn) batch() error {
	for {
		f, ok, err := c.scan.Next()
		if err != nil {
			return err
		}
		if !ok {
			c.messages.Add(c.read)
			c.read = 0
			return nil
		}
		if err := c.handle(f); err != nil {
			return err
		}
	}
}

func (c *targetConn) handle(f packet.Frame) error {
	switch f.Type() {
	case packet.PUBLISH:
		c.read++
		if c.Kind == AckingSink {
			c.acknowledge(f)
		}
	case packet.PUBREL:
		c.answer(packet.PUBCOMP, f.Body)
	case packet.PUBREC:
		c.answer(packet.PUBREL, f.Body)
	case packet.PUBACK, packet.PUBCOMP:
		c.open--
	case packet.PINGREQ:
		c.out = packet.AppendPingresp(c.out)
	case packet.CONNECT:
		var p packet.Connect
		if err := p.Decode(f); err != nil {
			return err
		}
		c.v = p.Version
		return c.append(&packet.Connack{})
	case packet.SUBSCRIBE:
		return c.subscribe(f)
	}
	return nil
}

// acknowledge answers a PUBLISH of QoS 1 or 2.
func (c *targetConn) acknowledge(f packet.Frame) {
	qos := f.First >> 1 & 3
	if qos == 0 || len(f.Body) < 2 {
		return
	}
	topic := int(binary.BigEndian.Uint16(f.Body))
	c.answer(packet.PUBACK+packet.Type(qos-1), f.Body[min(2+topic, len(f.Body)):])
}

// answer appends an acknowledgement for the packet identifier at the start of b.
func (c *targetConn) answer(t packet.Type, b []byte) {
	if len(b) >= 2 {
		c.out = packet.AppendAck(c.out, t, binary.BigEndian.Uint16(b))
	}
}

func (c *targetConn) append(p appender) (err error) {
	c.out, err = p.Append(c.out, c.v)
	return err
}

func (c *targetConn) subscribe(f packet.Frame) error {
	var p packet.Subscribe
	if err := p.Decode(f, c.v); err != nil {
		return err
	}
	ack := packet.Suback{PacketID: p.PacketID}
	for _, s := range p.Subscriptions {
		ack.Codes = append(ack.Codes, packet.ReasonCode(s.QoS))
		if c.Kind == Flood {
			if err := c.prepare(s); err != nil {
				return err
			}
		}
	}
	return c.append(&ack)
}

// prepare encodes the message for which s asks.
func (c *targetConn) prepare(s packet.Subscription) error {
	size, count, _ := strings.Cut(strings.TrimPrefix(s.Filter, "flood/"), "/")
	payload, err := strconv.Atoi(size)
	if err != nil {
		return fmt.Errorf("flood to %q: the topic is not flood/PAYLOAD/COUNT", s.Filter)
	}
	if c.left, err = strconv.Atoi(count); err != nil {
		return fmt.Errorf("flood to %q: the topic is not flood/PAYLOAD/COUNT", s.Filter)
	}
	m := packet.Publish{Topic: []byte(s.Filter), QoS: s.QoS, Payload: make([]byte, payload)}
	if s.QoS > 0 {
		m.PacketID = 1
	}
	if c.message, err = m.Append(nil, c.v); err != nil {
		return err
	}
	c.qos, c.number, c.stampAt = s.QoS, 0, 0
	at := len(c.message) - payload
	if payload >= 8 {
		c.stampAt = at
	}
	c.idAt = at - 2
	if c.v == packet.V5 {
		c.idAt-- // the property length follows the identifier
	}
	return nil
}

// flood appends up to a buffer of messages, and reports whether there is anything
// to write.
func (c *targetConn) flood() bool {
	for c.left > 0 && len(c.out) < targetBuffer && (c.qos == 0 || c.open < floodWindow) {
		at := len(c.out)
		c.out = append(c.out, c.message...)
		if c.qos > 0 {
			if c.id++; c.id == 0 {
				c.id = 1
			}
			binary.BigEndian.PutUint16(c.out[at+c.idAt:], c.id)
			c.open++
		}
		if c.stampAt > 0 {
			binary.BigEndian.PutUint64(c.out[at+c.stampAt:], c.number)
		}
		c.number++
		c.left--
		c.read++
	}
	c.messages.Add(c.read)
	c.read = 0
	return len(c.out) > 0
}
