//go:build unix

package cmd

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

// fakes are brokers that break their promises, each in one way.
var fakes = map[string]func(published func()) connServer{
	// swallow takes messages and delivers none.
	"swallow": func(published func()) connServer {
		return &mqtttest.Fake{Deliver: func(int, packet.Publish) []packet.Publish {
			published()
			return nil
		}}
	},
	"lossy": func(func()) connServer {
		return faulty(broker.Fault{From: 4, Every: 10, Effect: broker.Lose{}})
	},
	"repeating": func(func()) connServer {
		return faulty(broker.Fault{From: 4, Every: 10, Effect: broker.Repeat{Copies: 1}})
	},
	"refusing": func(func()) connServer {
		return &mqtttest.Fake{Connack: packet.Connack{Code: packet.ReasonNotAuthorized}}
	},
	// forbidding refuses every subscription.
	"forbidding": func(func()) connServer {
		return &mqtttest.Fake{Suback: func(packet.Subscription) packet.ReasonCode { return packet.ReasonNotAuthorized }}
	},
	// deaf rejects every message.
	"deaf": func(func()) connServer {
		return &mqtttest.Fake{
			Deliver: func(int, packet.Publish) []packet.Publish { return nil },
			Ack:     func(int, *packet.Publish) (packet.ReasonCode, bool) { return packet.ReasonNotAuthorized, true },
		}
	},
	// wild delivers to a topic that no message can have.
	"wild": func(func()) connServer {
		return &mqtttest.Fake{Wild: true}
	},
	// qos1 and tiny allow less than the protocol does.
	"qos1": func(func()) connServer {
		return &mqtttest.Fake{Connack: packet.Connack{Properties: packet.Properties{MaximumQoS: new(byte(1))}}}
	},
	"tiny": func(func()) connServer {
		return &mqtttest.Fake{Connack: packet.Connack{Properties: packet.Properties{MaximumPacketSize: new(uint32(100))}}}
	},
	// forgetful drops the Content Type, allows no topic alias, and has Response
	// Information.
	"forgetful": func(func()) connServer {
		k := packet.Connack{Properties: packet.Properties{TopicAliasMaximum: new(uint16(0)), ResponseInfo: new("re/")}}
		return &mqtttest.Fake{Connack: k, Deliver: func(_ int, p packet.Publish) []packet.Publish {
			var props packet.Properties
			_ = p.ParseProperties(&props) // it has been decoded
			props.ContentType = nil
			_ = p.SetProperties(&props)
			return []packet.Publish{p}
		}}
	},
	"hanging-up": func(func()) connServer {
		return faulty(broker.Fault{From: 251, Times: 1, Effect: broker.Cut{}})
	},
}

type publishedKey struct{}

// fake starts a broker of a kind and sets a variable to its port: fake NAME KIND
func fake(ts *testscript.TestScript, _ bool, args []string) {
	published := make(chan struct{})
	f := fakes[args[1]](sync.OnceFunc(func() { close(published) }))
	ts.Value(valuesKey{}).(map[any]any)[publishedKey{}] = published
	port, stop, err := serve(f)
	ts.Check(err)
	ts.Defer(stop)
	ts.Setenv(args[0], strconv.Itoa(port))
}

// awaitPublish waits until the fake broker has got a message.
func awaitPublish(ts *testscript.TestScript, _ bool, _ []string) {
	select {
	case <-ts.Value(valuesKey{}).(map[any]any)[publishedKey{}].(chan struct{}):
	case <-time.After(20 * time.Second):
		ts.Fatalf("nothing was published within 20 s")
	}
}

type valuesKey struct{}

// sameRun demands that reports come from the same effective scenario: samerun FILE FILE...
func sameRun(ts *testscript.TestScript, _ bool, args []string) {
	var first string
	for _, name := range args {
		r, err := result.Read(ts.MkAbs(name))
		ts.Check(err)
		b, err := json.Marshal([]any{r.Scenario, r.ScenarioHash, len(r.Cases), r.Cases[0].Params})
		ts.Check(err)
		if first == "" {
			first = string(b)
		}
		if string(b) != first {
			ts.Fatalf("%s: %s\n%s: %s", args[0], first, name, b)
		}
	}
}

// noCanary looks for the password in what the last command printed and in every
// file that it may have written, as it is and encoded.
func noCanary(ts *testscript.TestScript, _ bool, _ []string) {
	canary := ts.Getenv("CANARY")
	inputs := map[string]bool{"pw": true, "conf.yaml": true, "secret.yaml": true, "open": true}
	texts := map[string]string{"stdout": ts.ReadFile("stdout"), "stderr": ts.ReadFile("stderr")}
	files, err := os.ReadDir(ts.Getenv("WORK"))
	ts.Check(err)
	for _, f := range files {
		if f.Type().IsRegular() && !inputs[f.Name()] {
			texts[f.Name()] = ts.ReadFile(f.Name())
		}
	}
	for name, text := range texts {
		for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))[:8], hex.EncodeToString([]byte(canary))} {
			if strings.Contains(text, form) {
				ts.Fatalf("%s holds the password:\n%s", name, text)
			}
		}
	}
}

// certs writes throw-away certificates to a directory: certs DIR
func certs(ts *testscript.TestScript, _ bool, args []string) {
	b, err := tlsconf.ThrowAway(nil, time.Now())
	ts.Check(err)
	ts.Check(b.WriteDir(ts.MkAbs(args[0])))
}

// address sets NAME to the URL in a file and NAME_PORT to its port: address NAME FILE
func address(ts *testscript.TestScript, _ bool, args []string) {
	u, err := scenarios.ParseURL(strings.TrimSpace(ts.ReadFile(args[1])))
	ts.Check(err)
	ts.Setenv(args[0], u.String())
	ts.Setenv(args[0]+"_PORT", strconv.Itoa(u.Port))
}
