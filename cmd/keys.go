package cmd

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/bench"
)

// envPrefix begins the name of a variable that stands for a flag.
const envPrefix = "MQTTLOAD_"

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
