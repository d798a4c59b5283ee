package scenarios

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	tests := []struct{ in, text, addr, user, password string }{
		{"mqtt://h", "mqtt://h:1883", "h:1883", "", ""},
		{"MQTT://h/", "mqtt://h:1883", "h:1883", "", ""},
		{"tcp://h:1", "mqtt://h:1", "h:1", "", ""},
		{"mqtts://h", "mqtts://h:8883", "h:8883", "", ""},
		{"ssl://h", "mqtts://h:8883", "h:8883", "", ""},
		{"tls://h:65535", "mqtts://h:65535", "h:65535", "", ""},
		{"tcps://h", "mqtts://h:8883", "h:8883", "", ""},
		{"h", "mqtt://h:1883", "h:1883", "", ""},
		{"localhost:1884", "mqtt://localhost:1884", "localhost:1884", "", ""},
		{"1.2.3.4", "mqtt://1.2.3.4:1883", "1.2.3.4:1883", "", ""},
		{"1.2.3.4:1884", "mqtt://1.2.3.4:1884", "1.2.3.4:1884", "", ""},
		{"::1", "mqtt://[::1]:1883", "[::1]:1883", "", ""},
		{"[::1]", "mqtt://[::1]:1883", "[::1]:1883", "", ""},
		{"[::1]:1884", "mqtt://[::1]:1884", "[::1]:1884", "", ""},
		{"mqtt://[::1]:1884", "mqtt://[::1]:1884", "[::1]:1884", "", ""},
		{"fe80::1%lo", "mqtt://[fe80::1%lo]:1883", "[fe80::1%lo]:1883", "", ""},
		{"mqtts://[fe80::1%25lo]", "mqtts://[fe80::1%lo]:8883", "[fe80::1%lo]:8883", "", ""},
		{"[fe80::1%25]:1", "mqtt://[fe80::1%25]:1", "[fe80::1%25]:1", "", ""},
		{"mqtt://u@h", "mqtt://h:1883", "h:1883", "u", ""},
		{"mqtt://u:p%40s%2Fs@h:2", "mqtt://h:2", "h:2", "u", "p@s/s"},
		{"mqtt://u:a@b@h:2", "mqtt://h:2", "h:2", "u", "a@b"},
		{"mqtt://dom%5Cu:@h", "mqtt://h:1883", "h:1883", `dom\u`, ""},
		{"u:p@h", "mqtt://h:1883", "h:1883", "u", "p"},
		{"mqtt://bücher.example", "mqtt://bücher.example:1883", "bücher.example:1883", "", ""},
	}
	for _, tt := range tests {
		u, err := ParseURL(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if u.String() != tt.text || u.Addr() != tt.addr || u.Username != tt.user || u.Password != tt.password {
			t.Errorf("%s: got %s %s %q %q", tt.in, u, u.Addr(), u.Username, u.Password)
		}
		userinfo := strings.Contains(tt.in, "@")
		if u.HasUsername != userinfo || u.HasPassword != (userinfo && tt.in != "mqtt://u@h") {
			t.Errorf("%s: has user %v, password %v", tt.in, u.HasUsername, u.HasPassword)
		}
		if again, err := ParseURL(u.String()); err != nil || again.Addr() != u.Addr() || again.Transport() != u.Transport() {
			t.Errorf("%s: String does not parse to the same: %v, %v", tt.in, again, err)
		}
	}
}

func TestParseURLHasPort(t *testing.T) {
	for in, want := range map[string]bool{"h": false, "h:1883": true, "mqtt://[::1]": false, "[::1]:1883": true} {
		if u, err := ParseURL(in); err != nil || u.HasPort != want {
			t.Errorf("%s: HasPort %v, %v", in, u.HasPort, err)
		}
	}
}

// Every string of it holds s3cret where a password may stand, or what is not
// one but might be; no error repeats it.
func TestParseURLErrors(t *testing.T) {
	tests := []struct{ in, want string }{
		{"ws://u:s3cret@h", "scheme ws is not supported yet: mqtt, tcp, mqtts, ssl, tls and tcps are"},
		{"wss://h", "scheme wss is not supported yet"},
		{"unix:///run/x", "scheme unix is not supported yet"},
		{"http://u:s3cret@h", `scheme "http" is unknown: known are mqtt, tcp, mqtts, ssl, tls and tcps`},
		{"://u:s3cret@h", "target has no scheme before ://"},
		{"u:s3cret@mqtt://h", "target has no scheme before ://"},
		{"", "target has no host: write mqtt://host:1883"},
		{"mqtt://", "target has no host"},
		{"mqtt://u:s3cret@", "target has no host"},
		{"mqtt://u:s3cret@:1883", "target has no host"},
		{"mqtt://u:s3cret@h:0", "port must be 1-65535"},
		{"mqtt://u:s3cret@h:70000", "port must be 1-65535"},
		{":99999", "target has no host"},
		{"h:99999", "port must be 1-65535"},
		{"h:-1", "port must be 1-65535"},
		{"h:abc", "port must be 1-65535"},
		{"h:", "port must be 1-65535"},
		{"mqtt://u:s3cret", "port must be 1-65535"},
		{"mqtt://u:s3cret@h/path", "target has a path, query or fragment"},
		{"mqtt://h?x=s3cret", "target has a path, query or fragment"},
		{"mqtt://u:s3#cret@h", "user name or password of the target holds /, ? or #: write %2F, %3F or %23"},
		{"mqtt://u:s3cret%@h", "write %25 for a percent sign"},
		{"mqtt://u:%zzs3cret@h", "write %25 for a percent sign"},
		{"mqtt://u%00:s3cret@h", "without U+0000"},
		{"mqtt://u:s3 cret@h", "target holds a space or a control character"},
		{"mqtt://h\n", "target holds a space or a control character"},
		{"mqtt://u:s3cret@[::1", "brackets that do not match"},
		{"[::1]x", "brackets that do not match"},
		{"[h]:1", "no IPv6 address in its brackets"},
		{"1:2:3", "several colons and is not an IPv6 address"},
		{"mqtt://h!", "a character that DNS names"},
		{"mqtt://" + strings.Repeat("h", 254), "over 253 characters"},
	}
	for _, tt := range tests {
		_, err := ParseURL(tt.in)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %s", tt.in, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "cret") {
			t.Errorf("%q: password in %v", tt.in, err)
		}
	}
}

func TestURLHidesPassword(t *testing.T) {
	u, err := ParseURL("mqtt://user:s3cret@h")
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(struct{ U URL }{u})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(u), fmt.Sprintf("%+v", []URL{u}), fmt.Sprintf("%#v", u), string(data)} {
		if strings.Contains(text, "s3cret") || strings.Contains(text, "user") || !strings.Contains(text, "mqtt://h:1883") {
			t.Errorf("shown as %s", text)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"mqtt://u:p@h:1883", "::1", "[fe80::1%25lo]:1", "h:1", "mqtt://%", "ws://h", "a://b@c/d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseURL(s)
		if err != nil {
			return
		}
		again, err := ParseURL(u.String())
		if err != nil || again.Addr() != u.Addr() || again.Scheme != u.Scheme {
			t.Errorf("%q: %s parses to %s, %v", s, u, again, err)
		}
		if u.Port < 1 || u.Port > 65535 || u.Host == "" {
			t.Errorf("%q: %+v", s, u.Addr())
		}
	})
}
