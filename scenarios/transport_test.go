package scenarios

import (
	"slices"
	"testing"
)

// TestTransports: the rows agree with each other, and every name is read.
func TestTransports(t *testing.T) {
	for _, tr := range Transports() {
		if got, err := parseTransport(string(tr)); got != tr || err != nil {
			t.Errorf("%s is read as %s, %v", tr, got, err)
		}
		if over := tr.Secured(); !over.Secure() || over.Secured() != over || tr.Secure() != (over == tr) {
			t.Errorf("%s over TLS is %s", tr, over)
		}
		u, err := ParseURL(tr.Scheme() + "://h")
		if err != nil || u.Transport() != tr || u.Port != tr.Port() || tr.Port() == 0 || tr.Memory() == 0 {
			t.Errorf("%s: %+v, %v", tr, u, err)
		}
	}
	if Transport("").Scheme() != "mqtt" || (URL{Scheme: "ws"}).Transport() != TCP {
		t.Error("the default transport is not TCP")
	}
}

func TestURLOver(t *testing.T) {
	for in, want := range map[string]string{"mqtt://h": "mqtts://h:8883", "mqtt://h:1884": "mqtts://h:1884", "mqtts://h": "mqtts://h:8883"} {
		u, err := ParseURL(in)
		if got := u.Over(TLS).String(); err != nil || got != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
}

// TestURLPath: the path belongs to the URLs of a transport that has one.
func TestURLPath(t *testing.T) {
	kept := transports
	defer func() { transports = kept }()
	transports = append(slices.Clip(kept), transport{name: "walk", scheme: "walk", port: 80, secured: TLS, path: true})
	for _, c := range []struct{ in, text, path, bad string }{
		{in: "walk://h", text: "walk://h:80"},
		{in: "walk://u:p@h:8080/mqtt", text: "walk://h:8080/mqtt", path: "/mqtt"},
		{in: "walk://h/", text: "walk://h:80/", path: "/"},
		{in: "walk://[::1]/a/b?c=d%20e", text: "walk://[::1]:80/a/b?c=d%20e", path: "/a/b?c=d%20e"},
		{in: "walk://h?c=d", text: "walk://h:80/?c=d", path: "/?c=d"},
		{in: "walk://h/a#b", bad: "target has a fragment, which is not sent to servers: remove it, or write %23"},
		{in: "walk://u:p/w@h", bad: "user name or password of the target holds /, ? or #: write %2F, %3F or %23"},
		{in: "mqtt://h/", text: "mqtt://h:1883"},
		{in: "mqtts://h/mqtt", bad: "target has a path, query or fragment, which MQTT over TCP does not have: remove it"},
	} {
		u, err := ParseURL(c.in)
		if c.bad != "" {
			if err == nil || err.Error() != c.bad {
				t.Errorf("%s: %v, want %s", c.in, err, c.bad)
			}
			continue
		}
		if err != nil || u.String() != c.text || u.Path != c.path {
			t.Errorf("%s: %s with path %q, %v", c.in, u, u.Path, err)
		}
		if again, err := ParseURL(u.String()); err != nil || again.String() != c.text {
			t.Errorf("%s is read as %s, %v", c.text, again, err)
		}
	}
}
