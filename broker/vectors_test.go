package broker

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// vector is one exchange with a broker.
type vector struct {
	File, Name string
	Ver        byte
	Connect    bool
	Disc       bool // the broker must close the connection
	Msgs       []struct {
		Type, Payload, Topic string
		QoS                  byte
	}
}

func loadVectors(t testing.TB) []vector {
	t.Helper()
	path := filepath.Join("..", "..", "shared", "vectors", "broker.jsonl")
	file, err := os.Open(path)
	if err != nil {
		t.Skipf("SKIPPED: the broker vectors are not here: %v", err)
	}
	defer func() { _ = file.Close() }()
	var list []vector
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// A reply is what the vectors' author and this broker answer to one packet.
type reply struct{ sent, want, got []byte }

// A difference is a reason for which the standard decides against the vectors.
// docs/conformance.md has them all, with their sentences.
type difference struct {
	rule  string
	count int // of exchanges
	is    func(v *vector, r reply) bool
}

var differences = []difference{
	{"3.2.2.3: a server announces its own limits", 14, func(_ *vector, r reply) bool {
		accepted := "\x20"
		return has(r.want, accepted) && has(r.got, accepted) && r.want[3] == 0 && r.got[3] == 0 && r.want[2] == r.got[2]
	}},
	{"2.2.2.2: a property that may not stand in the packet makes it malformed", 110, func(_ *vector, r reply) bool {
		return r.codes(0x82, 0x81) && mqtttest.ForeignProperty(r.sent)
	}},
	{"2.1.2: a packet of type 0 cannot be parsed", 3, func(_ *vector, r reply) bool {
		return r.codes(0x82, 0x81) && r.sent[0]>>4 == 0
	}},
	{"MQTT-2.1.3-1: reserved flags make any packet malformed", 4, func(_ *vector, r reply) bool {
		return r.codes(0x82, 0x81) && strings.Contains("\x22\x28\xf2\xf8", string(r.sent[:1]))
	}},
	{"MQTT-3.1.2-2 of 3.1.1: an unknown level is answered in 3.1.1", 1, func(v *vector, r reply) bool {
		return v.Ver == 4 && r.sent[0] == 0x10 && string(r.want) == "\x20\x03\x00\x84\x00" && string(r.got) == "\x20\x02\x00\x01"
	}},
	{"MQTT-3.3.4-6: a client does not send a Subscription Identifier", 3, func(_ *vector, r reply) bool {
		return has(r.sent, "\x32") && has(r.want, "\x40") && string(r.got) == "\xe0\x01\x82"
	}},
	{"3.6.2.1 and 3.7.2.1: an unknown identifier is not found", 10, func(_ *vector, r reply) bool {
		return len(r.want) == 4 && string(r.got) == string([]byte{r.want[0], 3, r.want[2], r.want[3], 0x92})
	}},
	{"3.8.3.1: QoS 3 is a protocol error", 1, func(_ *vector, r reply) bool {
		return r.codes(0x81, 0x82) && has(r.sent, "\x82") && r.sent[len(r.sent)-1]&3 == 3
	}},
	{"3.8.3: no topic filter is a protocol error", 1, func(_ *vector, r reply) bool {
		return r.codes(0x81, 0x82) && has(r.sent, "\x82\x03") && r.sent[4] == 0
	}},
	{"1.2: a packet identifier of 0 can be parsed", 2, func(_ *vector, r reply) bool {
		return r.codes(0x81, 0x82) && (has(r.sent, "\x82") || has(r.sent, "\xa2")) && string(r.sent[2:4]) == "\x00\x00"
	}},
	{"3.8.2.1.2: Subscription Identifier 0 is a protocol error", 1, func(_ *vector, r reply) bool {
		return r.codes(0x81, 0x82) && has(r.sent, "\x82") && string(r.sent[4:7]) == "\x02\x0b\x00"
	}},
	{"4.8.2: a shared subscription without a filter is as malformed as a filter without a character", 1, func(_ *vector, r reply) bool {
		return r.codes(0x82, 0x81) && has(r.sent, "\x82") && strings.Contains(string(r.sent), "$share/p")
	}},
}

func has(b []byte, prefix string) bool { return strings.HasPrefix(string(b), prefix) }

// codes tells whether both refuse, with these reason codes.
func (r reply) codes(want, got byte) bool { return refusal(r.want) == want && refusal(r.got) == got }

// refusal is the reason code of a DISCONNECT, or of a CONNACK of MQTT 5.
func refusal(b []byte) byte {
	switch {
	case has(b, "\xe0") && len(b) > 2:
		return b[2]
	case has(b, "\x20") && len(b) > 4:
		return b[3]
	}
	return 0
}

// TestVectors runs every exchange and compares whether the connection is open
// or closed at the end, and every byte of the replies. What differs has a rule
// of the standard, and every rule its number of exchanges.
func TestVectors(t *testing.T) {
	vectors := loadVectors(t)
	addr := listen(t, startBroker(t, Config{}))
	counts := make([]int, len(differences))
	identical := 0
	for i := range vectors {
		v := &vectors[i]
		open, replies := play(t, addr, v)
		switch rule := judge(v, open, replies); {
		case rule == same:
			identical++
		case rule == unknown:
			t.Errorf("%s %d %s: open=%v, want %v; replies %x", v.File, v.Ver, v.Name, open, !v.Disc, replies)
		default:
			counts[rule]++
		}
	}
	total := 0
	for i, d := range differences {
		total += counts[i]
		if counts[i] != d.count {
			t.Errorf("%d exchanges differ by %q, want %d", counts[i], d.rule, d.count)
		}
	}
	t.Logf("%d exchanges: %d byte for byte, %d differ by %d rules", len(vectors), identical, total, len(differences))
}

const (
	same    = -1
	unknown = -2
)

// judge returns the difference that explains v's outcome, by its index.
func judge(v *vector, open bool, replies []reply) int {
	for _, r := range replies {
		if string(r.want) == string(r.got) {
			continue
		}
		for i, d := range differences {
			if d.is(v, r) {
				return i
			}
		}
		return unknown
	}
	if open != !v.Disc {
		return unknown
	}
	return same
}

// play returns whether the connection stays open, and the replies.
func play(t *testing.T, addr string, v *vector) (open bool, replies []reply) {
	c := join(t, addr)
	defer func() { _ = c.nc.Close() }()
	if v.Connect {
		p := clean(packet.Version(v.Ver), "vec")
		p.KeepAlive = 60
		c.connect(p)
	}
	dead := false
	var sent []byte
	for _, m := range v.Msgs {
		b, err := hex.DecodeString(strings.ReplaceAll(m.Payload, " ", ""))
		switch {
		case m.Type == "publish":
			helper := connect(t, addr, clean(packet.V311, "helper"))
			helper.publish(m.Topic, m.Payload, m.QoS, min(uint16(m.QoS), 1))
			finishPublish(helper, m.QoS, 1)
			helper.sync()
			helper.leave()
		case err != nil:
			t.Fatal(err)
		case m.Type == "send":
			sent = b
			_, err := c.nc.Write(b)
			dead = dead || err != nil
		default:
			got, err := c.packets(countPackets(t, b))
			dead = dead || err != nil
			replies = append(replies, reply{sent, b, got})
		}
	}
	return !dead && stillOpen(c.nc), replies
}

// packets reads n packets as they are on the wire, as far as they come.
func (c *peer) packets(n int) (b []byte, err error) {
	for range n {
		f, err := c.next()
		if err != nil {
			return b, err
		}
		b = append(b, mqtttest.Bytes(f)...)
	}
	return b, nil
}

func countPackets(t *testing.T, b []byte) (n int) {
	s := packet.NewScanner(b, 0)
	s.Advance(len(b))
	for {
		_, ok, err := s.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return n
		}
		n++
	}
}

// stillOpen asks for a PINGRESP, which an open connection gives at once unless
// it waits for the rest of a packet.
func stillOpen(nc net.Conn) bool {
	if _, err := nc.Write(packet.AppendPingreq(nil)); err != nil {
		return false
	}
	buf := make([]byte, 4096)
	for {
		_ = nc.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		n, err := nc.Read(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return true
		case err != nil || n > 0 && buf[0] == byte(packet.DISCONNECT)<<4:
			return false
		case n >= 2 && buf[n-2] == byte(packet.PINGRESP)<<4 && buf[n-1] == 0:
			return true
		}
	}
}
