package cmd

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/internal/text"
)

const (
	envPrefix     = "MQTTLOAD_"
	defaultConfig = "mqttload.yaml"
)

// Where a setting comes from, the stronger the higher.
const (
	fromConfig = iota + 1
	fromEnv
	fromFlag
)

// setting is the value of one flag, wherever it was given.
type setting struct {
	flagSpec
	values []string // one, but for lists
	source int
	place  string // "--qos", "MQTTLOAD_QOS", "mqttload.yaml:3: qos"
}

func (s setting) value() string { return strings.Join(s.values, ",") }
func (s setting) on() bool      { return s.value() == "true" }

// words are the values of a list whose items may be joined by commas.
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

// settings are those that were given, by flag name.
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

// settle is for two ways to say the same: that from the stronger source
// counts, so that --host beats a url in the configuration, and both from the
// same source are a fault.
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
		bad.Usage("leave one of them out", "%s and --%s say the same thing twice", s[one].place, strings.Join(others, " or --"))
	}
}

// settleRates is settle for the four ways to say how fast.
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
		bad.Usage("keep one: --rate is the total over all publishers, --rate-per-client and --interval are for each", "%s all say how fast", strings.Join(kept, " and "))
		for _, name := range ways {
			delete(s, name)
		}
	}
}

// gather reads flags, environment and configuration file into one set. The
// faults of all three are returned at once; hints are about variables that
// nobody reads.
func (a *app) gather(c *cobra.Command, groups []flagGroup) (settings, bench.Faults) {
	var bad bench.Faults
	specs := keyed(groups)
	env := a.readEnv(specs, &bad)
	path, found := configPath(c, env)
	if quiet := c.Flags().Lookup("quiet"); found && quiet.Value.String() != "true" {
		a.warn("note: using %s of this directory", path)
	}
	config := readConfig(path, specs, &bad)

	// One viper per run of a command: two commands that bind a flag of the same
	// name into one would overwrite each other's.
	v := viper.New()
	for _, layer := range []map[string]setting{config, env} {
		values := map[string]any{}
		for name, s := range layer {
			values[name] = s.values
		}
		// The environment is merged over the file rather than bound, because
		// viper knows only the environment of the whole process.
		if err := v.MergeConfigMap(values); err != nil {
			bad.Usage("", "configuration: %v", err)
		}
	}
	got := settings{}
	for _, spec := range specs {
		name := spec.name
		flag := c.Flags().Lookup(name)
		if err := v.BindPFlag(name, flag); err != nil {
			bad.Usage("", "--%s: %v", name, err)
		}
		if !v.IsSet(name) {
			continue
		}
		s := setting{flagSpec: spec, values: texts(v.Get(name)), source: fromFlag, place: "--" + name}
		if slice, ok := flag.Value.(pflag.SliceValue); ok && flag.Changed {
			s.values = slice.GetSlice() // viper takes it through CSV, which folds line ends
		}
		if !flag.Changed {
			s.source, s.place = fromEnv, env[name].place
			if _, ok := env[name]; !ok {
				s.source, s.place = fromConfig, config[name].place
			}
		}
		got[name] = s
	}
	return got, bad
}

// flagSettings are the settings of a command that takes nothing but flags:
// variables and configuration files are about running.
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

// texts is a value of viper's as the text it was given as.
func texts(v any) []string {
	if list, ok := v.([]string); ok {
		return list
	}
	return []string{fmt.Sprint(v)}
}

// readEnv picks the variables that stand for flags. An empty one counts as not
// set, as is usual.
func (a *app) readEnv(specs map[string]flagSpec, bad *bench.Faults) map[string]setting {
	got := map[string]setting{}
	for _, kv := range a.Environ {
		key, value, _ := strings.Cut(kv, "=")
		rest, ours := strings.CutPrefix(key, envPrefix)
		if !ours || value == "" {
			continue
		}
		name := strings.ToLower(strings.ReplaceAll(rest, "_", "-"))
		spec, known := specs[name]
		if _, elsewhere := everyKey()[name]; !known && elsewhere && key == envName(name) {
			continue
		}
		if !known || key != envName(name) {
			a.warnUnknownEnv(key, name, specs)
			continue
		}
		s := setting{flagSpec: spec, values: splitEnv(spec, value), source: fromEnv, place: key}
		checkToggle(s, bad)
		got[spec.name] = s
	}
	return got
}

// keyed are the flags by what variables and configuration files call them.
func keyed(groups []flagGroup) map[string]flagSpec {
	specs := map[string]flagSpec{}
	for _, f := range all(groups) {
		specs[cmp.Or(f.key, f.name)] = f
	}
	return specs
}

// everyKey are the keys of all commands: one configuration file serves them
// all, and each leaves the others' alone.
func everyKey() map[string]flagSpec {
	return keyed(slices.Concat(connFlags, pubFlags, subFlags, runFlags, brokerFlags))
}

// envName is the variable of a key.
func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

// splitEnv: a user property or a gate may contain commas, the other lists'
// values do not.
func splitEnv(spec flagSpec, value string) []string {
	switch {
	case spec.kind == list && (spec.name == "user-property" || spec.name == "fail-if"):
		return strings.Split(strings.TrimRight(value, "\n"), "\n")
	case spec.name == "payload":
		return []string{value} // text: takes all its commas, as package scenarios knows
	case spec.kind == list:
		return strings.Split(value, ",")
	}
	return []string{value}
}

func (a *app) warnUnknownEnv(key, name string, specs map[string]flagSpec) {
	if near := text.Nearest(name, names(specs)); near != "" {
		a.warn("warning: %s is not a variable of mqttload, did you mean %s?", key, envName(near))
		return
	}
	a.warn("warning: %s is not a variable of mqttload: it is ignored", key)
}

func names(specs map[string]flagSpec) []string {
	var list []string
	for n := range specs {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// checkToggle is for switches of the tool; package scenarios checks its own.
func checkToggle(s setting, bad *bench.Faults) {
	if s.tool && s.kind == toggle && s.value() != "true" && s.value() != "false" {
		bad.Usage("", "%s is true or false", s.place)
	}
}

// configPath is the configuration file: the one asked for, or the one that
// was found lying about; "" for none.
func configPath(c *cobra.Command, env map[string]setting) (path string, found bool) {
	if f := c.Flags().Lookup("config"); f.Changed {
		return f.Value.String(), false
	}
	if s, ok := env["config"]; ok {
		return s.value(), false
	}
	if _, err := os.Stat(defaultConfig); err == nil {
		return defaultConfig, true
	}
	return "", false
}
