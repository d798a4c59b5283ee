package cmd

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/scenarios"
)

// The commands conn, pub and sub are for users of emqtt-bench, MQTTX and
// mosquitto_pub. They use the engine of run with the flags of those tools, for one
// case without warm-up.

func (a *app) connCommand() *cobra.Command {
	return a.preset("conn", "Connect clients and keep them connected", connFlags,
		`Conn connects --clients clients, reports how long that took, and keeps them
connected until you stop it or --duration is over. Ctrl-C ends it with exit
code 0.`,
		"  mqttload conn -h broker -c 1000 --connect-rate 200", openConn)
}

func (a *app) pubCommand() *cobra.Command {
	return a.preset("pub", "Publish messages, like pub of emqtt-bench and MQTTX", pubFlags,
		`Pub connects --clients clients, each of which publishes one message per second.
Change the pace with --interval, --rate or --stages; --interval 0s publishes as
fast as the window allows. Pub runs until you stop it, or until it reaches
--limit or --duration. If the topic contains %i, %c or %u, each client has a
topic of its own. Payloads are sent unchanged. Ctrl-C ends it with exit code 0.`,
		"  mqttload pub -h broker -t bench/%i -c 100 -I 10ms -s 256 -q 1 -L 1000", openPub)
}

func (a *app) subCommand() *cobra.Command {
	return a.preset("sub", "Subscribe and count, like sub of emqtt-bench and MQTTX", subFlags,
		`Sub connects --clients clients, subscribes each of them to --topic, and counts
the messages that arrive. It runs until you stop it, or until it reaches --count
or --duration. Ctrl-C ends it with exit code 0.`,
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
func presetScenario(name, shape string, bad *bench.Faults) *scenarios.Scenario {
	sc, err := scenarios.Parse(name, []byte("load: {shape: "+shape+", warmup: 0}\n"))
	*bad = append(*bad, bench.AsFaults(err, bench.Usage)...)
	return sc
}

// clients is the number of clients, as text that package scenarios checks.
func (s settings) clients(bad *bench.Faults) (string, setting) {
	one, ok := s["clients"]
	switch {
	case !ok:
		return "1", setting{source: fromFlag, place: "--clients"}
	case one.value() == "0":
		bad.Usage("", "%s 0: there must be at least one", one.place)
		return "1", one // so that this is the only error
	}
	return one.value(), one
}

func openConn(_ []string, s settings, bad *bench.Faults) *scenarios.Scenario {
	n, from := s.clients(bad)
	s.give("idle", n, from)
	s.giveDefault("duration", scenarios.MaxDuration.String())
	return presetScenario("conn", scenarios.Connect.Name, bad)
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
		delete(s, "limit") // no limit, as in emqtt-bench
	} else if ok {
		s.give("messages", one.value(), one)
	}
	s.giveDefault("verify", "off")
	pace(s)
	return presetScenario("pub", scenarios.Publish.Name, bad)
}

// pace decides how fast and how long pub publishes.
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
	return presetScenario("sub", scenarios.Subscribe.Name, bad)
}
