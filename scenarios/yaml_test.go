package scenarios

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/strictyaml"
	"github.com/mqttload/mqttload/mqtt/packet"
)

func parse(t *testing.T, text string) *Scenario {
	t.Helper()
	s, err := Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func casesOf(t *testing.T, s *Scenario) []Case {
	t.Helper()
	cases, err := s.Cases()
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// ones fills in what pairs and loopback settle to.
func ones(l *Load, topics int) {
	l.Topics, l.Publishers, l.Subscribers, l.TopicsPerPublisher, l.TopicsPerSubscriber, l.Arrival = topics, 1, 1, 1, 1, Constant
}

// checkErrors compares all lines of an error.
func checkErrors(t *testing.T, err error, want ...string) {
	t.Helper()
	var list Errors
	if err == nil || !errors.As(err, &list) {
		t.Fatalf("error %v of type %T, want Errors", err, err)
	}
	if got := err.Error(); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// full has every key that there is.
const full = `name: everything
description: all keys at once
target: {url: [mqtt://broker:1883, "mqtt://[::1]"], connect_timeout: 5s, connect_rate: 500.5, reconnect: true, follow_server_reference: true, start_number: 7, source_ip: [127.0.0.1, "::1"]}
matrix: {qos: [0, 1, 2], payload: [10, 1KiB, "text:a,b"], protocol: ["5"], transport: [tls], inflight: [10, 100]}
load: {shape: loopback, pairs: 2, messages: 1000, min_time: 500ms, rate: 0, duration: 0s, launches: 2, warmup: 0, iterations: 4,
  idle: 5, verify: off, drain: 2s, fresh_iterations: true, operations_per_message: 2}
clients:
  topic: bench/%i
  client_id: bench-%r-%i
  username: 0123
  password: 0o17
  auth_method: SCRAM-SHA-256
  reauth_interval: 30s
  keepalive: 30s
  clean_start: false
  session_expiry: 1h
  retain: true
  will_topic: w
  will_payload: p
  will_qos: 2
  will_retain: true
  will_delay: 1s
  user_properties: {TraceId: x, traceid: 1.0, on: yes}
tls: {cafile: ca.pem, capath: /cas, cert: c.pem, key: c.key, key_password_file: kp, servername: broker, alpn: [mqtt], tls_min: 1.2, tls_max: "1.3", curves: [X25519, P-256], insecure: true, tls_resume: true}
gates: ["p99 < 5ms @ qos=1", lost == 0]
exclude: ["qos=2/payload=1024", "payload=text:a,b/inflight=10"]
`

func TestParseEverything(t *testing.T) {
	s, err := Parse("dir/x.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	// Those that exclude each other, or loopback, have tests of their own.
	elsewhere := []string{"password_file", "password_env", "topics", "publishers", "subscribers", "topics_per_publisher", "topics_per_subscriber", "share", "filter",
		"rate_per_client", "interval", "stages", "ramp", "arrival", "credentials"}
	for _, f := range propertyFields() {
		elsewhere = append(elsewhere, f.key)
	}
	for _, f := range fields {
		if !slices.Contains(elsewhere, f.key) && s.places[f.key] == (place{}) {
			t.Errorf("%s is not in the test", f.key)
		}
	}
	cases := casesOf(t, s)
	if len(cases) != 3*3*2-2-3 {
		t.Errorf("%d cases", len(cases))
	}
	c := cases[0]
	if c.ID != "qos=0/payload=10/protocol=5/transport=tls/inflight=10" || c.Load.Inflight != 10 || c.Payload.Size != 10 {
		t.Errorf("first case %s %+v", c.ID, c.Load)
	}
	l := Load{Shape: Loopback, Pairs: 2, Inflight: 10, Messages: 1000, MinTime: 500 * time.Millisecond, Launches: 2, Iterations: 4, Drain: 2 * time.Second, FreshIterations: true, OperationsPerMessage: 2}
	ones(&l, 2)
	l.Idle, l.VerifyOff = 5, true
	if !reflect.DeepEqual(c.Load, l) {
		t.Errorf("load %+v", c.Load)
	}
	k := c.Clients
	if k.Topic != "bench/%i" || k.ClientID != "bench-%r-%i" || k.Username != "0123" || k.Password != "0o17" || k.KeepAlive != 30*time.Second ||
		k.CleanStart || k.SessionExpiry != time.Hour || !k.Retain || !k.HasUsername || !k.HasPassword {
		t.Errorf("clients %+v", k)
	}
	props := []packet.UserProperty{{Name: "TraceId", Value: "x"}, {Name: "traceid", Value: "1.0"}, {Name: "on", Value: "yes"}}
	if len(k.UserProperties) != 3 || k.UserProperties[0] != props[0] || k.UserProperties[1] != props[1] || k.UserProperties[2] != props[2] {
		t.Errorf("user properties %v", k.UserProperties)
	}
	o := c.TLS
	if o.CAFiles[0] != "dir/ca.pem" || o.CAPath != "/cas" || o.CertFile != "dir/c.pem" || o.KeyFile != "dir/c.key" || o.KeyPasswordFile != "dir/kp" ||
		o.ServerName != "broker" || o.ALPN[0] != "mqtt" || o.MinVersion != 0x303 || o.MaxVersion != 0x304 || len(o.Curves) != 2 || !o.Insecure || !o.Resume {
		t.Errorf("tls %+v", o)
	}
	g := c.Target
	if len(g.URLs) != 2 || g.URLs[1].String() != "mqtts://[::1]:8883" || g.ConnectTimeout != 5*time.Second || g.ConnectRate != 500.5 || len(g.SourceIPs) != 2 {
		t.Errorf("target %+v", g)
	}
	if len(s.Gates) != 2 || s.Gates[0] != "p99 < 5ms @ qos=1" || s.Gates[1] != "lost == 0" || s.GatePlace(1) != "dir/x.yaml:25" {
		t.Errorf("gates %q, the second in %s", s.Gates, s.GatePlace(1))
	}
}

// TestGatesAreNotMeasured: what is demanded of results does not change them.
func TestGatesAreNotMeasured(t *testing.T) {
	hash := func(text string) string {
		s, err := Parse("x.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return s.Hash()
	}
	if hash("matrix: {qos: [1]}\ngates: [lost == 0]\n") != hash("matrix: {qos: [1]}\n") {
		t.Error("gates change the hash")
	}
}

func TestScalarsStayAsWritten(t *testing.T) {
	for in, want := range map[string]string{
		"0123": "0123", "1.0": "1.0", "true": "true", "0x1F": "0x1F", "2024-01-02": "2024-01-02", "1_000": "1_000", `"~"`: "~", "Yes": "Yes", `""`: "", "'a b'": "a b",
	} {
		s := parse(t, "clients: {username: "+in+"}")
		if c := casesOf(t, s)[0]; c.Clients.Username != want || !c.Clients.HasUsername {
			t.Errorf("%s: %q", in, c.Clients.Username)
		}
	}
	for _, in := range []string{"5", `"5"`, "'5'"} {
		if c := casesOf(t, parse(t, "matrix: {protocol: "+in+"}"))[0]; c.Protocol != packet.V5 {
			t.Errorf("%s: %v", in, c.Protocol)
		}
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
	}{
		{"empty", "", []string{"x.yaml: the scenario is empty: write at least a matrix, such as matrix: {qos: [0, 1, 2]}"}},
		{"comment only", "# nothing\n", []string{"x.yaml: the scenario is empty: write at least a matrix, such as matrix: {qos: [0, 1, 2]}"}},
		{"null", "~\n", []string{"x.yaml: the scenario is empty: write at least a matrix, such as matrix: {qos: [0, 1, 2]}"}},
		{"a word", "hello", []string{"x.yaml:1: this is not a scenario: one begins with keys such as matrix: and load:"}},
		{"a list", "- a", []string{"x.yaml:1: this is not a scenario: one begins with keys such as matrix: and load:"}},
		{"no keys", "{}", []string{"x.yaml:1: this is not a scenario: one begins with keys such as matrix: and load:"}},
		{"two documents", "name: a\n---\nname: b\n", []string{"x.yaml:2: the file holds a second document: remove one of them"}},
		{"syntax, flow", "name: a\nmatrix: {qos: [0\n", []string{"x.yaml:2: not YAML: did not find expected ',' or ']'"}},
		{"syntax, indent", "name: a\nload:\n  pairs: 1\n inflight: 2\n", []string{"x.yaml:4: not YAML: did not find expected key"}},
		{"syntax, tab", "name: a\nload:\n\tpairs: 1\n", []string{"x.yaml:3: not YAML: found character that cannot start any token"}},
		{"syntax, colon", "name: a\nmatrix: qos: 1\n", []string{"x.yaml:2: not YAML: mapping values are not allowed in this context"}},
		{"unknown key", "matrix:\n\n\n  qoss: 1\n", []string{`x.yaml:4: unknown key "qoss", did you mean "qos"?`}},
		{"unknown section", "loads: {}\n", []string{`x.yaml:1: unknown key "loads", did you mean "load"?`}},
		{"nothing near", "tls: {zzzzzz: 1}\n", []string{`x.yaml:1: unknown key "zzzzzz": known here are cafile, capath, cert, key, key_password_file, servername, alpn, tls_min, tls_max, curves, insecure, tls_resume`}},
		{"hyphen", "target: {connect-timeout: 5s}\n", []string{`x.yaml:1: unknown key "connect-timeout", did you mean "connect_timeout"?`}},
		{"wrong section", "load: {qos: 1}\nmatrix: {url: h}\nclients: {pairs: 3}\nqos: 1\n", []string{
			"x.yaml:1: qos belongs to matrix", "x.yaml:2: url belongs to target", "x.yaml:3: pairs belongs to load", "x.yaml:4: qos belongs to matrix"}},
		{"later", "tls: {keylog: f}\n", []string{
			"x.yaml:1: keylog is not supported yet in this version: remove it"}},
		{"gates", "name: a\ngates: [{lost: 0}]\n", []string{"x.yaml:2: gates[0] takes a value, not keys with values: quote a value that begins with {"}},
		{"twice", "name: a\nname: b\nload: {pairs: 1, pairs: 2}\n", []string{`x.yaml:2: key "name" is given twice, first in line 1`, `x.yaml:3: key "pairs" is given twice, first in line 3`}},
		{"axis and load", "load: {pairs: 1}\nmatrix: {pairs: [1, 2]}\n", []string{"x.yaml:2: pairs is in matrix and in load: keep one"}},
		{"load and axis", "matrix: {pairs: [1, 2]}\nload: {pairs: 1}\n", []string{"x.yaml:2: pairs is in matrix and in load: keep one"}},
		{"list in load", "load: {pairs: [1, 2]}\n", []string{"x.yaml:1: pairs takes one value in load: list it in matrix to make it an axis"}},
		{"list in clients", "clients: {topic: [a]}\n", []string{"x.yaml:1: clients.topic takes one value, not a list: quote a value that begins with ["}},
		{"no value", "load:\n  pairs:\nmatrix: {qos: []}\nclients: {password: ~}\n", []string{
			`x.yaml:2: load.pairs has no value: write "" for an empty one, quote one that begins with #, or remove it`, "x.yaml:3: qos has no values", `x.yaml:4: clients.password has no value: write "" for an empty one, quote one that begins with #, or remove it`}},
		{"empty section", "load:\n", []string{"x.yaml:1: section load must hold keys with values: fill it or remove it"}},
		{"values", "matrix:\n  qos: [0, 3,\n    one]\n  payload: [10, hello]\n  protocol: [3]\n", []string{
			"x.yaml:2: qos 3: qos must be 0, 1 or 2", "x.yaml:3: qos one: qos must be 0, 1 or 2",
			"x.yaml:4: payload hello is not a payload size: write a whole number of bytes such as 10, 1KiB or 8kB, @FILE for a file, text:WORD for the word itself, or one of template:, uniform:, normal:, mix: and trace:FILE",
			"x.yaml:5: protocol 3: protocol must be 3.1, 3.1.1 or 5: 3 means 3.1 to some tools and 3.1.1 to others: write 3.1 or 3.1.1"}},
		{"same value twice", "matrix: {payload: [1024, 1KiB], qos: [1, 1]}\n", []string{
			"x.yaml:1: payload 1024 is listed twice, as 1024 and as 1KiB", "x.yaml:1: qos 1 is listed twice"}},
		{"numbers", "load: {pairs: 0, inflight: 65536, launches: 010, iterations: 1_000, warmup: -1, messages: 1e3}\n", []string{
			"x.yaml:1: pairs 0: pairs must be a whole number from 1 to 1000000",
			"x.yaml:1: inflight 65536: inflight must be a whole number from 1 to 65535",
			"x.yaml:1: launches 010: launches must be written without leading zeros: write 10",
			"x.yaml:1: iterations 1_000: iterations must be a whole number from 1 to 100000",
			"x.yaml:1: warmup -1: warmup must be a whole number from 0 to 100000",
			"x.yaml:1: messages 1e3: messages must be a whole number from 0 to 1000000000000"}},
		{"durations", "load: {drain: 5, min_time: 0s}\nclients: {keepalive: 1.5s, session_expiry: -1s}\ntarget: {connect_timeout: \"\"}\n", []string{
			"x.yaml:1: drain 5 has no unit: write 5s", "x.yaml:1: min_time 0s: min_time must be more than 0",
			"x.yaml:2: keepalive 1.5s: keepalive must be whole seconds: MQTT carries no fractions",
			"x.yaml:2: session_expiry -1s: session_expiry must not be negative",
			`x.yaml:3: connect_timeout "": connect_timeout is empty: write a duration such as 30s, 250ms or 1m30s`}},
		{"keepalive", "clients: {keepalive: 65536s}\n", []string{"x.yaml:1: keepalive 65536s: keepalive must be from 0s to 18h12m15s"}},
		{"booleans", "clients: {retain: yes}\n", []string{"x.yaml:1: retain yes: retain must be true or false"}},
		{"rate", "target: {connect_rate: -1, source_ip: [localhost]}\n", []string{
			"x.yaml:1: connect_rate -1: connect_rate must be a number from 0 to 10000000, per second",
			"x.yaml:1: source_ip localhost: source_ip must be an IP address of this machine"}},
		{"topic", "clients: {topic: a/+/b}\n", []string{"x.yaml:1: topic a/+/b: topic must not contain a wildcard, + or # [MQTT-3.3.2-2]"}},
		{"topic empty", "clients: {topic: ''}\n", []string{`x.yaml:1: topic "": topic must not be empty [MQTT-4.7.3-1]`}},
		{"topic NUL", "clients: {topic: \"a\\0\"}\n", []string{`x.yaml:1: topic "a\x00": topic contains U+0000 [MQTT-4.7.3-2]`}},
		{"topic share", "clients: {topic: $share/g/t}\n", []string{"x.yaml:1: topic $share/g/t: topic must not start with $share/, which marks a shared subscription"}},
		{"variables", "clients: {topic: 'a/%x', client_id: '%c', username: 'u%'}\n", []string{
			"x.yaml:1: topic a/%x: topic has the unknown variable %x: known are %i, %c, %u, %r; write %% for a percent sign",
			"x.yaml:1: client_id %c: client_id cannot use %c: it can use %i, %u, %r",
			"x.yaml:1: username u%: username ends with a single %: write %% for a percent sign"}},
		{"message number", "clients: {topic: 'a/%s'}\n", []string{"x.yaml:1: topic a/%s: topic cannot use %s: it can use %i, %c, %u, %r"}},
		{"passwords", "clients: {password: s3cret, password_env: P}\n", []string{"x.yaml:1: password and password_env are both given: keep one"}},
		{"url", "target: {url: ['mqtt://u:s3cret@h', 'mqtt://u:s3cret@h:0']}\n", []string{"x.yaml:1: url: number 2 of 2: port must be 1-65535"}},
		{"tls", "tls: {tls_min: 1.4, curves: [P-224], cert: ''}\n", []string{
			`x.yaml:1: tls_min 1.4: unknown TLS version "1.4": give 1.2 or 1.3 (1.0 and 1.1 only for old servers)`,
			`x.yaml:1: curves P-224: unknown curve "P-224": choose from X25519MLKEM768, SecP256r1MLKEM768, SecP384r1MLKEM1024, X25519, P-256, P-384, P-521`,
			`x.yaml:1: cert "": cert is empty`}},
		{"alias", "matrix:\n  qos: &a [0]\n  payload: *a\nclients: {topic: &b x, client_id: *b}\n", []string{
			"x.yaml:2: anchors and aliases are not supported: write the value out, and quote one that begins with & or *",
			"x.yaml:3: anchors and aliases are not supported: write the value out, and quote one that begins with & or *",
			"x.yaml:4: anchors and aliases are not supported: write the value out, and quote one that begins with & or *",
			"x.yaml:4: anchors and aliases are not supported: write the value out, and quote one that begins with & or *"}},
		{"alias of nothing", "clients:\n  password: *s3cret\n", []string{"x.yaml: anchors and aliases are not supported: quote a value that begins with & or *"}},
		{"anchor", "clients:\n  password: &s3cret x\n", []string{"x.yaml:2: anchors and aliases are not supported: write the value out, and quote one that begins with & or *"}},
		{"secret tag", "clients:\n  password: !s3cret\n", []string{"x.yaml:2: tags are not supported: quote a value that begins with !"}},
		{"secret tag handle", "clients:\n  password: !s3cret!x\n", []string{"x.yaml:2: not YAML: found undefined tag handle"}},
		{"no space", "clients: {username: u, password:s3cret}\n", []string{`x.yaml:1: key "password" has no space after its colon: write password: VALUE`}},
		{"no space, twice", "clients: {a:s3cret: 1, a:s3cret: 2}\n", []string{
			`x.yaml:1: key "a" is given twice, first in line 1`,
			`x.yaml:1: unknown key "a": known here are topic, client_id, username, password, password_file, password_env, keepalive, clean_start, session_expiry, retain, credentials, user_properties, topic_alias, topic_alias_maximum, receive_maximum, maximum_packet_size, request_problem_information, request_response_information, message_expiry, payload_format, subscription_identifier, no_local, retain_as_published, retain_handling, content_type, response_topic, correlation_data, auth_method, reauth_interval, will_topic, will_payload, will_qos, will_retain, will_delay`}},
		{"a comma in a value", "clients: {username: u, password: x,s3cret9}\n", []string{"x.yaml:1: found a word without a value instead of a key: quote a value that holds a comma"}},
		{"all of a list", "target: {url: [mqtt://a:99999, h, http://b, ws://c], source_ip: [a, b]}\ntls:\n  curves:\n    - X\n    - Y\n", []string{
			"x.yaml:1: url: number 1 of 4: port must be 1-65535", `x.yaml:1: url: number 3 of 4: scheme "http" is unknown: known are mqtt, tcp, mqtts, ssl, tls and tcps`,
			"x.yaml:1: url: number 4 of 4: scheme ws is not supported yet: mqtt, tcp, mqtts, ssl, tls and tcps are",
			"x.yaml:1: source_ip a: source_ip must be an IP address of this machine", "x.yaml:1: source_ip b: source_ip must be an IP address of this machine",
			`x.yaml:4: curves X: unknown curve "X": choose from X25519MLKEM768, SecP256r1MLKEM768, SecP384r1MLKEM1024, X25519, P-256, P-384, P-521`,
			`x.yaml:5: curves Y: unknown curve "Y": choose from X25519MLKEM768, SecP256r1MLKEM768, SecP384r1MLKEM1024, X25519, P-256, P-384, P-521`}},
		{"merge", "load: {<<: {pairs: 1}}\n", []string{"x.yaml:1: a key must be a plain word: tags, anchors, aliases and merge keys are not supported"}},
		{"tag", "clients: {topic: !!binary aGk=}\n", []string{"x.yaml:1: tags are not supported: quote a value that begins with !"}},
		{"nested", "matrix: {qos: [[0]]}\nload: {pairs: {a: 1}}\n", []string{"x.yaml:1: matrix.qos[0] takes one value, not a list: quote a value that begins with [", "x.yaml:2: load.pairs takes a value, not keys with values: quote a value that begins with {"}},
		{"properties", "clients: {user_properties: {a=b: 1, c: ~}}\n", []string{
			"x.yaml:1: the name of a user property cannot hold = here", `x.yaml:1: clients.user_properties.c has no value: write "" for an empty one, quote one that begins with #, or remove it`}},
		{"not UTF-8", "name: \xff\xfe\n", []string{"x.yaml: not YAML: invalid leading UTF-8 octet"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(tt.in))
			checkErrors(t, err, tt.want...)
			if strings.Contains(err.Error(), "s3cret") {
				t.Error("a password is shown")
			}
		})
	}
}

func TestParseErrorFields(t *testing.T) {
	_, err := Parse("d/x.yaml", []byte("matrix:\n  qos: [0, 3]\n"))
	var list Errors
	if !errors.As(err, &list) || len(list) != 1 {
		t.Fatal(err)
	}
	if want := (Error{File: "d/x.yaml", Line: 2, Path: "matrix.qos[1]", Msg: "qos 3: qos must be 0, 1 or 2"}); list[0] != want {
		t.Errorf("%+v", list[0])
	}
}

func TestParseBombs(t *testing.T) {
	_, err := Parse("x.yaml", []byte("name: "+strings.Repeat("x", strictyaml.MaxSize)))
	checkErrors(t, err, "x.yaml: the file is larger than 1 MiB")

	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		prev := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+prev+",", 8) + "*" + prev + "]\n"
	}
	start := time.Now()
	if _, err = Parse("x.yaml", []byte(bomb)); err == nil || time.Since(start) > 5*time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	if _, err = Parse("x.yaml", []byte("matrix: {qos: "+strings.Repeat("[", 20_000))); err == nil {
		t.Error("deep nesting was taken")
	}
}

func TestFilesAreRelativeToTheScenario(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"s.yaml": "matrix: {payload: ['@data']}\nclients: {username: u, password_file: pw}\n", "data": "payload", "pw": "s3cret\r\nmore\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(filepath.Join(dir, "s.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c := casesOf(t, s)[0]
	if string(c.Payload.Data) != "payload" || c.Clients.Password != "s3cret" || c.ID != "qos=0/payload=@data/protocol=3.1.1" || s.Name != "s" {
		t.Errorf("%s %q %q %q", c.ID, c.Payload.Data, c.Clients.Password, s.Name)
	}
}

func FuzzScenario(f *testing.F) {
	f.Add([]byte(full))
	for _, s := range Builtins() {
		f.Add(s.Source())
	}
	f.Add([]byte("matrix: {qos: [0, 3], pairs: [1, 2]}\nexclude: [qos=0/pairs=1]\n"))
	f.Add([]byte("clients: {topic: '%i%%', user_properties: [a=b]}\nmatrix: {protocol: 5}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("x.yaml", data)
		if err != nil {
			var list Errors
			if !errors.As(err, &list) || len(list) == 0 {
				t.Fatalf("error of type %T", err)
			}
			return
		}
		_ = s.Effective()
		_ = s.Hash()
		_ = s.Warnings()
		cases, err := s.Cases()
		if err != nil {
			return
		}
		ids := map[string]bool{}
		for _, c := range cases {
			if ids[c.ID] {
				t.Errorf("id %s twice", c.ID)
			}
			ids[c.ID] = true
		}
	})
}
