package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authScenario is a scenario that may authenticate, with more lines about clients.
func authScenario(protocol, url, clients string) []byte {
	return []byte("target: {url: [" + url + "]}\nmatrix: {qos: [0], payload: [10], protocol: [\"" + protocol + "\"]}\nclients: {" + clients + "}\n")
}

func TestAuth(t *testing.T) {
	s, err := Parse("x.yaml", authScenario("5", "mqtt://u:p@broker", "auth_method: SCRAM-SHA-256, reauth_interval: 90s"))
	if err != nil {
		t.Fatal(err)
	}
	c := casesOf(t, s)[0]
	if c.Clients.AuthMethod != SCRAMSHA256 || c.Clients.ReauthInterval != 90*time.Second || c.Target.FollowServerReference {
		t.Errorf("%+v %+v", c.Clients, c.Target)
	}
	plain, err := Parse("x.yaml", authScenario("5", "mqtt://u:p@broker", ""))
	if err != nil {
		t.Fatal(err)
	}
	if s.Hash() == plain.Hash() {
		t.Error("authentication is not in the hash")
	}
	if err := plain.Set("follow-server-reference", "true"); err != nil || !casesOf(t, plain)[0].Target.FollowServerReference {
		t.Errorf("follow_server_reference: %v", err)
	}
}

func TestAuthRefused(t *testing.T) {
	const secret = "p\u00e4ss-s3cret"
	rows := filepath.Join(t.TempDir(), "c.csv")
	write := func(content string) string {
		if err := os.WriteFile(rows, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return "auth_method: SCRAM-SHA-256, credentials: " + rows
	}
	for name, tt := range map[string]struct{ protocol, url, clients, want string }{
		"unknown method":   {"5", "mqtt://u:p@b", "auth_method: PLAIN", `auth_method PLAIN: auth_method must be SCRAM-SHA-256`},
		"3.1.1":            {"3.1.1", "mqtt://u:p@b", "auth_method: SCRAM-SHA-256", "auth_method needs protocol 5, and the matrix has 3.1.1"},
		"no target":        {"5", "", "auth_method: SCRAM-SHA-256, username: u, password: p", "the embedded broker has no users"},
		"no user":          {"5", "mqtt://b", "auth_method: SCRAM-SHA-256, password: p", "needs a user name and a password"},
		"no password":      {"5", "mqtt://b", "auth_method: SCRAM-SHA-256, username: u", "needs a user name and a password"},
		"one URL without":  {"5", "mqtt://u:p@b, mqtt://c", "auth_method: SCRAM-SHA-256", "needs a user name and a password"},
		"password":         {"5", "mqtt://b", "auth_method: SCRAM-SHA-256, username: u, password: " + secret, "printable ASCII"},
		"empty user":       {"5", "mqtt://b", "auth_method: SCRAM-SHA-256, username: '', password: p", "printable ASCII"},
		"only reauth":      {"5", "mqtt://b", "reauth_interval: 1s", "reauth_interval needs auth_method"},
		"rows, no column":  {"5", "mqtt://b", write("id,user\nc1,u\n"), "needs a user name and a password"},
		"no time":          {"5", "mqtt://u:p@b", "auth_method: SCRAM-SHA-256, reauth_interval: 30", "30"},
		"negative":         {"5", "mqtt://u:p@b", "auth_method: SCRAM-SHA-256, reauth_interval: -1s", "reauth_interval"},
		"follow in 3.1.1":  {"3.1.1", "mqtt://b], follow_server_reference: true, source_ip: [127.0.0.1", "", "follow_server_reference needs protocol 5"},
		"password and URL": {"5", "mqtt://u:" + "p%C3%A4ss-s3cret" + "@b", "auth_method: SCRAM-SHA-256", "printable ASCII"},
	} {
		s, err := Parse("x.yaml", authScenario(tt.protocol, tt.url, tt.clients))
		if err == nil {
			_, err = s.Cases()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	s, err := Parse("x.yaml", authScenario("5", "mqtt://b", write("user,password\nu,p\n")))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Set("publishers", "1"); err != nil {
		t.Fatal(err)
	}
	for rows, want := range map[string]string{"user,password\nu,p\nv,q\n": "", "user,password\nu,p\nu," + secret + "\n": ":3: auth_method", "user,password\n\"\",p\n": ":2: auth_method"} {
		write(rows)
		_, err := s.Cases()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%q: got %v, want %q", rows, err, want)
		}
	}
}

func TestParseReferences(t *testing.T) {
	plain := URL{Scheme: "mqtt", Host: "a", Port: 1884, Username: "u", HasUsername: true}
	secure := URL{Scheme: "mqtts", Host: "a", Port: 8884}
	for _, tt := range []struct {
		text string
		from URL
		want string
	}{
		{"b", plain, "mqtt://b:1883"},
		{"b:1885", plain, "mqtt://b:1885"},
		{"b", secure, "mqtts://b:8883"},
		{"b:1885", secure, "mqtts://b:1885"},
		{"10.10.151.22:8883", secure, "mqtts://10.10.151.22:8883"},
		{"[fe80::9610:3eff:fe1c]:1883", plain, "mqtt://[fe80::9610:3eff:fe1c]:1883"}, // as in [MQTT5 4.11]
		{"::1", plain, "mqtt://[::1]:1883"},
		{"[::1]", secure, "mqtts://[::1]:8883"},
		{" b:1  c:2 ", plain, "mqtt://b:1 mqtt://c:2"},
		{"ssl://b", plain, "mqtts://b:8883"},
		{"tcp://b", plain, "mqtt://b:1883"},
	} {
		list, err := ParseReferences(tt.text, tt.from)
		var got []string
		for _, u := range list {
			got = append(got, u.String())
			if u.Username != tt.from.Username || u.HasUsername != tt.from.HasUsername {
				t.Errorf("%q: user %q", tt.text, u.Username)
			}
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%q: got %q %v, want %q", tt.text, got, err, tt.want)
		}
	}
	for text, want := range map[string]string{
		"": "empty", " ": "empty", "[fe80::zz]:1883": "IPv6", "b:0": "port", "b:port": "port", "x\x1by": "control", "b:1:2": "colons",
		"eve:s3cret@b": "user information", "http://b": "unknown", "wss://b": "not supported", "tcp://b": "from TLS to plain TCP", "mqtt://b": "from TLS to plain TCP", "b c:": "port",
	} {
		if _, err := ParseReferences(text, secure); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func FuzzParseReferences(f *testing.F) {
	for _, text := range []string{"", "b", "b:1 c", "[::1]:1883", "mqtts://b", "u:p@b", "tcp://b/x"} {
		f.Add(text)
	}
	from := URL{Scheme: "mqtts", Host: "a", Port: 8883, Username: "u", HasUsername: true}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseReferences(text, from)
		if (err == nil) != (len(list) > 0) {
			t.Fatalf("%q: %v %v", text, list, err)
		}
		for _, u := range list {
			if u.Scheme != "mqtts" || u.Username != "u" || u.Port < 1 || u.Port > 65535 {
				t.Fatalf("%q: %#v", text, u)
			}
			again, err := ParseReferences(u.String(), from)
			if err != nil || again[0].Addr() != u.Addr() {
				t.Fatalf("%q: %v is not read back: %v %v", text, u, again, err)
			}
		}
	})
}
