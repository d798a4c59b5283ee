package broker

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// The steps of an input of FuzzBroker: a byte selects the step and the client, and
// another one the details.
const (
	stepConnect     = iota // version, clean start, will, acknowledges by itself
	stepSubscribe          // filter, QoS
	stepUnsubscribe        // filter
	stepPublish            // topic, QoS, retain; an identifier follows
	stepAck                // type, identifier
	stepRaw                // so many bytes follow
	stepLeave              // DISCONNECT, or the connection is lost
	stepWait               // so many tenths of a second
	steps
)

// stepFor returns the bytes of one step.
func stepFor(what, who int, more ...byte) []byte {
	return append([]byte{byte(what | who<<3)}, more...)
}

func rawStep(who int, data []byte) []byte {
	return append(binary.BigEndian.AppendUint16(stepFor(stepRaw, who), uint16(len(data))), data...)
}

var (
	fuzzFilters = [...]string{"a", "a/+", "#", "$share/g/a", "$share/g/a/+", "+/b", "c", "a/#"}
	fuzzTopics  = [...]string{"a", "a/b", "c", "a/b/c"}
)

// actor is one client of many inputs, with an identifier of its own.
type actor struct {
	t    *testing.T
	b    *Broker
	id   string
	conn *acting // nil while there is none
}

// acting is a connection of an actor. Its reader checks the packets of the broker.
type acting struct {
	*peer
	version packet.Version
	known   bool // CONNECT was a whole one: the version is known
	acks    bool // it acknowledges by itself
}

// open makes a connection as like, unless there is one.
func (a *actor) open(like acting) *acting {
	if a.conn == nil {
		here, there := net.Pipe()
		go a.b.ServeConn(there)
		like.peer = peerOf(a.t, here)
		like.peer.v = like.version
		a.conn = &like
		go a.conn.listen()
	}
	return a.conn
}

// say writes b, unless the broker has ended the connection.
func (c *acting) say(b []byte, err error) {
	c.must(err)
	_ = c.nc.SetWriteDeadline(time.Now().Add(patience))
	if _, err := c.nc.Write(b); err != nil {
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			c.t.Errorf("the broker has stopped reading")
		}
	}
}

func (a *actor) connect(how byte) {
	a.end()
	p := packet.Connect{
		Version: [...]packet.Version{packet.V31, packet.V311, packet.V5}[how%3], ClientID: a.id, CleanStart: how&4 != 0, KeepAlive: uint16(how >> 6),
	}
	if how&8 != 0 {
		p.Will = &packet.Will{Topic: "a/b", Payload: []byte("gone"), QoS: how >> 4 & 1, Retain: how&16 != 0}
	}
	if p.Version == packet.V5 {
		p.Properties = packet.Properties{SessionExpiry: ptr(uint32(how >> 5)), ReceiveMaximum: ptr(uint16(2)), TopicAliasMaximum: ptr(uint16(2))}
	}
	c := a.open(acting{version: p.Version, known: true, acks: how&32 != 0})
	c.say(p.Append(nil))
}

// listen reads until the end: all packets must be well-formed, and of types that a
// server may send.
func (c *acting) listen() {
	_ = c.nc.SetReadDeadline(time.Time{})
	first := true
	for {
		f, ok, err := c.scan.Next()
		if err != nil {
			if c.known {
				c.t.Errorf("the broker sends %v", err)
			}
			return
		}
		if !ok {
			n, err := c.nc.Read(c.scan.Space())
			c.scan.Advance(n)
			if n == 0 && err != nil {
				return
			}
			continue
		}
		if c.known {
			c.judge(f, first)
			first = false
		}
	}
}

func (c *acting) judge(f packet.Frame, first bool) {
	said := packet.Format(f, c.v)
	fromServer := f.Type() != packet.CONNECT && f.Type() != packet.SUBSCRIBE && f.Type() != packet.UNSUBSCRIBE && f.Type() != packet.PINGREQ
	if strings.Contains(said, "malformed") || !fromServer || first != (f.Type() == packet.CONNACK) || c.v != packet.V5 && f.Type() == packet.DISCONNECT {
		c.t.Errorf("%s client is told %s", c.v, said)
	}
	if !c.acks {
		return
	}
	var p packet.Publish
	var a packet.Ack
	switch f.Type() {
	case packet.PUBLISH:
		if p.Decode(f, c.v) == nil && p.QoS > 0 {
			c.later(packet.PUBACK+packet.Type(p.QoS-1), p.PacketID)
		}
	case packet.PUBREC, packet.PUBREL:
		if a.Decode(f, c.v) == nil && !a.Code.IsError() {
			c.later(f.Type()+1, a.PacketID)
		}
	}
}

// later answers from a goroutine of its own: a pipe holds nothing, and the broker
// may be writing too.
func (c *acting) later(t packet.Type, id uint16) {
	go func() {
		_ = c.nc.SetWriteDeadline(time.Now().Add(patience))
		_, _ = c.nc.Write(packet.AppendAck(nil, t, id))
	}()
}

// end loses the connection.
func (a *actor) end() {
	if a.conn != nil {
		_ = a.conn.nc.Close()
		a.conn = nil
	}
}

// play carries out one step and returns the rest of the input.
func (a *actor) play(what int, in []byte) []byte {
	if len(in) == 0 {
		return nil
	}
	arg, in := in[0], in[1:]
	if what == stepConnect {
		a.connect(arg)
		return in
	}
	c := a.open(acting{version: packet.V311})
	id := uint16(arg>>4) + 1
	switch what {
	case stepSubscribe:
		c.say((&packet.Subscribe{PacketID: 1, Subscriptions: []packet.Subscription{sub(fuzzFilters[arg&7], arg>>3%3)}}).Append(nil, c.v))
	case stepUnsubscribe:
		c.say((&packet.Unsubscribe{PacketID: 2, Filters: []string{fuzzFilters[arg&7]}}).Append(nil, c.v))
	case stepPublish:
		p := packet.Publish{Topic: []byte(fuzzTopics[arg&3]), QoS: arg >> 2 % 3, Retain: arg&8 != 0, Payload: []byte{arg}}
		if p.QoS > 0 {
			p.PacketID = id
		}
		c.say(p.Append(nil, c.v))
	case stepAck:
		c.say(packet.AppendAck(nil, packet.PUBACK+packet.Type(arg&3), id), nil)
	case stepRaw:
		if len(in) == 0 {
			return nil
		}
		n := min(int(arg)<<8|int(in[0]), len(in)-1)
		c.say(in[1:1+n], nil)
		in = in[1+n:]
	case stepLeave:
		if arg&1 != 0 {
			c.say((&packet.Disconnect{}).Append(nil, c.v))
		}
		a.end()
	case stepWait:
		time.Sleep(time.Duration(arg) * 100 * time.Millisecond)
	}
	return in
}

// FuzzBroker plays steps of four clients that share topics and resume their sessions,
// with arbitrary bytes in between. The broker must not panic or hang, must not send
// malformed packets, must release connections that end and all their goroutines, and
// must serve other clients.
func FuzzBroker(f *testing.F) {
	for _, steps := range [][][]byte{
		// A queue of QoS 2 for a session that is resumed, taken over, and ended.
		{stepFor(stepConnect, 0, 1), stepFor(stepSubscribe, 0, 0x10), stepFor(stepLeave, 0, 0), stepFor(stepConnect, 1, 5), stepFor(stepPublish, 1, 8), stepFor(stepAck, 1, 2),
			stepFor(stepConnect, 0, 1), stepFor(stepAck, 0, 1), stepFor(stepLeave, 0, 0), stepFor(stepConnect, 0, 1), stepFor(stepConnect, 0, 33), stepFor(stepWait, 0, 20), stepFor(stepConnect, 0, 5)},
		// A shared group of which one member leaves with what it has.
		{stepFor(stepConnect, 0, 0xe2), stepFor(stepSubscribe, 0, 0x0b), stepFor(stepConnect, 1, 0xc2), stepFor(stepSubscribe, 1, 0x0b), stepFor(stepConnect, 2, 0x26),
			stepFor(stepPublish, 2, 0x04), stepFor(stepPublish, 2, 0x14), stepFor(stepPublish, 2, 0x24), stepFor(stepPublish, 2, 0x34), stepFor(stepLeave, 1, 0), stepFor(stepWait, 0, 60)},
		// A retained will, and a later subscription to it.
		{stepFor(stepConnect, 0, 0x1d), stepFor(stepConnect, 1, 0x25), stepFor(stepSubscribe, 1, 0x0a), stepFor(stepLeave, 0, 0), stepFor(stepUnsubscribe, 1, 2), stepFor(stepConnect, 3, 0x25), stepFor(stepSubscribe, 3, 0x09)},
	} {
		var all []byte
		for _, s := range steps {
			all = append(all, s...)
		}
		f.Add(all)
	}
	if _, err := os.Stat(filepath.Join("..", "..", "shared", "vectors", "broker.jsonl")); err == nil {
		for i, v := range loadVectors(f) {
			how := map[packet.Version]byte{packet.V31: 0x24, packet.V311: 0x25, packet.V5: 0x26}[packet.Version(v.Ver)]
			in := append(stepFor(stepConnect, 1, how), stepFor(stepSubscribe, 1, 0x0a)...)
			if v.Connect {
				in = append(in, stepFor(stepConnect, 0, how)...)
			}
			for _, m := range v.Msgs {
				if m.Type == "send" && i%4 == 0 {
					in = append(in, rawStep(0, mustHex(f, strings.ReplaceAll(m.Payload, " ", "")))...)
				}
			}
			f.Add(append(in, stepFor(stepLeave, 0, 0)...))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 4096 {
			return
		}
		virtual(t, Config{MaxQueuedBytes: 1 << 16, MaxQueuedMessages: 10, StallTimeout: time.Second, MaxSessionExpiry: time.Minute}, func(t *testing.T, b *Broker) {
			var actors [4]actor
			for i := range actors {
				actors[i] = actor{t: t, b: b, id: fmt.Sprint("actor", i)}
			}
			for len(in) > 0 {
				op := in[0]
				in = actors[op>>3&3].play(int(op&7), in[1:])
				synctest.Wait()
			}
			for i := range actors {
				actors[i].end()
			}
			serves(t, b)
		})
	})
}

// serves fails unless the broker delivers a message after all clients have left.
func serves(t *testing.T, b *Broker) {
	t.Helper()
	time.Sleep(2 * patience) // for those that write yet
	if st := b.Stats(); st.Connected != 0 {
		t.Errorf("%d connections that have ended are not forgotten", st.Connected)
	}
	s := connectPipe(t, b, clean(packet.V5, "s"))
	s.subscribe(sub("check", 1))
	p := connectPipe(t, b, clean(packet.V311, "p"))
	p.publish("check", "whole", 1, 1)
	s.wantPublish("check", "whole", 1)
	p.wantAck(packet.PUBACK, 1, 0)
	_, _ = s.nc.Close(), p.nc.Close()
}
