package mqtt

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// vectorFile has exchanges from Eclipse Mosquitto's test data: the bytes that a server
// sends, and whether the client must close.
const vectorFile = "../../shared/vectors/client.jsonl"

type vector struct {
	File    string  `json:"file"`
	Group   string  `json:"group"`
	Name    string  `json:"name"`
	Ver     int     `json:"ver"`
	Connack bool    `json:"connack"`
	Connect bool    `json:"connect"`
	Close   bool    `json:"disc"`
	Command *string `json:"command"`
	Clean   bool    `json:"clean"`
	Msgs    [][]any `json:"msgs"`
}

func readVectors(t testing.TB) (out []vector) {
	f, err := os.Open(vectorFile)
	if err != nil {
		t.Skipf("no conformance vectors here: %v", err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var v vector
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			continue // commands with arguments need their own driver
		}
		if v.Connect && v.Command == nil {
			out = append(out, v)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// judge sends one vector to a client and reports whether it closed the connection.
func judge(t *testing.T, v vector) (closed bool) {
	version := packet.Version(v.Ver)
	near, far := net.Pipe()
	defer far.Close()
	go func() {
		_ = far.SetDeadline(time.Now().Add(5 * time.Second))
		buf := make([]byte, 4096)
		if _, err := far.Read(buf); err != nil {
			return
		}
		if v.Connack {
			connack := connack311
			if version == packet.V5 {
				connack = "20 06 00 00 03 21 0014"
			}
			if _, err := far.Write(mqtttest.Hex(t, connack)); err != nil {
				return
			}
		}
		var said []byte
		for _, m := range v.Msgs {
			if m[0] == "send" {
				said = append(said, mqtttest.Hex(t, m[1].(string))...)
			}
		}
		// A client that is still connected acknowledges a QoS 1 message.
		alive := "32 0b 0005 616c697665 ffff 7878"
		if version == packet.V5 {
			alive = "32 0c 0005 616c697665 ffff 00 7878"
		}
		// Read while writing: a pipe has no buffer.
		go far.Write(append(said, mqtttest.Hex(t, alive)...))
		for {
			n, err := far.Read(buf)
			if err != nil {
				return
			}
			if strings.Contains(string(buf[:n]), "\x40\x02\xff\xff") {
				_ = far.Close()
			}
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	c, err := Connect(ctx, Config{
		Dial:    func(context.Context) (net.Conn, error) { return near, nil },
		Version: version, ClientID: "vec", CleanStart: v.Clean,
	})
	if err != nil {
		return true
	}
	defer c.Close()
	select {
	case <-c.Done():
		// The peer closes once it has the answer, so only an end by the client counts.
		return EndOf(c.Err()) != "closed by the broker"
	case <-ctx.Done():
		t.Errorf("%s %s %s: neither closed nor answered", v.File, v.Group, v.Name)
		return false
	}
}

// adjudicated are vectors that contradict the standard.
var adjudicated = map[string]string{
	// A byte follows the properties within the remaining length, but in MQTT 5 section
	// 3.2 nothing may follow them.
	"v5.0   CONNACK/20 long": "trailing byte",
}

func TestVectors(t *testing.T) {
	good := 0
	vectors := readVectors(t)
	for _, v := range vectors {
		if adjudicated[v.Group+"/"+v.Name] != "" {
			v.Close = !v.Close
		}
		if judge(t, v) == v.Close {
			good++
			continue
		}
		t.Errorf("%s %s %q %v: must close: %v", v.File, v.Group, v.Name, v.Msgs, v.Close)
	}
	t.Logf("%d of %d vectors agree", good, len(vectors))
}
