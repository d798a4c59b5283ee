package interop

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// control is the interface of the codec's packets. CONNECT has a version of its own.
type control interface {
	Decode(f packet.Frame, v packet.Version) error
	Append(dst []byte, v packet.Version) ([]byte, error)
}

type connect struct{ packet.Connect }

func (c *connect) Decode(f packet.Frame, _ packet.Version) error { return c.Connect.Decode(f) }
func (c *connect) Append(dst []byte, _ packet.Version) ([]byte, error) {
	return c.Connect.Append(dst)
}

// ping is PINGREQ or PINGRESP.
type ping struct{ t packet.Type }

func (p *ping) Decode(f packet.Frame, v packet.Version) error { return packet.DecodePing(f, v) }
func (p *ping) Append(dst []byte, _ packet.Version) ([]byte, error) {
	if p.t == packet.PINGREQ {
		return packet.AppendPingreq(dst), nil
	}
	return packet.AppendPingresp(dst), nil
}

func newControl(t packet.Type) control {
	switch t {
	case packet.CONNECT:
		return &connect{}
	case packet.CONNACK:
		return &packet.Connack{}
	case packet.PUBLISH:
		return &packet.Publish{}
	case packet.SUBSCRIBE:
		return &packet.Subscribe{}
	case packet.SUBACK:
		return &packet.Suback{}
	case packet.UNSUBSCRIBE:
		return &packet.Unsubscribe{}
	case packet.UNSUBACK:
		return &packet.Unsuback{}
	case packet.PINGREQ, packet.PINGRESP:
		return &ping{t}
	case packet.DISCONNECT:
		return &packet.Disconnect{}
	case packet.AUTH:
		return &packet.Auth{}
	}
	return &packet.Ack{}
}

var errIncomplete = errors.New("more bytes are needed, or some are left over")

// decodeOne decodes raw, which must be one packet, of version v.
func decodeOne(raw []byte, v packet.Version) (control, error) {
	s := packet.NewScanner(nil, 0)
	s.SetVersion(v)
	for rest := raw; len(rest) > 0; {
		n := copy(s.Space(), rest)
		s.Advance(n)
		rest = rest[n:]
	}
	f, ok, err := s.Next()
	if err != nil {
		return nil, err
	}
	if !ok || s.Buffered() > 0 {
		return nil, errIncomplete
	}
	c := newControl(f.Type())
	return c, c.Decode(f, v)
}

// recode decodes raw as one packet of version v and encodes it again.
func recode(raw []byte, v packet.Version) ([]byte, error) {
	c, err := decodeOne(raw, v)
	if err != nil {
		return nil, err
	}
	return c.Append(nil, v)
}

// A difference is a case in which this codec and mochi's table disagree, with the
// sentence of the standard that decides it. want is the result of this codec: the
// text of the error, or the bytes if it accepts the packet.
type difference struct {
	typ  byte // control packet type and case number of mochi's table
	num  byte
	want string
	why  string
}

const (
	returnCode = "decode CONNACK: byte 3: return code is above 5"
	reserved   = `MQTT 3.1.1 table 3.1: "6-255 Reserved for future use"; [MQTT-3.2.2-6] close without a CONNACK instead`
	incomplete = "more bytes are needed, or some are left over"
	notWire    = "input of mochi's encoder, which mends its length: the bytes are no packet (MQTT 5 2.1.4)"
)

var differences = []difference{
	{2, packets.TConnackProtocolViolationNoSession, returnCode, reserved},
	{2, packets.TConnackBadProtocolVersion, returnCode, reserved},
	{2, packets.TConnackBadClientID, returnCode, reserved},
	{2, packets.TConnackServerUnavailable, returnCode, reserved},
	{2, packets.TConnackBadUsernamePassword, returnCode, reserved},
	{2, packets.TConnackNotAuthorised, returnCode, reserved},
	{2, packets.TConnackDropProperties, incomplete, notWire},
	{2, packets.TConnackDropPropertiesPartial, incomplete, notWire},
	{3, packets.TPublishDup, "decode PUBLISH: byte 0: DUP must be 0 at QoS 0 [MQTT-3.3.1-2]",
		`[MQTT-3.3.1-2] "The DUP flag MUST be set to 0 for all QoS 0 messages"`},
	{3, packets.TPublishSpecQos0NoPacketID, incomplete, notWire},
	{3, packets.TPublishDropOversize, "300a0003612f6268656c6c6f",
		"too large only against the Maximum Packet Size that mochi's case sets beside the bytes (MQTT 5 3.1.2.11.4)"},
	{3, packets.TPublishSpecDenySysTopic, "300b0005245359532f616e7979",
		"MQTT 5 4.7.2: a server SHOULD prevent it; the packet is well-formed"},
	{8, packets.TSubscribeInvalidFilter, incomplete, "the case holds no bytes"},
	{8, packets.TSubscribeInvalidSharedNoLocal, incomplete, "the case holds no bytes"},
	{9, packets.TSubackInvalidSharedNoLocal, "decode SUBACK: byte 5: reason code is not allowed in this packet",
		"[MQTT-3.9.3-2] one of the Subscribe Reason Codes, among which 0x82 is not (MQTT 5 3.9.3)"},
	{14, packets.TDisconnectZeroNonZeroExpiry, "e00182",
		"MQTT 5 3.14.2.2.1: a Remaining Length below 2 stands for no properties; both forms are good, and ours is the shorter"},
	{14, packets.TDisconnectDropProperties, incomplete, notWire},
}

func decided(typ, num byte) (difference, bool) {
	for _, d := range differences {
		if d.typ == typ && d.num == num {
			return d, true
		}
	}
	return difference{}, false
}

func version(c packets.TPacketCase) packet.Version {
	if c.Packet != nil && c.Packet.ProtocolVersion != 0 {
		return packet.Version(c.Packet.ProtocolVersion)
	}
	return packet.V311
}

// TestMochiPackets compares the codec with a table of others: valid packets decode
// and encode to the same bytes, invalid ones are refused, and where the two disagree
// the standard decides.
func TestMochiPackets(t *testing.T) {
	seen, parted := 0, 0
	for typ := byte(1); typ <= 15; typ++ {
		for _, c := range packets.TPacketData[typ] {
			seen++
			d, differs := decided(typ, c.Case)
			if differs {
				parted++
			}
			t.Run(fmt.Sprintf("%s/%d %s", packet.Type(typ), c.Case, c.Desc), func(t *testing.T) {
				got, err := recode(c.RawBytes, version(c))
				answer := fmt.Sprintf("%x", got)
				if err != nil {
					answer = err.Error()
				}
				bad := c.FailFirst != nil || c.Expect != nil
				want := c.RawBytes
				if len(c.ActualBytes) > 0 {
					want = c.ActualBytes // as mochi writes the same packet
				}
				switch {
				case differs && answer != d.want:
					t.Errorf("%x\n gives %s\n want  %s\n for   %s", c.RawBytes, answer, d.want, d.why)
				case differs:
				case bad && err == nil:
					t.Errorf("%x is taken, mochi says %v, %v", c.RawBytes, c.FailFirst, c.Expect)
				case !bad && err != nil:
					t.Errorf("%x is refused: %v", c.RawBytes, err)
				case !bad && !bytes.Equal(got, want):
					t.Errorf("%x becomes %x", want, got)
				}
			})
		}
	}
	if seen != 179 || parted != len(differences) {
		t.Errorf("%d cases, %d of them with a decision; the table was frozen with 179 and %d", seen, parted, len(differences))
	}
}
