package interop

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/mqtt/packet"
)

var (
	oracleSeed  = flag.Uint64("oracle-seed", 1, "seed of the random packets")
	oracleCount = flag.Int("oracle-count", 100_000, "how many random packets go each way")
)

// An answer is one line of node/oracle.js.
type answer struct {
	V                   packet.Version
	Packet              json.RawMessage
	Raw                 string
	Refused, Unwritable string
}

// answers reads the lines of p.
func answers(t *testing.T, p *process, next func(n int, a answer)) {
	t.Helper()
	p.stdout.Buffer(nil, 4<<20)
	go drop(p.stderr)
	n := 0
	for p.stdout.Scan() {
		var a answer
		if err := json.Unmarshal(p.stdout.Bytes(), &a); err != nil {
			t.Fatalf("%s: %v", p.stdout.Text(), err)
		}
		next(n, a)
		n++
	}
	if n != *oracleCount {
		t.Errorf("%d packets came back, %d were sent: %v", n, *oracleCount, p.stdout.Err())
	}
}

// A verdict is a disagreement with mqtt-packet 9.0.2, with the sentence of the
// standard that decides it.
type verdict struct {
	name     string
	sentence string
	applies  func(c control, v packet.Version, a answer) bool
}

var verdicts = []verdict{
	{"password without user name", `MQTT 5 3.1.2.9: "This version of the protocol allows the sending of a Password with no User Name, where MQTT v3.1.1 did not"`,
		func(c control, v packet.Version, a answer) bool {
			p, ok := c.(*connect)
			return ok && v == packet.V5 && p.HasPassword && !p.HasUsername && a.Unwritable == "Username is required to use password"
		}},
	{"no client identifier, no clean start", `[MQTT-3.1.3-6] "A Server MAY allow a Client to supply a ClientID that has a length of zero bytes"; 5 no longer asks for Clean Start then`,
		func(c control, v packet.Version, a answer) bool {
			p, ok := c.(*connect)
			return ok && v == packet.V5 && p.ClientID == "" && !p.CleanStart && a.Unwritable == "clientId must be given if cleanSession set to 0"
		}},
	{"AUTH without a reason code", `MQTT 5 3.15.2.1: "The Reason Code and Property Length can be omitted if the Reason Code is 0x00 (Success) and there are no Properties"`,
		func(c control, _ packet.Version, a answer) bool {
			p, ok := c.(*packet.Auth)
			return ok && p.Code == 0 && p.Properties.IsZero() && a.Refused == "Invalid auth reason code"
		}},
	{"Property Length left out", `MQTT 5 3.4.2.2.1: "If the Remaining Length is less than 4 there is no Property Length and the value of 0 is used"; 3.14.2.2.1 alike for DISCONNECT`,
		func(c control, v packet.Version, a answer) bool {
			raw, err := c.Append(nil, v)
			return err == nil && v == packet.V5 && a.Raw == hex.EncodeToString(longForm(raw, c))
		}},
}

// longForm adds the reason code and the property length that the shortest form of an
// acknowledgement or DISCONNECT without properties omits.
func longForm(raw []byte, c control) []byte {
	switch p := c.(type) {
	case *packet.Ack:
		if p.Code != 0 && p.Properties.IsZero() {
			return []byte{raw[0], 4, raw[2], raw[3], byte(p.Code), 0}
		}
	case *packet.Disconnect:
		if p.Properties.IsZero() {
			return []byte{raw[0], 2, byte(p.Code), 0}
		}
	}
	return raw
}

func decide(c control, v packet.Version, a answer) string {
	for _, d := range verdicts {
		if d.applies(c, v, a) {
			return d.name
		}
	}
	return ""
}

// TestOracleReads: mqtt-packet decodes the packets of the codec to the same fields,
// and encodes them to the same bytes.
func TestOracleReads(t *testing.T) {
	p := startNode(t, "oracle.js", "parse")
	go func() {
		defer p.stdin.Close()
		g, w := newGenerator(*oracleSeed), bufio.NewWriter(p.stdin)
		defer w.Flush()
		for range *oracleCount {
			c, v := g.next()
			raw, _ := c.Append(nil, v) // the comparison below reports an error
			fmt.Fprintf(w, "{\"v\":%d,\"raw\":\"%x\"}\n", v, raw)
		}
	}()
	g, decided, kinds := newGenerator(*oracleSeed), map[string]int{}, map[string]int{}
	answers(t, p, func(n int, a answer) {
		c, v := g.next() // the same packet again
		want := describe(c, v)
		kinds[fmt.Sprint(want["cmd"], " ", v)]++
		raw, err := c.Append(nil, v)
		if err != nil {
			t.Fatalf("packet %d: %v\n%s", n, err, want.text())
		}
		again, err := recode(raw, v)
		if err != nil || !bytes.Equal(again, raw) {
			t.Errorf("packet %d: decoded and encoded %x, %v; was %x", n, again, err, raw)
		}
		if a.Refused == "" {
			if got, err := retell(a.Packet); err != nil || got != want.text() {
				t.Errorf("packet %d: %x\n read as %s, %v\n want    %s", n, raw, got, err, want.text())
			}
		}
		if a.Raw == hex.EncodeToString(raw) {
			return
		}
		verdict := decide(c, v, a)
		decided[verdict]++
		if verdict == "" {
			t.Errorf("packet %d, version %s: %s\n wrote %x\n again %s %s%s", n, v, want.text(), raw, a.Raw, a.Refused, a.Unwritable)
		}
		if t.Failed() && decided[""] > 5 {
			t.FailNow()
		}
	})
	if len(kinds) != 3*14+1 {
		t.Errorf("%d kinds of packet, want every type in every version: %v", len(kinds), kinds)
	}
	for _, d := range verdicts {
		if decided[d.name] == 0 {
			t.Errorf("no packet parts for %s: the verdict is of no use", d.name)
		}
	}
	t.Logf("%d packets, parted over %v", *oracleCount, decided)
}

// TestOracleWrites: the codec decodes the packets of mqtt-packet to the same fields,
// and encodes them to the same bytes.
func TestOracleWrites(t *testing.T) {
	p := startNode(t, "oracle.js", "generate", fmt.Sprint(*oracleCount), fmt.Sprint(*oracleSeed))
	bad, short := 0, 0
	answers(t, p, func(n int, a answer) {
		raw, err := hex.DecodeString(a.Raw)
		if err != nil {
			t.Fatal(err)
		}
		c, err := decodeOne(raw, a.V)
		if err != nil {
			t.Fatalf("packet %d, version %s: %v\n%s\n%s", n, a.V, err, a.Packet, a.Raw)
		}
		want, err := retell(a.Packet)
		if got := describe(c, a.V).text(); err != nil || got != want {
			t.Errorf("packet %d: %s\n read as %s\n want    %s, %v", n, a.Raw, got, want, err)
			bad++
		}
		again, err := c.Append(nil, a.V)
		switch {
		case err == nil && bytes.Equal(again, raw):
		case err == nil && bytes.Equal(longForm(again, c), raw):
			short++
		default:
			t.Errorf("packet %d: %s\n written as %x, %v", n, a.Raw, again, err)
			bad++
		}
		if bad > 5 {
			t.FailNow()
		}
	})
	t.Logf("%d packets, of them %d written shorter: %s", *oracleCount, short, strings.TrimSpace(verdicts[3].sentence))
}
