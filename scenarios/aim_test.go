package scenarios

import (
	"strings"
	"testing"
)

// TestAim: which targets a case uses, by transport.
func TestAim(t *testing.T) {
	url := func(s string) URL {
		u, err := ParseURL(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	axis := func(tr Transport, urls ...string) Case {
		c := Case{Transport: tr}
		for _, u := range urls {
			c.Target.URLs = append(c.Target.URLs, url(u))
		}
		return c
	}
	tests := []struct {
		name  string
		cases []Case
		want  string // transport and targets of each case; "" for a fault
	}{
		{"plain", []Case{axis(TCP, "h")}, "tcp mqtt://h:1883"},
		{"mqtts", []Case{axis(TLS, "mqtts://h")}, "tls mqtts://h:8883"},
		{"two that take turns", []Case{axis(TCP, "h", "h:2")}, "tcp mqtt://h:1883 mqtt://h:2"},
		{"--tls moves the default port", []Case{axis(TLS, "mqtt://h")}, "tls mqtts://h:8883"},
		{"--tls keeps a port", []Case{axis(TLS, "mqtt://h:1884")}, "tls mqtts://h:1884"},
		{"both with default ports", []Case{axis(TCP, "h"), axis(TLS, "h")}, "tcp mqtt://h:1883; tls mqtts://h:8883"},
		{"both with a target each", []Case{axis(TCP, "mqtt://h:1", "mqtts://h:2"), axis(TLS, "mqtt://h:1", "mqtts://h:2")},
			"tcp mqtt://h:1; tls mqtts://h:2"},
		{"both with one port", []Case{axis(TCP, "mqtt://h:1"), axis(TLS, "mqtt://h:1")}, ""},
		{"mqtts is not taken for plain", []Case{axis(TCP, "mqtts://h"), axis(TLS, "mqtts://h")}, ""},
		{"tcp to mqtts with a port", []Case{axis(TCP, "mqtts://h:1")}, ""},
		{"embedded", []Case{axis(TLS)}, "tls"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bad := selectTargets(test.cases)
			var parts []string
			for _, c := range test.cases {
				s := string(c.Transport)
				for _, u := range c.Target.URLs {
					s += " " + u.String()
				}
				parts = append(parts, s)
			}
			if got := strings.Join(parts, "; "); test.want != "" && (len(bad) > 0 || got != test.want) {
				t.Errorf("got %s, %v; want %s", got, bad, test.want)
			}
			if test.want == "" && (len(bad) == 0 || bad[0].Hint == "") {
				t.Errorf("got %v, want a fault with a hint", bad)
			}
		})
	}
}

// TestAt: cases without a target get the endpoint of their transport, with the
// CA beside their own; the others, and the cases given, stay as they are.
func TestAt(t *testing.T) {
	own := URL{Scheme: "mqtt", Host: "h", Port: 1}
	cases := []Case{{Transport: TCP}, {Transport: TLS}, {Transport: TLS}, {Transport: TCP}}
	cases[2].TLS.CAPEM = []byte("own ")
	cases[3].Target.URLs = []URL{own}
	plain, secure := URL{Scheme: "mqtt", Host: "127.0.0.1", Port: 2}, URL{Scheme: "mqtts", Host: "127.0.0.1", Port: 3}
	got := At(cases, map[Transport]Endpoint{TCP: {URL: plain}, TLS: {URL: secure, CAPEM: []byte("ca")}})
	for i, want := range []struct {
		url URL
		ca  string
	}{{plain, ""}, {secure, "ca"}, {secure, "own ca"}, {own, ""}} {
		if c := got[i]; len(c.Target.URLs) != 1 || c.Target.URLs[0] != want.url || string(c.TLS.CAPEM) != want.ca {
			t.Errorf("case %d: %v, CA %q", i, c.Target.URLs, c.TLS.CAPEM)
		}
	}
	if len(cases[0].Target.URLs) != 0 || cases[1].TLS.CAPEM != nil {
		t.Errorf("the cases were changed: %+v", cases)
	}
}
