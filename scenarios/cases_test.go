package scenarios

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
)

func TestMatrix(t *testing.T) {
	cases := casesOf(t, parse(t, `matrix: {qos: [0, 1, 2], payload: [10, 1KiB, 2KiB, 8KiB], protocol: ["3.1.1", "5"]}`))
	if len(cases) != 24 {
		t.Fatalf("%d cases", len(cases))
	}
	seen := map[string]bool{}
	for i, c := range cases {
		seen[c.ID] = true
		// The first axis varies slowest.
		qos, size, version := byte(i/8), []int{10, 1024, 2048, 8192}[i/2%4], []packet.Version{packet.V311, packet.V5}[i%2]
		if c.QoS != qos || c.Payload.Size != size || c.Protocol != version {
			t.Errorf("case %d is %s", i, c.ID)
		}
	}
	if len(seen) != 24 {
		t.Errorf("%d ids", len(seen))
	}
	want := []result.Param{{Key: "qos", Value: "1"}, {Key: "payload", Value: "8192"}, {Key: "protocol", Value: "5"}}
	if c := cases[15]; c.ID != "qos=1/payload=8192/protocol=5" || !reflect.DeepEqual(c.Params, want) {
		t.Errorf("%s %v", c.ID, c.Params)
	}
}

func TestMatrixLimit(t *testing.T) {
	s := builtin("default")
	var numbers []string
	for i := range 101 {
		numbers = append(numbers, strconv.Itoa(i))
	}
	hundred := strings.Join(numbers[:100], ",")
	set(t, s, "qos", "0", "protocol", "5", "payload", hundred, "warmup", hundred)
	if n := len(casesOf(t, s)); n != maxCases {
		t.Errorf("%d cases", n)
	}
	set(t, s, "payload", strings.Join(numbers, ","))
	_, err := s.Cases()
	checkErrors(t, err, "default.yaml: the matrix has more than 10000 cases: shorten an axis")
}

func TestExclude(t *testing.T) {
	const matrix = "matrix: {qos: [0, 1, 2], payload: [10, 8KiB]}\n"
	s := parse(t, matrix+"exclude: [qos=2/payload=8192, 'payload=10/qos=0', qos=1/protocol=3.1.1]")
	checkIDs(t, s, "qos=0/payload=8192/protocol=3.1.1", "qos=2/payload=10/protocol=3.1.1")
	checkIDs(t, parse(t, matrix+"exclude: [payload=8KiB, qos=1]"), "qos=0/payload=10/protocol=3.1.1", "qos=2/payload=10/protocol=3.1.1")

	tests := []struct {
		exclude string
		want    []string
	}{
		{"[qos=2/payload=99]", []string{`x.yaml:2: exclude "qos=2/payload=99" matches no case: correct or remove it`}},
		{"[qos]", []string{`x.yaml:2: exclude "qos": qos is not KEY=VALUE: write a pattern such as qos=2/payload=8192`}},
		{"['']", []string{`x.yaml:2: exclude "": "" is not KEY=VALUE: write a pattern such as qos=2/payload=8192`}},
		{"[pairs=1]", []string{`x.yaml:2: exclude "pairs=1": pairs is not an axis: the axes are qos, payload, protocol`}},
		{"[qos=3]", []string{`x.yaml:2: exclude "qos=3": qos must be 0, 1 or 2`}},
		{"[protocol=3.1.1]", []string{"x.yaml:2: exclude leaves no case to run"}},
	}
	for _, tt := range tests {
		_, err := parse(t, matrix+"exclude: "+tt.exclude).Cases()
		checkErrors(t, err, tt.want...)
	}
	// A setting that narrows the matrix may make an exclude idle.
	checkIDs(t, set(t, parse(t, matrix+"exclude: [qos=2/payload=8192]"), "qos", "1", "payload", "10"), "qos=1/payload=10/protocol=3.1.1")
	// An id is a pattern that matches its own case.
	s = set(t, parse(t, "exclude: ['qos=0/payload=text:a%2Fb%25/protocol=5']"), "payload", "10,text:a/b%", "protocol", "5")
	checkIDs(t, s, "qos=0/payload=10/protocol=5")
}

func TestCheckCases(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string // none: the cases are sound
	}{
		{"shared topic", "load: {pairs: 2}\nclients: {topic: t}", []string{"x.yaml:2: topic t is the same for all 2 pairs, and each needs its own: add %i"}},
		{"topics of client ids", "load: {pairs: 2}\nclients: {topic: t/%c}", nil},
		{"topics of the same client's id", "load: {topics: 2, topics_per_publisher: 2}\nclients: {topic: t/%c}", []string{"x.yaml:2: topic t/%c is the same for all 2 topics, and each needs its own: add %i"}},
		{"topics of ids that the broker gives", "load: {pairs: 2}\nclients: {topic: t/%c, client_id: ''}", []string{"x.yaml:2: topic t/%c is the same for all 2 pairs, and each needs its own: add %i"}},
		{"topics of users", "load: {pairs: 2}\nclients: {topic: t/%u, username: u%i}", nil},
		{"topics of the same user", "load: {pairs: 2}\nclients: {topic: t/%u, username: u}", []string{"x.yaml:2: topic t/%u is the same for all 2 pairs, and each needs its own: add %i"}},
		{"shared client id", "clients: {client_id: me}", []string{"x.yaml:1: client_id me is the same for all 2 clients, and a broker allows one connection per id: add %i"}},
		{"an escaped variable is none", "clients: {client_id: me%%i}", []string{"x.yaml:1: client_id me%%i is the same for all 2 clients, and a broker allows one connection per id: add %i"}},
		{"one client", "load: {shape: loopback}\nclients: {client_id: me, topic: t}", nil},
		{"client id of 3.1", "matrix: {protocol: 3.1}\nclients: {client_id: a-long-client-name-%i}", []string{"x.yaml:2: client_id a-long-client-name-%i may have 28 characters, and MQTT 3.1 allows 1 to 23: shorten it"}},
		{"client id of 3.1 by default", "matrix: {protocol: 3.1}", nil},
		{"empty client id of 3.1", "matrix: {protocol: 3.1}\nclients: {client_id: ''}", []string{`x.yaml:2: client_id "" may have 0 characters, and MQTT 3.1 allows 1 to 23: shorten it`}},
		{"empty client id", "clients: {client_id: ''}", nil},
		{"empty client id with a session", "clients: {client_id: '', clean_start: false}", []string{"x.yaml:1: an empty client_id needs clean_start with MQTT 3.1.1"}},
		{"session expiry", "clients: {session_expiry: 5s}", []string{"x.yaml:1: session_expiry needs protocol 5, and the matrix has only 3.1.1: add 5 to protocol or remove session_expiry"}},
		{"session expiry of 5", "matrix: {protocol: 5}\nclients: {session_expiry: 5s}", nil},
		{"session expiry, excluded", "matrix: {protocol: [3.1.1, 5]}\nclients: {session_expiry: 5s}\nexclude: [protocol=3.1.1]", nil},
		{"user properties", "matrix: {protocol: 3.1}\nclients: {user_properties: {a: b}}", []string{"x.yaml:2: user_properties need protocol 5, and the matrix has only 3.1: add 5 to protocol or remove user_properties"}},
		{"user properties in one of two", "matrix: {protocol: [5, 3.1]}\nclients: {user_properties: {a: b}}", nil},
		{"password alone", "clients: {password: x}", []string{"x.yaml:1: a password without a user name needs protocol 5, and the matrix has 3.1.1: give username"}},
		{"password alone of 5", "matrix: {protocol: 5}\nclients: {password: x}", nil},
		{"password with the URL's user", "target: {url: mqtt://u@h}\nclients: {password: x}", nil},
		{"few messages", "load: {pairs: 10, messages: 9}", []string{"x.yaml:1: 9 messages for 10 pairs: every publisher needs at least one"}},
		{"largest payload", "matrix: {payload: 268435452}\nload: {shape: loopback}\nclients: {topic: t}", nil},
		{"payload and topic", "matrix: {payload: 268435452}\nload: {shape: loopback}\nclients: {topic: tt}", []string{"x.yaml:1: a payload of 268435452 bytes does not fit: with topic and properties the packet is 1 bytes over MQTT's limit of 268,435,455"}},
		{"payload and packet id", "matrix: {payload: 268435451, qos: 1}\nload: {shape: loopback}\nclients: {topic: t}", []string{"x.yaml:1: a payload of 268435451 bytes does not fit: with topic and properties the packet is 1 bytes over MQTT's limit of 268,435,455"}},
		{"payload and properties", "matrix: {payload: 268435440, protocol: 5}\nload: {shape: loopback}\nclients: {topic: t, user_properties: {abc: defg}}", []string{"x.yaml:1: a payload of 268435440 bytes does not fit: with topic and properties the packet is 1 bytes over MQTT's limit of 268,435,455"}},
		{"all at once, each once", "matrix: {qos: [0, 1, 2]}\nload: {pairs: 2}\nclients: {topic: t, client_id: c}", []string{
			"x.yaml:3: client_id c is the same for all 4 clients, and a broker allows one connection per id: add %i", "x.yaml:3: topic t is the same for all 2 pairs, and each needs its own: add %i"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parse(t, tt.in).Cases()
			if tt.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			checkErrors(t, err, tt.want...)
		})
	}
	_, err := set(t, parse(t, "clients: {topic: t}"), "pairs", "2", "topic", "x").Cases()
	checkErrors(t, err, "--topic: topic x is the same for all 2 pairs, and each needs its own: add %i")
}

// remainingLength must be what the codec writes.
func TestRemainingLength(t *testing.T) {
	for _, in := range []string{
		"name: x", "matrix: {qos: 2, payload: 1000}", "matrix: {protocol: 5, payload: 0}",
		"matrix: {protocol: 5, qos: 1}\nclients: {topic: a, user_properties: {a: b, c: " + strings.Repeat("d", 200) + "}}\nload: {shape: loopback}",
	} {
		c := casesOf(t, parse(t, in))[0]
		var raw []byte
		if len(c.Clients.UserProperties) > 0 {
			for _, p := range c.Clients.UserProperties {
				raw = append(raw, 38, 0, byte(len(p.Name)))
				raw = append(raw, p.Name...)
				raw = append(raw, 0, byte(len(p.Value)))
				raw = append(raw, p.Value...)
			}
		}
		p := packet.Publish{QoS: c.QoS, Topic: []byte(Expand(c.Clients.Topic, sampleVars(1))), Payload: make([]byte, c.Payload.Size), RawProperties: raw}
		if c.QoS > 0 {
			p.PacketID = 1
		}
		data, err := p.Append(nil, c.Protocol)
		if err != nil {
			t.Fatal(err)
		}
		header := 2
		for n := remainingLength(&c) >> 7; n > 0; n >>= 7 {
			header++
		}
		if got := remainingLength(&c) + header; got != len(data) {
			t.Errorf("%s: %d, the codec writes %d", in, got, len(data))
		}
	}
}

func TestEffectiveReadsBack(t *testing.T) {
	list := Builtins()
	s, err := Parse("x.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	list = append(list, s, set(t, builtin("default"), "qos", "1", "payload", "text:a,b", "tls", "true", "host", "h", "port", "5", "pairs", "2,3", "clean-start", "false", "retain", "true"))
	for _, s := range list {
		data, err := json.Marshal(s.Effective())
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("x.yaml", data)
		if err != nil {
			t.Fatalf("%s: %v\n%s", s.Name, err, data)
		}
		if s.base.Clients.HasPassword {
			again.base.Clients.Password = s.base.Clients.Password
		}
		want, got := casesOf(t, s), casesOf(t, again)
		for i := range want {
			if !reflect.DeepEqual(want[i], got[i]) {
				t.Fatalf("%s: case %d\n got %+v\nwant %+v", s.Name, i, got[i], want[i])
			}
		}
		if again.Name != s.Name || again.Description != s.Description || again.Hash() != s.Hash() {
			t.Errorf("%s: %s %q", s.Name, again.Name, again.Description)
		}
	}
}

func TestEffectiveMasks(t *testing.T) {
	for _, s := range []*Scenario{
		set(t, builtin("default"), "password", "s3cret"),
		set(t, builtin("default"), "url", "mqtt://u:s3cret@h"),
		parse(t, "clients: {username: u, password: s3cret}"),
	} {
		data, err := json.Marshal(s.Effective())
		if err != nil || strings.Contains(string(data), "s3cret") {
			t.Errorf("%s %v", data, err)
		}
	}
	data, _ := json.Marshal(parse(t, "clients: {username: u, password: s3cret}").Effective())
	if !strings.Contains(string(data), `"username":"u","password":"***"`) {
		t.Errorf("%s", data)
	}
}

func TestHash(t *testing.T) {
	base := func() *Scenario { return builtin("default") }
	want := base().Hash()
	if len(want) != 64 || want != base().Hash() {
		t.Errorf("hash %s, then %s", want, base().Hash())
	}
	for _, same := range [][]string{
		{"url", "mqtt://u:p@broker"}, {"host", "h"}, {"port", "1"}, {"username", "u"}, {"password", "p"}, {"client-id", "other%i"},
		{"connect-timeout", "1s"}, {"connect-rate", "5"}, {"source-ip", "127.0.0.1"}, {"pairs", "1"}, {"payload", "10,1KiB,8KiB"},
	} {
		if got := set(t, base(), same...).Hash(); got != want {
			t.Errorf("%v changes the hash", same)
		}
	}
	for _, other := range [][]string{
		{"qos", "1"}, {"payload", "text:x"}, {"pairs", "2"}, {"inflight", "1"}, {"iterations", "3"}, {"topic", "x/%i"}, {"keepalive", "1s"},
		{"tls", "true"}, {"url", "mqtts://h"}, {"insecure", "true"}, {"tls-max", "1.2"}, {"user-property", "a=b"}, {"retain", "true"}, {"clean-start", "false"},
	} {
		if got := set(t, base(), other...).Hash(); got == want {
			t.Errorf("%v does not change the hash", other)
		}
	}
	path := filepath.Join(t.TempDir(), "data")
	var hashes []string
	for _, text := range []string{"one", "two"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, set(t, base(), "payload", "@"+path).Hash())
	}
	if hashes[0] == hashes[1] {
		t.Error("the bytes of a payload file are not in the hash")
	}
}
