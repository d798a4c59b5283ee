package packet

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vectorDir holds public conformance vectors where they are at hand: byte
// sequences from the test data of Eclipse Mosquitto and F-Secure's mqtt_fuzz.
const vectorDir = "../../../shared/vectors"

// A vector is one exchange; the bytes of its messages were sent by the peer
// under test of the vector's own suite, or by us.
type vector struct {
	File  string
	Group string
	Name  string
	Ver   int
	Disc  bool
	Msgs  []vectorMessage
}

// A vectorMessage is {"type","payload"} in one file and ["type","payload"] in
// the other.
type vectorMessage struct {
	sent bool
	raw  []byte
}

func (m *vectorMessage) UnmarshalJSON(b []byte) error {
	var o struct{ Type, Payload string }
	if b[0] == '[' {
		var pair []string
		if err := json.Unmarshal(b, &pair); err != nil {
			return err
		}
		if len(pair) == 2 {
			o.Type, o.Payload = pair[0], pair[1]
		}
	} else if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	m.sent = o.Type == "send"
	m.raw, _ = hex.DecodeString(strings.ReplaceAll(o.Payload, " ", ""))
	return nil
}

// readVectors returns the vectors of one file, none when it is absent.
func readVectors(t testing.TB, name string) (all []vector) {
	f, err := os.Open(filepath.Join(vectorDir, name))
	if err != nil {
		return nil
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
