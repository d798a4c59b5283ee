package preflight

import (
	"strings"
	"testing"

	"github.com/mqttload/mqttload/scenarios"
)

// hostCase has n idle connections to some targets from some addresses.
func hostCase(n, targets, sources int) scenarios.Case {
	var c scenarios.Case
	c.Load = scenarios.Load{Shape: scenarios.Connect, Topics: 1, TopicsPerPublisher: 1, TopicsPerSubscriber: 1, Idle: n}
	c.Target.URLs = make([]scenarios.URL, targets)
	c.Target.SourceIPs = make([]string, sources)
	return c
}

func TestHost(t *testing.T) {
	for _, test := range []struct {
		name  string
		host  Host
		c     scenarios.Case
		files uint64
		want  string // "check status: message", one a line
	}{
		{"nothing is known", Host{}, hostCase(10, 1, 0), 74, ""},
		{"enough", Host{Soft: 74, Hard: 74, FirstPort: 32768, LastPort: 60999, Tracked: 10, MaxTracked: 100}, hostCase(10, 1, 0), 74,
			"descriptors ok: need ~74, limit 74\n" +
				"ports ok: need 10 of 28,232 local ports per source address and target\n" +
				"conntrack ok: need 10 entries of the connection tracking table, 90 free"},
		{"too few descriptors", Host{Soft: 256, Hard: 4096}, hostCase(2000, 1, 0), 2020,
			"descriptors fail: need ~2,020 descriptors, limit 256 (hard 4,096)"},
		{"half of the ports", Host{FirstPort: 1, LastPort: 100}, hostCase(50, 1, 0), 0, "ports ok: need 50 of 100 local ports per source address and target"},
		{"more than half", Host{FirstPort: 1, LastPort: 100}, hostCase(51, 1, 0), 0, "ports warn: need 51 of 100 local ports per source address and target"},
		{"all of them", Host{FirstPort: 1, LastPort: 100}, hostCase(100, 1, 0), 0, "ports warn: need 100 of 100 local ports per source address and target"},
		{"one more", Host{FirstPort: 1, LastPort: 100}, hostCase(101, 1, 0), 0, "ports fail: need 101 of 100 local ports per source address and target"},
		{"two addresses and two targets", Host{FirstPort: 1, LastPort: 100}, hostCase(201, 2, 2), 0, "ports warn: need 51 of 100 local ports per source address and target"},
		{"tracking", Host{Tracked: 95, MaxTracked: 100}, hostCase(6, 1, 0), 0, "conntrack warn: need 6 entries of the connection tracking table, 5 free"},
	} {
		var got []string
		for _, l := range test.host.Check([]scenarios.Case{test.c}, test.files) {
			got = append(got, l.Check+" "+string(l.Status)+": "+l.Message)
			if (l.Status == OK) != (l.Hint == "") || (l.Status == Fail) != (l.Cause == Here) {
				t.Errorf("%s: %+v", test.name, l)
			}
		}
		if s := strings.Join(got, "\n"); s != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, s, test.want)
		}
	}
}
