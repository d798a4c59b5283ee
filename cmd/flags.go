package cmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mqttload/mqttload/scenarios"
)

// Kinds of flags. All but switches are text here: what a value means is the
// business of the package that uses it, so that a flag, a variable, a line of
// the configuration and one of a scenario are judged by the same code.
const (
	single = iota
	list   // repeatable, each occurrence one value
	toggle // true or false
)

// flagSpec is one flag. Help is the line of --help, with the placeholder of
// the value in backquotes.
type flagSpec struct {
	name, short string
	kind        int
	key         string // in the environment and in configurations, where it is not the name
	help        string
	aliases     []string // what other tools call it: accepted, not shown
	tool        bool     // about the tool, not about the scenario
	secret      bool     // its value is never shown
}

// flagGroup is one section of --help.
type flagGroup struct {
	title string
	flags []flagSpec
}

// runFlags are the flags of run. Their order is that in which they are applied.
var runFlags = []flagGroup{
	{"Target", []flagSpec{
		{name: "url", kind: list, help: "broker `URL`: mqtt://, mqtts://, also tcp ssl tls; repeat it to take turns (default: the embedded broker)"},
		{name: "host", short: "h", help: "broker by `NAME` or address"},
		{name: "port", short: "p", help: "broker's port `N` (default 1883, with TLS 8883)"},
		{name: "connect-timeout", help: "`TIME` a connection may take, handshakes included (default 10s)"},
		{name: "connect-rate", help: "new connections per second, `N` over all clients (default no limit)"},
		{name: "reconnect", kind: toggle, help: "let clients whose connection was lost come back, with back-off"},
		{name: "follow-server-reference", kind: toggle, help: "go where a broker refers its clients to (0x9C, 0x9D); MQTT 5"},
		{name: "start-number", help: "`N` of the first client, for %i: several machines take apart (default 1)"},
		{name: "source-ip", kind: list, help: "local `ADDRESS` to connect from; repeat it to take turns"},
	}},
	{"Matrix (lists: every combination is a case; 0,1 is the same as the flag twice)", []flagSpec{
		{name: "qos", short: "q", kind: list, help: "QoS `LIST` of 0, 1, 2"},
		{name: "payload", kind: list, help: "payload `LIST`: bytes (10, 8KiB, 1MB), @file, uniform:10-1KiB, normal:1KiB+-200, trace:FILE.csv, mix:10*9,8KiB*1, text:..., template:...; the last three take the rest, commas included"},
		{name: "protocol", short: "V", kind: list, help: "MQTT version `LIST` of 3.1, 3.1.1, 5"},
		{name: "transport", kind: list, help: "transport `LIST` of tcp, tls"},
		{name: "tls", kind: toggle, help: "the same as --transport tls; mqtts:// and certificate flags imply it"},
	}},
	{"Load", []flagSpec{
		{name: "shape", help: "`SHAPE` of the load: " + strings.Join(scenarios.ShapeNames(), ", ") + " (default: pairs, or inferred from the client counts)"},
		{name: "pairs", short: "c", help: "`N` topics with one publisher and one subscriber each"},
		{name: "topics", help: "`N` topics"},
		{name: "publishers", help: "`N` publishers for each topic, 0 for none"},
		{name: "subscribers", help: "`N` subscribers for each topic, 0 for none"},
		{name: "topics-per-publisher", help: "`N` topics that share their publishers' connections"},
		{name: "topics-per-subscriber", help: "`N` topics that share their subscribers' connections"},
		{name: "share", help: "`GROUP`: a topic's subscribers share one subscription, $share/GROUP/..."},
		{name: "filter", help: "`FILTER` to subscribe to in place of the topics, wildcards allowed"},
		{name: "idle", help: "`N` more connections that only keep alive"},
		{name: "messages", help: "messages per iteration, `N` over all publishers (default sized by --min-time); at a rate, of the whole case"},
		{name: "inflight", short: "F", help: "`N` messages that each publisher keeps outstanding, 1 to 65535"},
		{name: "verify", help: "`off` sends payloads as they are, without the stamp in their first 8 bytes, and knows only numbers (default on)"},
	}},
	{"Rate (one of the first four makes an open loop: every message has its time, whatever the broker does)", []flagSpec{
		{name: "rate", help: "messages per second in TOTAL over all publishers, `LIST` of 500, 10k, 1.5M, 90/m; 0 for a closed loop"},
		{name: "rate-per-client", help: "messages per second of EACH publisher, `LIST`"},
		{name: "interval", help: "`TIME` between two messages of EACH publisher, 10ms"},
		{name: "stages", help: "`TIME:RATE,...` in total, 30s:1k,1m:10k,30s:0: the rate moves in a straight line, first from 0; 0s:5k jumps"},
		{name: "ramp", help: "`TIME` in which the rate rises from 0, as a part of the warm-up"},
		{name: "arrival", help: "`KIND` constant or poisson (default constant)"},
		{name: "duration", help: "`TIME` that a case takes, warm-up included; iterations are windows of 1 s (default warm-up + iterations)"},
	}},
	{"Measurement", []flagSpec{
		{name: "launches", help: "`N` rounds with fresh connections"},
		{name: "warmup", help: "`N` iterations that are run and not counted"},
		{name: "iterations", help: "`N` iterations that are counted"},
		{name: "min-time", help: "least `TIME` of an iteration that is sized by time"},
		{name: "drain", help: "`TIME` without progress after which what is outstanding is given up"},
	}},
	{"MQTT (%i client number, %c client id, %u user, %r run id, %% in topic, id, user, password, will)", []flagSpec{
		{name: "topic", short: "t", help: "`TOPIC` to publish to"},
		{name: "client-id", help: "client `ID`"},
		{name: "username", short: "u", help: "user `NAME`"},
		{name: "password", short: "P", secret: true, help: "`PASSWORD`; shows in ps: --password-file or --password-env does not"},
		{name: "password-file", help: "`FILE` whose first line is the password"},
		{name: "password-env", help: "`NAME` of the environment variable that holds the password"},
		{name: "credentials", help: "CSV `FILE` with a client in each row; its first row names the columns id, user, password, cert, key"},
		{name: "auth-method", help: "`METHOD` SCRAM-SHA-256: prove user and password by AUTH packets, and send no password; MQTT 5"},
		{name: "reauth-interval", help: "`TIME` after which each client authenticates again on its connection (default never)"},
		{name: "keepalive", short: "k", help: "keep alive `TIME`, 0s for none"},
		{name: "retain", short: "r", kind: toggle, help: "publish retained messages"},
		{name: "clean-start", kind: toggle, help: "begin with a new session (default true)"},
		{name: "session-expiry", short: "x", help: "`TIME` the broker keeps the session; MQTT 5"},
		{name: "user-property", kind: list, help: "`NAME=VALUE` on every message, the value with the client's variables; repeatable; MQTT 5"},
	}},
	{"MQTT 5 (cases of earlier versions go without)", []flagSpec{
		{name: "topic-alias", help: "`N` of its topics to which each publisher gives an alias, as far as the broker allows"},
		{name: "message-expiry", help: "`TIME` after which a message is worth nothing"},
		{name: "content-type", help: "`TEXT` on every message: what the payload is, such as application/json"},
		{name: "response-topic", help: "`TOPIC` on every message, with the client's variables"},
		{name: "correlation-data", help: "`DATA` on every message: text with the client's variables, or hex:00ff"},
		{name: "payload-format", help: "`FORMAT` on every message: bytes, or utf-8, which the payloads must be"},
		{name: "subscription-identifier", help: "`N` of every subscription, 1 to 268435455: its messages come with it"},
		{name: "no-local", kind: toggle, help: "subscribe to what others publish, not to one's own"},
		{name: "retain-as-published", kind: toggle, help: "let messages keep their retain flag"},
		{name: "retain-handling", help: "`N`: retained messages come at each subscription (0), at a new one (1), never (2)"},
		{name: "topic-alias-maximum", help: "`N` aliases that a subscriber takes from the broker"},
		{name: "receive-maximum", help: "`N` unacknowledged messages that a subscriber takes, 1 to 65535"},
		{name: "maximum-packet-size", help: "`BYTES` of the largest packet that a subscriber takes"},
		{name: "request-problem-information", kind: toggle, help: "let the broker explain what it refuses (default true)"},
		{name: "request-response-information", kind: toggle, help: "ask for Response Information, which the table then shows"},
	}},
	{"Will (of every client)", []flagSpec{
		{name: "will-topic", help: "`TOPIC` that the broker publishes to when a client is lost"},
		{name: "will-payload", help: "`TEXT` of that message"},
		{name: "will-qos", help: "`QOS` of that message: 0, 1 or 2"},
		{name: "will-retain", kind: toggle, help: "retain it"},
		{name: "will-delay", help: "`TIME` the broker waits before; MQTT 5"},
	}},
	{"TLS", []flagSpec{
		{name: "cafile", kind: list, aliases: []string{"ca", "cacert", "ca-file", "ca-cert"}, help: "`FILE` of trusted CA certificates, PEM or DER (default the system's)"},
		{name: "capath", aliases: []string{"ca-path"}, help: "`DIR` of such files"},
		{name: "cert", aliases: []string{"certfile", "cert-file"}, help: "`FILE` of the client certificate"},
		{name: "key", aliases: []string{"keyfile", "key-file"}, help: "`FILE` of its key, unless in the same file"},
		{name: "key-password-file", help: "`FILE` whose first line is the key's password"},
		{name: "servername", aliases: []string{"server-name", "tls-server-name", "sni"}, help: "`NAME` to send and to verify (default the host)"},
		{name: "alpn", kind: list, aliases: []string{"tls-alpn"}, help: "protocol `LIST` to offer"},
		{name: "tls-min", help: "lowest TLS `VERSION` (default 1.2)"},
		{name: "tls-max", help: "highest TLS `VERSION`"},
		{name: "curves", kind: list, help: "key exchange `LIST`, such as X25519MLKEM768,X25519,P-256"},
		{name: "insecure", kind: toggle, aliases: []string{"tls-skip-verify", "skip-verify", "insecure-skip-verify"}, help: "do not verify the broker's certificate"},
		{name: "tls-resume", kind: toggle, help: "take up TLS sessions of earlier connections"},
	}},
	{"Judging (exit codes 6, 7, 8)", []flagSpec{
		{name: "fail-if", kind: list, tool: true, help: "`GATE` that fails the run where it is true: 'p99 > 5ms @ qos=1', 'lost > 0'; repeatable"},
		{name: "gate", kind: list, tool: true, help: "`FILE` of gates that must hold, one a line: p99 < 5ms; repeatable"},
		{name: "baseline", kind: list, tool: true, help: "report `FILE` to compare with after the run; several pool their iterations"},
		{name: "max-regression", tool: true, help: "`PERCENT` that a case may be slower than the baseline (default 5%)"},
		{name: "allow", kind: list, tool: true, help: "`KEY` of a difference from the baseline's run that may be: see compare-reports; repeatable"},
	}},
	{"Output", []flagSpec{
		{name: "output", short: "o", kind: list, tool: true, help: "write the report to `FILE` (.json, .md, .csv, .html, .xml, ...) or FORMAT=FILE, - for stdout; repeatable"},
		{name: "ledger", tool: true, help: "write the account of every stream, publisher to subscriber, to `FILE` as CSV"},
		{name: "format", tool: true, help: "`FORMAT` on stdout: " + strings.Join(reportFormats, ", ") + " (default console)"},
		{name: "log", tool: true, help: "live log in the `STYLE` bdn: one line per iteration, as BenchmarkDotNet's"},
		{name: "quiet", kind: toggle, tool: true, help: "print results and faults only"},
		{name: "no-progress", kind: toggle, tool: true, help: "do not print progress"},
		{name: "dry-run", kind: toggle, tool: true, help: "print the plan and what it needs, and stop"},
		{name: "strict", kind: toggle, tool: true, help: "end with 4 where a rate was not kept"},
		{name: "force", kind: toggle, tool: true, help: "run it though it needs more memory than there is"},
		{name: "seed", tool: true, help: "`N` from which run id, sizes and arrivals are drawn (default at random)"},
		{name: "config", tool: true, help: "configuration `FILE` (default mqttload.yaml, where there is one)"},
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
			fs.StringP(f.name, f.short, "", f.help)
		case list:
			fs.StringArrayP(f.name, f.short, nil, f.help)
		case toggle:
			fs.BoolP(f.name, f.short, false, f.help)
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

// groupUsages renders one group as --help shows it.
func groupUsages(c *cobra.Command, g flagGroup) string {
	sub := pflag.NewFlagSet("", pflag.ContinueOnError)
	sub.SortFlags = false
	for _, f := range g.flags {
		sub.AddFlag(c.Flags().Lookup(f.name))
	}
	return g.title + ":\n" + sub.FlagUsages()
}

// commandLine is what was asked, as a report may show it: passwords and user
// information of URLs are left out.
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

// withoutUser cuts the user information out of something like a URL, whether
// or not it is a good one.
func withoutUser(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		scheme, rest = "", url
	} else {
		scheme += "://"
	}
	return scheme + rest[strings.LastIndex(rest, "@")+1:]
}
