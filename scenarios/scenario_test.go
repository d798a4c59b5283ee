package scenarios

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/mqtt/packet"
)

func ids(cases []Case) []string {
	var list []string
	for _, c := range cases {
		list = append(list, c.ID)
	}
	return list
}

func checkIDs(t *testing.T, s *Scenario, want ...string) {
	t.Helper()
	if got := ids(casesOf(t, s)); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func set(t *testing.T, s *Scenario, pairs ...string) *Scenario {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if err := s.Set(pairs[i], pairs[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestSetAxes(t *testing.T) {
	base := func() *Scenario { return parse(t, "matrix: {payload: [10, 20], pairs: [1, 2]}") }
	checkIDs(t, base(),
		"qos=0/payload=10/protocol=3.1.1/pairs=1", "qos=0/payload=10/protocol=3.1.1/pairs=2",
		"qos=0/payload=20/protocol=3.1.1/pairs=1", "qos=0/payload=20/protocol=3.1.1/pairs=2")
	checkIDs(t, set(t, base(), "qos", "2,1", "payload", "1k", "pairs", "3"),
		"qos=2/payload=1024/protocol=3.1.1", "qos=1/payload=1024/protocol=3.1.1")
	checkIDs(t, set(t, base(), "payload", "10, text:a,b/c", "pairs", "1", "tls", "true", "inflight", "5,6"),
		"qos=0/payload=10/protocol=3.1.1/transport=tls/inflight=5", "qos=0/payload=10/protocol=3.1.1/transport=tls/inflight=6",
		"qos=0/payload=text:a,b%2Fc/protocol=3.1.1/transport=tls/inflight=5", "qos=0/payload=text:a,b%2Fc/protocol=3.1.1/transport=tls/inflight=6")
}

func TestOrderOfAxesIsAsWritten(t *testing.T) {
	checkIDs(t, parse(t, "matrix: {transport: [tls, tcp], qos: [1, 0]}"),
		"transport=tls/qos=1/payload=10/protocol=3.1.1", "transport=tls/qos=0/payload=10/protocol=3.1.1",
		"transport=tcp/qos=1/payload=10/protocol=3.1.1", "transport=tcp/qos=0/payload=10/protocol=3.1.1")
}

func TestSetValues(t *testing.T) {
	s := set(t, builtin("default"), "messages", "5000", "min-time", "1s", "launches", "2", "warmup", "0", "iterations", "4", "drain", "1s",
		"shape", "loopback", "fresh-iterations", "true", "operations-per-message", "2", "topic", "a/%i", "client-id", "c%i", "username", "u", "password", "p,q",
		"keepalive", "0s", "retain", "true", "clean-start", "false", "connect-rate", "10", "connect-timeout", "1s", "source-ip", "127.0.0.1,::1",
		"alpn", "mqtt,h2", "curves", "X25519,P-256", "tls-min", "1.3", "servername", "n", "insecure", "true", "qos", "1", "protocol", "5", "payload", "10")
	if err := s.SetFrom("--user-property", "user-property", "A=1,2", "a=b=c"); err != nil {
		t.Fatal(err)
	}
	if err := s.SetFrom("--cafile", "cafile", "a,b.pem", "c.pem"); err != nil {
		t.Fatal(err)
	}
	c := casesOf(t, s)[0]
	want := Load{Shape: Loopback, Pairs: 1, Inflight: 100, Messages: 5000, MinTime: time.Second, Launches: 2, Iterations: 4, Drain: time.Second, FreshIterations: true, OperationsPerMessage: 2}
	ones(&want, 1)
	if !reflect.DeepEqual(c.Load, want) {
		t.Errorf("load %+v", c.Load)
	}
	if k := c.Clients; k.Password != "p,q" || k.KeepAlive != 0 || k.CleanStart || !k.Retain || k.UserProperties[0] != (packet.UserProperty{Name: "A", Value: "1,2"}) ||
		k.UserProperties[1] != (packet.UserProperty{Name: "a", Value: "b=c"}) {
		t.Errorf("clients %+v", k)
	}
	if g := c.Target; g.ConnectRate != 10 || g.ConnectTimeout != time.Second || strings.Join(g.SourceIPs, " ") != "127.0.0.1 ::1" {
		t.Errorf("target %+v", g)
	}
	if o := c.TLS; strings.Join(o.ALPN, " ") != "mqtt h2" || len(o.Curves) != 2 || strings.Join(o.CAFiles, " ") != "a,b.pem c.pem" || !o.Insecure || c.Transport != TLS {
		t.Errorf("tls %+v", o)
	}
}

func TestSetErrors(t *testing.T) {
	tests := []struct {
		key, text string
		want      []string
	}{
		{"qos", "3", []string{"--qos 3: qos must be 0, 1 or 2"}},
		{"qos", "0,-1,one", []string{"--qos -1: qos must be 0, 1 or 2", "--qos one: qos must be 0, 1 or 2"}},
		{"qos", "1,,2", []string{`--qos "": qos must be 0, 1 or 2`}},
		{"qos", "1,1", []string{"--qos: qos 1 is listed twice"}},
		{"payload", "-1", []string{"--payload -1: payload must not be negative"}},
		{"payload", "hello", []string{"--payload hello is not a payload size: write a whole number of bytes such as 10, 1KiB or 8kB, @FILE for a file, text:WORD for the word itself, or one of template:, uniform:, normal:, mix: and trace:FILE"}},
		{"payload", "300MB", []string{"--payload 300MB: a payload of 300MB is over the limit: MQTT packets carry at most 268,435,455 bytes of topic, properties and payload"}},
		{"protocol", "3", []string{"--protocol 3: protocol must be 3.1, 3.1.1 or 5: 3 means 3.1 to some tools and 3.1.1 to others: write 3.1 or 3.1.1"}},
		{"transport", "ws", []string{"--transport ws: transport ws is not supported yet: tcp and tls are"}},
		{"transport", "udp", []string{"--transport udp: transport must be tcp or tls"}},
		{"shape", "star", []string{"--shape star: shape must be one of pairs, loopback, fan-out, fan-in, many-to-many, shared, publish, subscribe, connect, churn, offline"}},
		{"port", "70000", []string{"--port 70000: port must be 1-65535"}},
		{"port", "s3cret", []string{"--port: port must be 1-65535"}},
		{"source-ip", "127.0.0.1,x,y", []string{"--source-ip x: source_ip must be an IP address of this machine", "--source-ip y: source_ip must be an IP address of this machine"}},
		{"curves", "P-1,P-256,P-2", []string{`--curves P-1: unknown curve "P-1": choose from X25519MLKEM768, SecP256r1MLKEM768, SecP384r1MLKEM1024, X25519, P-256, P-384, P-521`,
			`--curves P-2: unknown curve "P-2": choose from X25519MLKEM768, SecP256r1MLKEM768, SecP384r1MLKEM1024, X25519, P-256, P-384, P-521`}},
		{"username", "a\x01", []string{`--username "a\x01": username contains a control character [MQTT5 1.5.4]`}},
		{"username", "a\ufffe", []string{`--username "a\ufffe": username contains a Unicode non-character [MQTT5 1.5.4]`}},
		{"client-id", "a\x7f%i", []string{`--client-id "a\x7f%i": client_id contains a control character [MQTT5 1.5.4]`}},
		{"url", "mqtt://a%01:s3cret@h", []string{"--url: user name of the target contains a control character [MQTT5 1.5.4]"}},
		{"port", "0", []string{"--port 0: port must be 1-65535"}},
		{"drain", "30", []string{"--drain 30 has no unit: write 30s"}},
		{"min-time", "0s", []string{"--min-time 0s: min_time must be more than 0"}},
		{"tls", "maybe", []string{"--tls maybe: tls must be true or false"}},
		{"qoss", "1", []string{`--qoss: unknown key "qoss", did you mean "qos"?`}},
		{"conect-timeout", "1", []string{`--conect-timeout: unknown key "conect-timeout", did you mean "connect-timeout"?`}},
		{"url", "mqtt://u:s3cret@h:99999", []string{"--url: port must be 1-65535"}},
		{"host", "u:s3cret@h", []string{"--host: host takes a name or an address: give a URL as url"}},
		{"host", "", []string{"--host: host is empty"}},
		{"password", strings.Repeat("s3cret", 20000), []string{"--password: password is over MQTT's limit of 65,535 bytes"}},
		{"password_file", "", []string{`--password-file "": password_file is empty`}},
		{"topic", "a/#", []string{"--topic a/#: topic must not contain a wildcard, + or # [MQTT-3.3.2-2]"}},
		{"topic", strings.Repeat("x", 65536), []string{"--topic " + strings.Repeat("x", 60) + "...: topic is longer than 65535 bytes [MQTT-4.7.3-3]"}},
		{"topic", "\xed\xa0\x80", []string{`--topic "\xed\xa0\x80": topic is not well-formed UTF-8 [MQTT-1.5.4-1]`}},
		{"user-property", "novalue", []string{"--user-property novalue: user_properties must be written NAME=VALUE"}},
		{"alpn", "", []string{`--alpn "": alpn names have 1 to 255 bytes`}},
	}
	for _, tt := range tests {
		s := builtin("default")
		before := len(casesOf(t, s))
		err := s.Set(tt.key, tt.text)
		checkErrors(t, err, tt.want...)
		if strings.Contains(err.Error(), "s3cret") {
			t.Error("a password is shown")
		}
		if after := len(casesOf(t, s)); after != before {
			t.Errorf("--%s %s was refused and changed the matrix from %d to %d cases", tt.key, text.Quote(tt.text), before, after)
		}
	}
	checkErrors(t, builtin("default").SetFrom("MQTTLOAD_QOS", "qos", "3"), "MQTTLOAD_QOS 3: qos must be 0, 1 or 2")
	checkErrors(t, builtin("default").SetFrom("mqttload.yaml:3: qos", "qos", "3"), "mqttload.yaml:3: qos 3: qos must be 0, 1 or 2")
	checkErrors(t, builtin("default").SetFrom("--url", "url"), "--url: has no value")
	checkErrors(t, builtin("default").SetFrom("--topic", "topic", "a", "b"), "--topic: topic takes one value")
	checkErrors(t, builtin("default").SetFrom("--url", "url", "mqtt://a:s3cret", "h", "ws://c"),
		"--url: number 1 of 3: port must be 1-65535", "--url: number 3 of 3: scheme ws is not supported yet: mqtt, tcp, mqtts, ssl, tls and tcps are")
	checkErrors(t, builtin("default").SetFrom("--user-property", "user-property", "a", "b=c", "d"),
		"--user-property a: user_properties must be written NAME=VALUE", "--user-property d: user_properties must be written NAME=VALUE")
}

func TestTargets(t *testing.T) {
	const file = "target: {url: [mqtts://file]}"
	tests := []struct {
		name string
		set  []string
		want string
	}{
		{"file", nil, "mqtts://file:8883"},
		{"url", []string{"url", "h:1"}, "mqtt://h:1"},
		{"host", []string{"host", "h"}, "mqtt://h:1883"},
		{"host and port", []string{"host", "h", "port", "1884"}, "mqtt://h:1884"},
		{"IPv6 host", []string{"host", "::1", "port", "1884"}, "mqtt://[::1]:1884"},
		{"IPv6 host without port", []string{"host", "fe80::1%lo"}, "mqtt://[fe80::1%lo]:1883"},
	}
	for _, tt := range tests {
		s := set(t, parse(t, file), tt.set...)
		if got := casesOf(t, s)[0].Target.URLs; len(got) != 1 || got[0].String() != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, got, tt.want)
		}
	}
	s := set(t, builtin("quick"), "port", "1884")
	if got := casesOf(t, s)[0].Target.URLs; got[0].String() != "mqtt://localhost:1884" {
		t.Errorf("port alone: %v", got)
	}
	if got := casesOf(t, builtin("quick"))[0].Target.URLs; len(got) != 0 {
		t.Errorf("no target: %v", got)
	}
	_, err := set(t, parse(t, file), "port", "1").Cases()
	checkErrors(t, err, "--port: the target is given as url: put the port there")
	s = set(t, builtin("quick"), "url", "a")
	checkErrors(t, s.Set("host", "b"), "--host: --url is given too: keep one")
}

func TestImpliedTransport(t *testing.T) {
	tests := []struct {
		in   string
		set  []string
		want Transport
	}{
		{"name: x", nil, TCP},
		{"target: {url: mqtt://h}", nil, TCP},
		{"target: {url: mqtts://h}", nil, TLS},
		{"tls: {cafile: ca.pem}", nil, TLS},
		{"name: x", []string{"tls", "true"}, TLS},
		{"tls: {insecure: false}", nil, TCP},
	}
	for _, tt := range tests {
		c := casesOf(t, set(t, parse(t, tt.in), tt.set...))[0]
		if c.Transport != tt.want {
			t.Errorf("%s %v: %s", tt.in, tt.set, c.Transport)
		}
		if strings.Contains(c.ID, "transport") != (tt.set != nil) {
			t.Errorf("%s %v: id %s", tt.in, tt.set, c.ID)
		}
	}
	_, err := parse(t, "target: {url: [mqtt://a, mqtts://b]}").Cases()
	checkErrors(t, err, "x.yaml:1: some targets are mqtt:// and some mqtts://: list transport: [tcp, tls] in matrix to measure each separately")
	casesOf(t, parse(t, "target: {url: [mqtt://a, mqtts://b]}\nmatrix: {transport: [tcp, tls]}"))
	_, err = parse(t, "matrix: {transport: tcp}\ntls: {insecure: true}").Cases()
	checkErrors(t, err, "x.yaml:1: transport is tcp, and there are TLS options: add tls to transport or remove them")
	// Files that are missing are told with the rest.
	s := set(t, parse(t, "matrix: {transport: tcp}\ntls: {cafile: [no/a, no/b]}"), "cert", "no/c")
	_, err = s.Cases()
	checkErrors(t, err, "--cert no/c: no such file or directory",
		"x.yaml:1: transport is tcp, and there are TLS options: add tls to transport or remove them",
		"x.yaml:2: cafile no/a: no such file or directory", "x.yaml:2: cafile no/b: no such file or directory")
}

func TestPasswords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pw")
	if err := os.WriteFile(path, []byte("100%i\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) { return "from env", name == "PW" }
	tests := []struct {
		set  []string
		want string
	}{
		{[]string{"username", "u", "password", "flag"}, "flag"},
		{[]string{"username", "u", "password", "flag", "password-file", path}, "100%%i"},
		{[]string{"username", "u", "password-file", path, "password-env", "PW"}, "from env"},
		{[]string{"username", "u", "password-env", "PW", "password", ""}, ""},
	}
	for _, tt := range tests {
		s := set(t, builtin("quick"), tt.set...)
		s.LookupEnv = env
		if k := casesOf(t, s)[0].Clients; k.Password != tt.want || !k.HasPassword {
			t.Errorf("%v: %q", tt.set, k.Password)
		}
	}
	s := set(t, builtin("quick"), "password-file", path+"x")
	_, err := s.Cases()
	checkErrors(t, err, "--password-file: password file "+path+"x: no such file or directory")
	s = set(t, builtin("quick"), "password-env", "NONE")
	_, err = s.Cases()
	checkErrors(t, err, "--password-env: password_env: the environment cannot be read here")
	s.LookupEnv = env
	_, err = s.Cases()
	checkErrors(t, err, "--password-env: password_env: the variable NONE is not set")
}

func TestPasswordFileWithBOM(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pw")
	if err := os.WriteFile(path, []byte("\xef\xbb\xbfs3cret\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := set(t, builtin("quick"), "username", "u", "password-file", path)
	if got := casesOf(t, s)[0].Clients.Password; got != "s3cret" {
		t.Errorf("password %q", got)
	}
}

// TestRepeated: values of an axis may be spread over several flags; text:
// takes the rest of one of them.
func TestRepeated(t *testing.T) {
	s := builtin("quick")
	for key, texts := range map[string][]string{"qos": {"1", "2"}, "payload": {"text:a,b", "1KiB,2KiB"}, "protocol": {"5"}} {
		if err := s.SetFrom("--"+key, key, texts...); err != nil {
			t.Fatal(err)
		}
	}
	checkIDs(t, s, "qos=1/payload=text:a,b/protocol=5", "qos=1/payload=1024/protocol=5", "qos=1/payload=2048/protocol=5",
		"qos=2/payload=text:a,b/protocol=5", "qos=2/payload=1024/protocol=5", "qos=2/payload=2048/protocol=5")
}

func TestUserOfURL(t *testing.T) {
	tests := []struct {
		set            []string
		user, password string // of the URL
	}{
		{nil, "u", "p"},
		{[]string{"username", "other"}, "", ""},
		{[]string{"password", "q"}, "u", "q"},
	}
	for _, tt := range tests {
		s := set(t, set(t, builtin("quick"), "url", "mqtt://u:p@h"), tt.set...)
		u := casesOf(t, s)[0].Target.URLs[0]
		if u.Username != tt.user || u.Password != tt.password {
			t.Errorf("%v: %q %q", tt.set, u.Username, u.Password)
		}
		if u := casesOf(t, s)[0].Target.URLs[0]; u.Username != tt.user {
			t.Errorf("%v: the second time %q", tt.set, u.Username)
		}
	}
}

func TestWarnings(t *testing.T) {
	codes := func(s *Scenario) string {
		var list []string
		for _, w := range s.Warnings() {
			list = append(list, w.Code)
		}
		return strings.Join(list, " ")
	}
	if got := codes(builtin("default")); got != "" {
		t.Errorf("default: %s", got)
	}
	path := filepath.Join(t.TempDir(), "pw")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := set(t, builtin("default"), "topic", "$SYS/%i", "insecure", "true", "password-file", path)
	if got := codes(s); got != "dollar-topic insecure" {
		t.Errorf("warnings: %s", got)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := codes(s); got != "dollar-topic insecure password-file-mode" {
		t.Errorf("warnings: %s", got)
	}
}
