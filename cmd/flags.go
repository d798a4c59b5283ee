package cmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mqttload/mqttload/report"
	"github.com/mqttload/mqttload/scenarios"
)

// Kinds of flags. All but switches are text here: what a value means is the
// business of the package that uses it, so that the same code checks a flag, a
// variable, a line of the configuration and one of a scenario.
const (
	single = iota
	list   // repeatable, each occurrence one value
	toggle // true or false
)

// flagSpec is one flag. In --help, value names the value behind the flag, and
// help is a sentence that stands without it; preset is the default, where there
// is one to tell.
type flagSpec struct {
	name, short string
	kind        int
	key         string // name in the environment and configurations, if different
	value       string
	help        string
	preset      string
	aliases     []string // names in other tools: accepted, not shown
	tool        bool     // about the tool, not about the scenario
	secret      bool     // its value is never shown
}

// usage is what --help and shell completions say of the flag.
func (f flagSpec) usage() string {
	if f.preset == "" {
		return f.help
	}
	return f.help + " [default: " + f.preset + "]"
}

// flagGroup is one section of --help.
type flagGroup struct {
	title string
	flags []flagSpec
}

// configFlag is the same in all commands that read the configuration.
var configFlag = flagSpec{name: "config", tool: true, value: "FILE",
	help: "configuration file", preset: "mqttload.yaml, if it exists"}

// formatFlag is the flag that chooses one of formats for stdout.
func formatFlag(formats []string) flagSpec {
	return flagSpec{name: "format", tool: true, value: "FORMAT",
		help: "format on stdout: " + strings.Join(formats, ", "), preset: "console"}
}

// outputFlag is the flag that writes what to files in one of formats.
func outputFlag(what string, formats formatSet) flagSpec {
	endings := make([]string, len(formats))
	for i, name := range formats {
		endings[i] = report.Extension(name)
	}
	return flagSpec{name: "output", short: "o", kind: list, tool: true, value: "FILE",
		help: "write the " + what + " to a file, in the format of its ending (" + strings.Join(endings, ", ") + ") " +
			"or as FORMAT=FILE; - is stdout; repeatable"}
}

// runFlags are the flags of run. Their order is that in which they are applied.
var runFlags = []flagGroup{
	{"Target", []flagSpec{
		{name: "url", kind: list, value: "URL",
			help:   "broker address, such as mqtt://HOST:PORT (schemes: " + scenarios.KnownSchemes() + "); repeat to use several, round-robin",
			preset: "the embedded broker"},
		{name: "host", short: "h", value: "NAME", help: "broker's host name or IP address"},
		{name: "port", short: "p", value: "N", help: "broker's port", preset: "1883, with TLS 8883"},
		{name: "connect-timeout", value: "TIME", help: "time limit for connecting, handshakes included", preset: "10s"},
		{name: "connect-rate", value: "N", help: "new connections per second, over all clients", preset: "no limit"},
		{name: "reconnect", kind: toggle, help: "reconnect clients that lose their connection, with back-off"},
		{name: "follow-server-reference", kind: toggle,
			help: "follow the broker's redirects (Server Reference, 0x9C and 0x9D); MQTT 5"},
		{name: "start-number", value: "N",
			help: "number of the first client (%i); give each machine its own range", preset: "1"},
		{name: "source-ip", kind: list, value: "ADDRESS",
			help: "local address to connect from; repeat to use several, round-robin"},
	}},
	{"Matrix (lists: each combination of values is a case; 0,1 is the same as giving the flag twice)", []flagSpec{
		{name: "qos", short: "q", kind: list, value: "LIST", help: "QoS levels: 0, 1, 2"},
		{name: "payload", kind: list, value: "LIST",
			help: "payloads: a size (10, 8KiB, 1MB), @FILE, uniform:10-1KiB, normal:1KiB+-200, trace:FILE.csv, " +
				"mix:10*9,8KiB*1, text:..., template:...; the last three include any commas that follow"},
		{name: "protocol", short: "V", kind: list, value: "LIST", help: "MQTT versions: 3.1, 3.1.1, 5"},
		{name: "transport", kind: list, value: "LIST", help: "transports: tcp, tls"},
		{name: "tls", kind: toggle, help: "same as --transport tls; implied by mqtts:// and by certificate flags"},
	}},
	{"Load", []flagSpec{
		{name: "shape", value: "SHAPE", help: "load shape: " + strings.Join(scenarios.ShapeNames(), ", "),
			preset: "pairs, or inferred from the client counts"},
		{name: "pairs", short: "c", value: "N", help: "number of topics with one publisher and one subscriber each"},
		{name: "topics", value: "N", help: "number of topics"},
		{name: "publishers", value: "N", help: "publishers per topic; 0 for none"},
		{name: "subscribers", value: "N", help: "subscribers per topic; 0 for none"},
		{name: "topics-per-publisher", value: "N", help: "topics that share one publisher connection", preset: "1"},
		{name: "topics-per-subscriber", value: "N", help: "topics that share one subscriber connection", preset: "1"},
		{name: "share", value: "GROUP",
			help: "use a shared subscription for the subscribers of each topic: $share/GROUP/..."},
		{name: "filter", value: "FILTER", help: "subscribe to this filter instead of the topics; wildcards allowed"},
		{name: "idle", value: "N", help: "additional connections that carry no messages, only keep-alives"},
		{name: "messages", value: "N",
			help:   "messages per iteration, over all publishers; with a rate, messages in the whole case",
			preset: "sized by --min-time"},
		{name: "inflight", short: "F", value: "N", help: "maximum messages in flight per publisher, 1 to 65535"},
		{name: "verify", value: "MODE", help: "on: stamp each payload in its first 8 bytes to check its delivery; " +
			"off: send payloads unchanged and only count messages", preset: "on"},
	}},
	{"Rate (with one of the first four, messages go out on a schedule, however slow the broker: an open loop)", []flagSpec{
		{name: "rate", value: "LIST",
			help: "total messages per second, over all publishers: 500, 10k, 1.5M, 90/m; 0 for a closed loop"},
		{name: "rate-per-client", value: "LIST", help: "messages per second of each publisher"},
		{name: "interval", value: "TIME", help: "time between two messages of each publisher, such as 10ms"},
		{name: "stages", value: "TIME:RATE,...",
			help: "total rate in stages, such as 30s:1k,1m:10k,30s:0; it starts at 0 and changes linearly in each stage; 0s:5k jumps"},
		{name: "ramp", value: "TIME", help: "increase the rate from 0 over this time, which is part of the warm-up"},
		{name: "arrival", value: "KIND", help: "gaps between messages: constant or poisson", preset: "constant"},
		{name: "duration", value: "TIME",
			help:   "length of a case, warm-up included; with a rate, iterations are windows of 1 s",
			preset: "warm-up + iterations"},
	}},
	{"Measurement", []flagSpec{
		{name: "launches", value: "N", help: "how often to repeat the measurement with fresh connections"},
		{name: "warmup", value: "N", help: "warm-up iterations, which are run but not counted"},
		{name: "iterations", value: "N", help: "counted iterations"},
		{name: "min-time", value: "TIME", help: "minimum length of an iteration that is sized by time"},
		{name: "drain", value: "TIME", help: "give up on outstanding messages after this long without progress"},
	}},
	{"MQTT (variables in topic, id, user, password and will: %i client number, %c client id, %u user, %r run id, " +
		"%% a percent sign)", []flagSpec{
		{name: "topic", short: "t", value: "TOPIC", help: "topic to publish to"},
		{name: "client-id", value: "ID", help: "client identifier"},
		{name: "username", short: "u", value: "NAME", help: "user name"},
		{name: "password", short: "P", secret: true, value: "PASSWORD",
			help: "password; visible in ps: prefer --password-file or --password-env"},
		{name: "password-file", value: "FILE", help: "file whose first line is the password"},
		{name: "password-env", value: "NAME", help: "environment variable that holds the password"},
		{name: "credentials", value: "FILE",
			help: "CSV file with one client per row; its first row names the columns: id, user, password, cert, key"},
		{name: "auth-method", value: "METHOD",
			help: "enhanced authentication; SCRAM-SHA-256 proves the password without sending it; MQTT 5"},
		{name: "reauth-interval", value: "TIME",
			help: "re-authenticate each connected client at this interval; MQTT 5", preset: "never"},
		{name: "keepalive", short: "k", value: "TIME",
			help: "keep-alive interval, in whole seconds (60s); 0s for none"},
		{name: "retain", short: "r", kind: toggle, help: "publish retained messages"},
		{name: "clean-start", kind: toggle, help: "start with a new session", preset: "true"},
		{name: "session-expiry", short: "x", value: "TIME", help: "session expiry interval; MQTT 5"},
		{name: "user-property", kind: list, value: "NAME=VALUE",
			help: "user property of every message, with the variables above; repeatable; MQTT 5"},
	}},
	{"MQTT 5 (ignored in cases of earlier versions)", []flagSpec{
		{name: "topic-alias", value: "N", help: "topic aliases per publisher, as far as the broker allows"},
		{name: "message-expiry", value: "TIME", help: "message expiry interval"},
		{name: "content-type", value: "TEXT", help: "content type of every message, such as application/json"},
		{name: "response-topic", value: "TOPIC", help: "response topic of every message, with the variables above"},
		{name: "correlation-data", value: "DATA",
			help: "correlation data of every message: text with the variables above, or hex:00ff"},
		{name: "payload-format", value: "FORMAT",
			help: "payload format of every message: bytes, or utf-8 if all payloads are text"},
		{name: "subscription-identifier", value: "N", help: "identifier of every subscription, 1 to 268435455"},
		{name: "no-local", kind: toggle, help: "do not receive own messages (No Local)"},
		{name: "retain-as-published", kind: toggle, help: "keep the retain flag of messages (Retain As Published)"},
		{name: "retain-handling", value: "N",
			help: "receive retained messages at every subscription (0), at a new one (1), or never (2)"},
		{name: "topic-alias-maximum", value: "N", help: "topic aliases that the broker may use towards a subscriber"},
		{name: "receive-maximum", value: "N", help: "unacknowledged messages that a subscriber accepts, 1 to 65535"},
		{name: "maximum-packet-size", value: "BYTES", help: "largest packet that a subscriber accepts"},
		{name: "request-problem-information", kind: toggle,
			help: "let the broker send reasons as text", preset: "true"},
		{name: "request-response-information", kind: toggle,
			help: "ask for Response Information and show it above the table"},
	}},
	{"Will (of every client)", []flagSpec{
		{name: "will-topic", value: "TOPIC",
			help: "topic of the will, which the broker publishes when a client is lost"},
		{name: "will-payload", value: "TEXT", help: "payload of the will"},
		{name: "will-qos", value: "QOS", help: "QoS of the will: 0, 1 or 2"},
		{name: "will-retain", kind: toggle, help: "publish the will as a retained message"},
		{name: "will-delay", value: "TIME", help: "will delay interval; MQTT 5"},
	}},
	{"TLS", []flagSpec{
		{name: "cafile", kind: list, aliases: []string{"ca", "cacert", "ca-file", "ca-cert"}, value: "FILE",
			help: "trusted CA certificates, PEM or DER", preset: "the system's"},
		{name: "capath", aliases: []string{"ca-path"}, value: "DIR", help: "directory of trusted CA certificates"},
		{name: "cert", aliases: []string{"certfile", "cert-file"}, value: "FILE", help: "client certificate"},
		{name: "key", aliases: []string{"keyfile", "key-file"}, value: "FILE",
			help: "private key of the client certificate, unless it is in the same file"},
		{name: "key-password-file", value: "FILE", help: "file whose first line is the password of the key"},
		{name: "servername", aliases: []string{"server-name", "tls-server-name", "sni"}, value: "NAME",
			help: "server name to send and to verify", preset: "the host"},
		{name: "alpn", kind: list, aliases: []string{"tls-alpn"}, value: "LIST", help: "ALPN protocols to offer"},
		{name: "tls-min", value: "VERSION", help: "lowest TLS version", preset: "1.2"},
		{name: "tls-max", value: "VERSION", help: "highest TLS version", preset: "the newest"},
		{name: "curves", kind: list, value: "LIST",
			help: "key exchanges to offer, such as X25519MLKEM768,X25519,P-256"},
		{name: "insecure", kind: toggle, aliases: []string{"tls-skip-verify", "skip-verify", "insecure-skip-verify"},
			help: "do not verify the broker's certificate"},
		{name: "tls-resume", kind: toggle, help: "resume TLS sessions"},
	}},
	{"Gates and baseline (exit codes 6, 7, 8)", []flagSpec{
		{name: "fail-if", kind: list, tool: true, value: "GATE",
			help: "fail the run if this is true, such as 'lost > 0' or 'p99 > 5ms @ qos=1'; repeatable"},
		{name: "gate", kind: list, tool: true, value: "FILE",
			help: "file of gates that must hold, one per line, such as p99 < 5ms; repeatable"},
		{name: "baseline", kind: list, tool: true, value: "FILE",
			help: "report to compare with after the run; the iterations of several are pooled"},
		{name: "max-regression", tool: true, value: "PERCENT",
			help: "how much slower than the baseline a case may be", preset: "5%"},
		{name: "allow", kind: list, tool: true, value: "KEY",
			help: "ignore this difference from the baseline (see compare-reports); repeatable"},
	}},
	{"Output", []flagSpec{
		outputFlag("report", reportFormats),
		{name: "ledger", tool: true, value: "FILE",
			help: "write delivery counts per stream (publisher to subscriber) as CSV"},
		formatFlag(reportFormats),
		{name: "log", tool: true, value: "STYLE",
			help: "live log; the style bdn prints one line per iteration, like BenchmarkDotNet"},
		{name: "quiet", kind: toggle, tool: true, help: "print only results and errors"},
		{name: "no-progress", kind: toggle, tool: true, help: "do not show progress"},
		{name: "dry-run", kind: toggle, tool: true, help: "print the plan and the resources it needs, then stop"},
		{name: "strict", kind: toggle, tool: true, help: "exit with 4 if a rate was not kept"},
		{name: "force", kind: toggle, tool: true, help: "run even if there seems to be too little memory"},
		{name: "seed", tool: true, value: "N",
			help: "seed of the run id, random sizes and arrival times", preset: "random"},
		configFlag,
	}},
}

// all lists the flags of the groups.
func all(groups []flagGroup) []flagSpec {
	var list []flagSpec
	for _, g := range groups {
		list = append(list, g.flags...)
	}
	return list
}

// define adds the groups' flags to c.
func define(c *cobra.Command, groups []flagGroup) {
	fs := c.Flags()
	fs.SortFlags = false
	canonical := map[string]string{}
	for _, f := range all(groups) {
		switch f.kind {
		case single:
			fs.StringP(f.name, f.short, "", f.usage())
		case list:
			fs.StringArrayP(f.name, f.short, nil, f.usage())
		case toggle:
			fs.BoolP(f.name, f.short, false, f.usage())
		}
		for _, a := range f.aliases {
			canonical[a] = f.name
		}
	}
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if full, ok := canonical[name]; ok {
			name = full
		}
		return pflag.NormalizedName(name)
	})
}

// usages renders the group as --help shows it, in lines of up to width columns.
func (g flagGroup) usages(width int) string {
	const gap = "   "
	var left []string
	indent := 0
	for _, f := range g.flags {
		name := "      --" + f.name
		if f.short != "" {
			name = "  -" + f.short + ", --" + f.name
		}
		if f.value != "" {
			name += " " + f.value
		}
		left = append(left, name)
		indent = max(indent, len(name)+len(gap))
	}
	var b strings.Builder
	b.WriteString(strings.Join(wrapped(g.title+":", width), "\n") + "\n")
	for i, f := range g.flags {
		for _, line := range wrapped(f.usage(), width-indent) {
			fmt.Fprintf(&b, "%-*s%s\n", indent, left[i], line)
			left[i] = ""
		}
	}
	return b.String()
}

// wrapped breaks text at spaces into lines of up to width columns.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// commandLine is the command line for the report, without passwords and user
// information of URLs.
func commandLine(c *cobra.Command, args []string, groups []flagGroup) []string {
	line := append([]string{"mqttload", c.Name()}, args...)
	for _, f := range all(groups) {
		flag := c.Flags().Lookup(f.name)
		if !flag.Changed {
			continue
		}
		values := []string{flag.Value.String()}
		if s, ok := flag.Value.(pflag.SliceValue); ok {
			values = s.GetSlice()
		}
		for _, v := range values {
			line = append(line, shown(f, v))
		}
	}
	return line
}

func shown(f flagSpec, value string) string {
	switch {
	case f.secret:
		value = "***"
	case f.name == "url":
		value = withoutUser(value)
	case f.kind == toggle && value == "true":
		return "--" + f.name
	}
	return fmt.Sprintf("--%s=%s", f.name, value)
}

// withoutUser removes the user information from a URL, even from an invalid one.
func withoutUser(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		scheme, rest = "", url
	} else {
		scheme += "://"
	}
	return scheme + rest[strings.LastIndex(rest, "@")+1:]
}
