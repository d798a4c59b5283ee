package scenarios

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

func TestBuiltins(t *testing.T) {
	want := map[string]int{"default": 18, "quick": 6, "tls": 8, "turbomqtt": 12, "fan-out": 6, "fan-in": 3, "many-to-many": 2, "shared": 3,
		"publish": 3, "churn": 2, "offline": 4, "connect": 1, "idle": 3, "steady": 3, "ramp": 1}
	list := Builtins()
	if len(list) != len(want) {
		t.Errorf("%d built-ins", len(list))
	}
	for _, s := range list {
		cases := casesOf(t, s)
		if len(cases) != want[s.Name] || s.Description == "" || len(s.Warnings()) > 0 || len(s.Source()) == 0 {
			t.Errorf("%s: %d cases, %q, %v", s.Name, len(cases), s.Description, s.Warnings())
		}
		for _, c := range cases {
			id := Expand(c.Clients.ClientID, Vars{I: maxClientNumber, R: "abcd1234"})
			// [MQTT-3.1.3-5]: what every broker must take.
			if len(id) > 23 || strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
				t.Errorf("%s: client id %s", s.Name, id)
			}
		}
		if opened, err := Open(s.Name); err != nil || opened.Name != s.Name {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}

func TestDefault(t *testing.T) {
	c := casesOf(t, builtin("default"))[0]
	want := Load{Shape: Pairs, Pairs: 1, Inflight: 100, MinTime: 250 * time.Millisecond, Launches: 1, Warmup: 3, Iterations: 15, Drain: 5 * time.Second, OperationsPerMessage: 1}
	ones(&want, 1)
	if !reflect.DeepEqual(c.Load, want) || c.Transport != TCP || len(c.Target.URLs) != 0 || !c.Clients.CleanStart {
		t.Errorf("%+v", c)
	}
}

func TestQuickIsQuick(t *testing.T) {
	var total time.Duration
	for _, c := range casesOf(t, builtin("quick")) {
		// An iteration sized by time may take up to twice its least time.
		total += 2 * c.Load.MinTime * time.Duration(c.Load.Launches*(c.Load.Warmup+c.Load.Iterations))
	}
	if total >= 10*time.Second {
		t.Errorf("takes %v", total)
	}
}

func TestTurboMQTT(t *testing.T) {
	cases := casesOf(t, builtin("turbomqtt"))
	want := Load{Shape: Loopback, Pairs: 1, Inflight: 65535, Messages: 1000, MinTime: 250 * time.Millisecond, Launches: 10, Warmup: 10, Iterations: 10,
		Drain: 30 * time.Second, FreshIterations: true, OperationsPerMessage: 2}
	ones(&want, 1)
	for i, c := range cases {
		if !reflect.DeepEqual(c.Load, want) || c.Protocol != packet.V311 || c.QoS != byte(i/4) || c.Payload.Size != []int{10, 1024, 2048, 8192}[i%4] || c.Clients.KeepAlive != 5*time.Second {
			t.Errorf("%s: %+v", c.ID, c)
		}
	}
	topic := Expand(cases[0].Clients.Topic, Vars{I: 1, R: "abcd1234"})
	if topic != "testabcd1234-0000-4000-8000-000000000001" || len(topic) != 40 {
		t.Errorf("topic %s of %d bytes", topic, len(topic))
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	for in, want := range map[string]string{
		"defualt":       `unknown scenario "defualt", did you mean "default"?: built in are churn, connect, default, fan-in, fan-out, idle, many-to-many, offline, publish, quick, ramp, shared, steady, tls, turbomqtt; write the path of a YAML file for another one`,
		"zzz":           `unknown scenario "zzz": built in are churn, connect, default, fan-in, fan-out, idle, many-to-many, offline, publish, quick, ramp, shared, steady, tls, turbomqtt; write the path of a YAML file for another one`,
		dir + "/x.yaml": "scenario file " + dir + "/x.yaml: no such file or directory",
		dir:             "scenario file " + dir + ": is a directory, not a file",
		"/dev/zero":     "scenario file /dev/zero: is a device or a socket, not a file",
	} {
		_, err := Open(in)
		checkErrors(t, err, want)
	}
}
