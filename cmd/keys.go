package cmd

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/bench"
)

// envPrefix begins the name of a variable that stands for a flag.
const envPrefix = "MQTTLOAD_"

// keyed maps the names used in variables and configuration files to flags.
func keyed(groups []flagGroup) map[string]flagSpec {
	specs := map[string]flagSpec{}
	for _, f := range all(groups) {
		specs[cmp.Or(f.key, f.name)] = f
	}
	return specs
}

// everyKey are the keys of all commands: they share one configuration file, and
// each ignores the keys of the others.
func everyKey() map[string]flagSpec {
	return keyed(slices.Concat(connFlags, pubFlags, subFlags, runFlags, brokerFlags))
}

// envName is the variable of a key.
func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

func names(specs map[string]flagSpec) []string {
	var list []string
	for n := range specs {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// checkToggle checks a switch of the tool; package scenarios checks its own.
func checkToggle(s setting, bad *bench.Faults) {
	if s.tool && s.kind == toggle && s.value() != "true" && s.value() != "false" {
		bad.Usage("", "%s is true or false", s.place)
	}
}
