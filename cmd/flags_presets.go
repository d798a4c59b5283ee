package cmd

import (
	"slices"
	"strings"
)

// pick returns flags of run by name; "name/letter" gives one another short letter.
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

// presetFlags combines a command's own flags with those that all three share.
// properties are the MQTT 5 properties that apply to it.
func presetFlags(properties []string, own ...flagSpec) []flagGroup {
	groups := []flagGroup{
		{"Target", pick("url", "host", "port", "connect-timeout", "connect-rate/R", "reconnect", "follow-server-reference",
			"start-number", "source-ip")},
		{"Load", own},
	}
	for _, g := range runFlags {
		switch {
		case strings.HasPrefix(g.title, "MQTT 5"):
			g.flags = pick(properties...)
		case strings.HasPrefix(g.title, "MQTT"):
			g.flags = slices.DeleteFunc(slices.Clone(g.flags), func(f flagSpec) bool { return f.name == "topic" || f.name == "retain" })
		case strings.HasPrefix(g.title, "Gates"):
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
	helloProperties = []string{"request-problem-information", "request-response-information"}
	takenProperties = append([]string{"topic-alias-maximum", "receive-maximum", "maximum-packet-size"},
		helloProperties...)
	pubProperties = append([]string{"topic-alias", "message-expiry", "content-type", "response-topic",
		"correlation-data", "payload-format"}, helloProperties...)
	subProperties = append([]string{"subscription-identifier", "no-local", "retain-as-published", "retain-handling"},
		takenProperties...)
)

// Flags of run that have another meaning or default in a preset.
var (
	clientsFlag = flagSpec{name: "clients", short: "c", tool: true, aliases: []string{"count"}, value: "N",
		help: "number of connections", preset: "1"}
	durationFlag = flagSpec{name: "duration", value: "TIME", help: "stop after this time", preset: "run until stopped"}
)

var (
	connFlags = presetFlags(takenProperties, slices.Concat(
		[]flagSpec{clientsFlag, durationFlag}, pick("protocol", "transport", "tls"))...)
	pubFlags = presetFlags(pubProperties, slices.Concat([]flagSpec{
		clientsFlag,
		{name: "message", short: "m", tool: true, value: "TEXT", help: "payload as text; same as --payload text:TEXT"},
		{name: "size", short: "s", tool: true, value: "SIZE", help: "payload size; same as --payload", preset: "256"},
		{name: "limit", short: "L", tool: true, value: "N", help: "stop after this many messages, over all publishers"},
	}, pick("topic", "payload"), []flagSpec{
		{name: "interval", short: "I", value: "TIME",
			help: "time between two messages of each publisher, such as 10ms", preset: "1s"},
	}, pick("rate", "rate-per-client", "stages", "ramp", "arrival"), []flagSpec{durationFlag}, pick("inflight"), []flagSpec{
		{name: "verify", value: "MODE",
			help: "on: stamp each payload in its first 8 bytes; off: send payloads unchanged", preset: "off"},
	}, pick("qos", "retain", "protocol", "transport", "tls"))...)
	subFlags = presetFlags(subProperties, slices.Concat([]flagSpec{
		{name: "clients", short: "c", tool: true, value: "N", help: "number of subscribers", preset: "1"},
		{name: "topic", short: "t", tool: true, value: "FILTER",
			help: "filter to subscribe to; wildcards, variables and $share/GROUP/ allowed"},
		{name: "count", short: "C", tool: true, value: "N", help: "stop after this many messages, over all clients"},
		durationFlag,
	}, pick("qos", "protocol", "transport", "tls"))...)
)
