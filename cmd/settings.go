package cmd

import (
	"strings"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Sources of a setting; the higher takes precedence.
const (
	fromConfig = iota + 1
	fromEnv
	fromFlag
)

// setting is the value of one flag, from any source.
type setting struct {
	flagSpec
	values []string // one, but for lists
	source int
	place  string // "--qos", "MQTTLOAD_QOS", "mqttload.yaml:3: qos"
}

func (s setting) value() string { return strings.Join(s.values, ",") }
func (s setting) on() bool      { return s.value() == "true" }

// words splits the values of a list at commas.
func (s setting) words() (list []string) {
	for _, v := range s.values {
		for word := range strings.SplitSeq(v, ",") {
			if word = strings.TrimSpace(word); word != "" {
				list = append(list, word)
			}
		}
	}
	return list
}

// settings maps flag names to the settings that were given.
type settings map[string]setting

// in lists the settings in the order of the groups' flags.
func (s settings) in(groups []flagGroup) []setting {
	var list []setting
	for _, f := range all(groups) {
		if one, ok := s[f.name]; ok {
			list = append(list, one)
		}
	}
	return list
}

// settle is for flags that say the same thing. The one from the stronger source
// counts, so that --host overrides a url in the configuration; two from the same
// source are a fault.
func (s settings) settle(one string, others []string, bad *bench.Faults) {
	strongest := 0
	for _, name := range others {
		strongest = max(strongest, s[name].source)
	}
	switch own := s[one].source; {
	case own > strongest:
		for _, name := range others {
			delete(s, name)
		}
	case own < strongest:
		delete(s, one)
	case own > 0:
		bad.Usage("remove one of them", "%s and --%s say the same thing twice", s[one].place, strings.Join(others, " or --"))
	}
}

// settleRates is settle for the four flags that set the rate.
func (s settings) settleRates(bad *bench.Faults) {
	ways := []string{"rate", "rate-per-client", "interval", "stages"}
	strongest := 0
	for _, name := range ways {
		strongest = max(strongest, s[name].source)
	}
	var kept []string
	for _, name := range ways {
		switch one, given := s[name]; {
		case given && one.source < strongest:
			delete(s, name)
		case given:
			kept = append(kept, one.place)
		}
	}
	if len(kept) > 1 {
		bad.Usage("keep one: --rate is the total over all publishers, --rate-per-client and --interval are for each", "%s all set the rate", strings.Join(kept, " and "))
		for _, name := range ways {
			delete(s, name)
		}
	}
}

// flagSettings are the settings of a command that reads neither variables nor
// configuration files, because these are about running.
func flagSettings(c *cobra.Command, groups []flagGroup) settings {
	got := settings{}
	for _, spec := range all(groups) {
		flag := c.Flags().Lookup(spec.name)
		if !flag.Changed {
			continue
		}
		s := setting{flagSpec: spec, values: []string{flag.Value.String()}, source: fromFlag, place: "--" + spec.name}
		if slice, ok := flag.Value.(pflag.SliceValue); ok {
			s.values = slice.GetSlice()
		}
		got[spec.name] = s
	}
	return got
}

// give makes a setting of run from one of a preset, whose name messages use.
func (s settings) give(name, value string, from setting) {
	s[name] = setting{flagSpec: pick(name)[0], values: []string{value}, source: from.source, place: from.place}
}

// giveDefault gives a setting of run unless it was given.
func (s settings) giveDefault(name, value string) {
	if _, given := s[name]; !given {
		s.give(name, value, setting{source: fromFlag, place: "--" + name})
	}
}
