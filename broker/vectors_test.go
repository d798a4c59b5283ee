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

// knownDisagreements are exchanges where this broker and the vectors' author
// read the specification differently, with the reason.
var knownDisagreements = map[string]string{
	// [MQTT-3.3.4-6] forbids it to clients.
	"PUBLISH.json 5 subscription-identifier=0xFF7F (variable byte integer)":     "a client must not send a Subscription Identifier in PUBLISH",
	"PUBLISH.json 5 subscription-identifier=0xFFFF7F (variable byte integer)":   "a client must not send a Subscription Identifier in PUBLISH",
	"PUBLISH.json 5 subscription-identifier=0xFFFFFF7F (variable byte integer)": "a client must not send a Subscription Identifier in PUBLISH",
}

// TestVectors runs every exchange and compares whether the connection is open
// or closed at the end; reason codes are the choice of each broker.
func TestVectors(t *testing.T) {
	vectors := loadVectors(t)
	addr := listen(t, startBroker(t, Config{}))
	agreed, exact, receives := 0, 0, 0
	for _, v := range vectors {
		open, same, of := play(t, addr, v)
		exact += same
		receives += of
		name := v.File + " " + packet.Version(v.Ver).String() + " " + v.Name
		switch reason := knownDisagreements[name]; {
		case open == !v.Disc:
			agreed++
			if reason != "" {
				t.Errorf("%s: agrees now; it is listed as a disagreement", name)
			}
		case reason == "":
			t.Errorf("%s: connection open=%v, want %v", name, open, !v.Disc)
		}
	}
	t.Logf("%d vectors, %d agree, %d known disagreements; %d of %d replies are identical",
		len(vectors), agreed, len(knownDisagreements), exact, receives)
}

// play returns whether the connection stays open, and how many of the replies
// were the ones listed.
func play(t *testing.T, addr string, v vector) (open bool, same, receives int) {
	c := join(t, addr)
	defer func() { _ = c.nc.Close() }()
	if v.Connect {
		p := clean(packet.Version(v.Ver), "vec")
		p.KeepAlive = 60
		c.connect(p)
	}
	dead := false
	for _, m := range v.Msgs {
		want, err := hex.DecodeString(strings.ReplaceAll(m.Payload, " ", ""))
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
			_, err := c.nc.Write(want)
			dead = dead || err != nil
		default:
			receives++
			got, err := readSome(c.nc, len(want))
			dead = dead || err != nil
			if string(got) == string(want) {
				same++
			}
		}
	}
	return !dead && stillOpen(c.nc), same, receives
}

func readSome(nc net.Conn, n int) ([]byte, error) {
	buf := make([]byte, n)
	got := 0
	_ = nc.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	for got < n {
		k, err := nc.Read(buf[got:])
		got += k
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return buf[:got], err
		}
	}
	return buf[:got], nil
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
