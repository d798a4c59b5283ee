package cmd

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/scenarios"
)

// The commands conn, pub and sub are for hands that know emqtt-bench, MQTTX or
// mosquitto_pub: the same engine as run, with the flags that those tools have,
// one case, and no warm-up.

// pick takes flags of run by name, one with another short letter as "name/letter".
func pick(names ...string) (list []flagSpec) {
	known := all(runFlags) // once: this runs at the start of every command
	for _, name := range names {
		name, short, other := strings.Cut(name, "/")
		f := known[slices.IndexFunc(known, func(f flagSpec) bool { return f.name == name })]
		if other {
			f.short = short
		}
		list = append(list, f)
	}
	return list
}

// presetFlags puts a command's own flags between those that all three share.
// properties are those of MQTT 5 that mean something to it.
func presetFlags(properties []string, own ...flagSpec) []flagGroup {
	groups := []flagGroup{
		{"Target", pick("url", "host", "port", "connect-timeout", "connect-rate/R", "reconnect", "follow-server-reference", "start-number", "source-ip")},
		{"Load", own},
	}
	for _, g := range runFlags {
		switch {
		case strings.HasPrefix(g.title, "MQTT 5"):
			g.flags = pick(properties...)
		case strings.HasPrefix(g.title, "MQTT"):
			g.flags = slices.DeleteFunc(slices.Clone(g.flags), func(f flagSpec) bool { return f.name == "topic" || f.name == "retain" })
		case strings.HasPrefix(g.title, "Judging"):
			g.flags = pick("fail-if", "gate")
		case strings.HasPrefix(g.title, "Output"):
			g.flags = slices.DeleteFunc(slices.Clone(g.flags), func(f flagSpec) bool { return f.name == "log" })
		case !strings.HasPrefix(g.title, "Will") && g.title != "TLS":
			continue
		}
		groups = append(groups, g)
	}
	return groups
}

var (
	clientsFlag     = flagSpec{name: "clients", short: "c", tool: true, aliases: []string{"count"}, help: "`N` connections (default 1)"}
	helloProperties = []string{"request-problem-information", "request-response-information"}
	takenProperties = append([]string{"topic-alias-maximum", "receive-maximum", "maximum-packet-size"}, helloProperties...)
	connFlags       = presetFlags(takenProperties, slices.Concat([]flagSpec{clientsFlag}, pick("protocol", "transport", "tls", "duration"))...)
	pubFlags        = presetFlags(append([]string{"topic-alias", "message-expiry", "content-type", "response-topic", "correlation-data", "payload-format"}, helloProperties...), slices.Concat([]flagSpec{
		clientsFlag,
		{name: "message", short: "m", tool: true, help: "`TEXT` to publish; the same as --payload text:TEXT"},
		{name: "size", short: "s", tool: true, help: "payload `SIZE`; the same as --payload (default 256)"},
		{name: "limit", short: "L", tool: true, help: "`N` messages in total over all publishers, and then end"},
	}, pick("topic", "payload", "interval/I", "rate", "rate-per-client", "stages", "ramp", "arrival", "duration", "inflight", "verify", "qos", "retain", "protocol", "transport", "tls"))...)
	subFlags = presetFlags(append([]string{"subscription-identifier", "no-local", "retain-as-published", "retain-handling"}, takenProperties...), slices.Concat([]flagSpec{
		{name: "clients", short: "c", tool: true, help: "`N` connections that subscribe (default 1)"},
		{name: "topic", short: "t", tool: true, help: "`FILTER` to subscribe to, wildcards, variables and $share/GROUP/ allowed"},
		{name: "count", short: "C", tool: true, help: "`N` messages in total over all clients, and then end"},
	}, pick("duration", "qos", "protocol", "transport", "tls"))...)
)

func (a *app) connCommand() *cobra.Command {
	return a.preset("conn", "Connect clients and keep them", connFlags, `Conn connects --clients clients, says how long that took, and keeps them until it
is stopped or --duration is over. Stopped with Ctrl-C it ends with exit code 0.`,
		"  mqttload conn -h broker -c 1000 --connect-rate 200", openConn)
}

func (a *app) pubCommand() *cobra.Command {
	return a.preset("pub", "Publish, as emqtt-bench's and MQTTX's pub do", pubFlags, `Pub publishes with --clients clients, each a message every second unless
--interval, --rate or another flag says how fast (--interval 0s: as fast as the
window allows), until it is stopped, or --limit or --duration is reached. Where the topic
has %i, %c or %u every client has its own. Payloads are sent as they are.
Stopped with Ctrl-C it ends with exit code 0.`,
		"  mqttload pub -h broker -t bench/%i -c 100 -I 10ms -s 256 -q 1 -L 1000", openPub)
}

func (a *app) subCommand() *cobra.Command {
	return a.preset("sub", "Subscribe and count, as emqtt-bench's and MQTTX's sub do", subFlags, `Sub connects --clients clients, subscribes each to --topic, and counts what comes
until it is stopped, or --count or --duration is reached.
Stopped with Ctrl-C it ends with exit code 0.`,
		"  mqttload sub -h broker -t 'bench/#' -c 50 -q 1", openSub)
}

func (a *app) preset(name, short string, groups []flagGroup, long, example string, open func([]string, settings, *bench.Faults) *scenarios.Scenario) *cobra.Command {
	c := &cobra.Command{Use: name + " [flags]", Short: short, Long: long, Example: example, Args: noArgs}
	define(c, groups)
	completeFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		r, err := a.prepare(c, args, measuring{groups: groups, open: open, live: true})
		if err != nil {
			return err
		}
		return r.run(c.Context())
	}
	return c
}

// presetScenario parses the scenario that a preset's flags override.
func presetScenario(name, shape string, s settings, bad *bench.Faults) *scenarios.Scenario {
	spellProtocol(s)
	sc, err := scenarios.Parse(name, []byte("load: {shape: "+shape+", warmup: 0}\n"))
	*bad = append(*bad, bench.AsFaults(err, bench.Usage)...)
	return sc
}

// spellings of protocol versions that only one thing can be meant by; a bare 3
// is two.
var spellings = map[string]string{
	"4": "3.1.1", "311": "3.1.1", "mqttv311": "3.1.1", "31": "3.1", "mqttv31": "3.1", "5.0": "5", "mqttv5": "5",
}

func spellProtocol(s settings) {
	one, ok := s["protocol"]
	if !ok {
		return
	}
	one.values = slices.Clone(one.values)
	for i, v := range one.values {
		if full, known := spellings[strings.ToLower(v)]; known {
			one.values[i] = full
		}
	}
	s["protocol"] = one
}

// give makes a setting of run from one of a preset, which messages name.
func (s settings) give(name, value string, from setting) {
	s[name] = setting{flagSpec: pick(name)[0], values: []string{value}, source: from.source, place: from.place}
}

// giveDefault is for what nobody has set.
func (s settings) giveDefault(name, value string) {
	if _, given := s[name]; !given {
		s.give(name, value, setting{source: fromFlag, place: "--" + name})
	}
}

// clients is the number of them, as a text that package scenarios judges.
func (s settings) clients(bad *bench.Faults) (string, setting) {
	one, ok := s["clients"]
	switch {
	case !ok:
		return "1", setting{source: fromFlag, place: "--clients"}
	case one.value() == "0":
		bad.Usage("", "%s 0: there must be at least one", one.place)
		return "1", one // so that this is the one error
	}
	return one.value(), one
}

func openConn(_ []string, s settings, bad *bench.Faults) *scenarios.Scenario {
	n, from := s.clients(bad)
	s.give("idle", n, from)
	s.giveDefault("duration", scenarios.MaxDuration.String())
	return presetScenario("conn", scenarios.Connect.Name, s, bad)
}

func openPub(_ []string, s settings, bad *bench.Faults) *scenarios.Scenario {
	n, from := s.clients(bad)
	if topic := s["topic"].value(); strings.Contains(topic, "%i") || strings.Contains(topic, "%c") || strings.Contains(topic, "%u") {
		s.give("topics", n, from)
	} else {
		s.give("publishers", n, from)
	}
	for _, alias := range []struct{ name, prefix string }{{"message", "text:"}, {"size", ""}} {
		if one, ok := s[alias.name]; ok {
			if other, twice := s["payload"]; twice {
				bad.Usage("keep one", "%s and %s both say what to send", other.place, one.place)
			}
			s.give("payload", alias.prefix+one.value(), one)
		}
	}
	s.giveDefault("payload", "256")
	if one, ok := s["limit"]; ok && one.value() == "0" {
		delete(s, "limit") // none, as in emqtt-bench
	} else if ok {
		s.give("messages", one.value(), one)
	}
	s.giveDefault("verify", "off")
	pace(s)
	return presetScenario("pub", scenarios.Publish.Name, s, bad)
}

// pace settles how fast and how long pub publishes.
func pace(s settings) {
	paced := slices.ContainsFunc([]string{"rate", "rate-per-client", "interval", "stages"}, func(name string) bool { _, ok := s[name]; return ok })
	if !paced {
		s.giveDefault("interval", "1s")
	}
	if _, limited := s["limit"]; limited || s["duration"].values != nil || s["stages"].values != nil {
		return
	}
	if v := s["interval"].value(); v == "0s" || v == "0" || s["rate"].value() == "0" || s["rate-per-client"].value() == "0" {
		// A closed loop, in iterations of a second.
		s.giveDefault("min-time", "1s")
		s.giveDefault("iterations", strconv.Itoa(int(scenarios.MaxDuration.Seconds())))
		return
	}
	s.giveDefault("duration", scenarios.MaxDuration.String())
}

func openSub(_ []string, s settings, bad *bench.Faults) *scenarios.Scenario {
	n, from := s.clients(bad)
	s.give("subscribers", n, from)
	if one, ok := s["topic"]; ok {
		s.give("filter", one.value(), one)
		delete(s, "topic")
	} else {
		bad.Usage("give --topic, such as -t 'bench/#'", "sub needs a filter to subscribe to")
	}
	return presetScenario("sub", scenarios.Subscribe.Name, s, bad)
}

// readCount is the number of messages after which sub ends, 0 for none.
func readCount(s settings, bad *bench.Faults) int64 {
	one, ok := s["count"]
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(one.value(), 10, 64)
	if err != nil || n < 1 {
		bad.Usage("", "%s %s: must be a whole number of messages from 1", one.place, printable(one.value()))
	}
	return n
}
