package cmd

import (
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

const defaultConfig = "mqttload.yaml"

// gather merges flags, environment and configuration file. It returns the faults
// of all three at once, and warns of unknown variables.
func (a *app) gather(c *cobra.Command, groups []flagGroup) (settings, bench.Faults) {
	var bad bench.Faults
	specs := keyed(groups)
	env := a.readEnv(specs, &bad)
	path, found := configPath(c, env)
	if quiet := c.Flags().Lookup("quiet"); found && quiet.Value.String() != "true" {
		a.warn("note: using %s from this directory", path)
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

// texts is a value of viper as the text that was given.
func texts(v any) []string {
	if list, ok := v.([]string); ok {
		return list
	}
	return []string{fmt.Sprint(v)}
}

// readEnv reads the variables that stand for flags. An empty variable counts as
// not set, as usual.
func (a *app) readEnv(specs map[string]flagSpec, bad *bench.Faults) map[string]setting {
	got := map[string]setting{}
	for _, kv := range a.Environ {
		key, value, _ := strings.Cut(kv, "=")
		rest, ours := strings.CutPrefix(key, envPrefix)
		if !ours || value == "" || ofKubernetes(rest, value) {
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

// ofKubernetes reports whether a variable, without the prefix, is one of those that
// Kubernetes gives to every container for a Service called mqttload:
// MQTTLOAD_PORT=tcp://10.0.0.1:1883, MQTTLOAD_PORT_1883_TCP_ADDR,
// MQTTLOAD_SERVICE_HOST.
func ofKubernetes(rest, value string) bool {
	address := slices.ContainsFunc([]string{"tcp://", "udp://", "sctp://"}, func(p string) bool { return strings.HasPrefix(value, p) })
	return rest == "PORT" && address || strings.HasPrefix(rest, "PORT_") || strings.HasPrefix(rest, "SERVICE_")
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

func (t *terminal) warnUnknownEnv(key, name string, specs map[string]flagSpec) {
	if near := text.Nearest(name, names(specs)); near != "" {
		t.warn("warning: %s is not a variable of mqttload, did you mean %s?", key, envName(near))
		return
	}
	t.warn("warning: %s is not a variable of mqttload: it is ignored", key)
}

// configPath is the configuration file: the one asked for, or the one that
// lies in this directory; "" for none.
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
