package cmd

import (
	"strings"
	"testing"
)

// A flag's sentence stands without the name of its value: shell completions
// show the sentence alone, and a reader of --help has the name before it.
func TestHelpStandsWithoutTheValuesName(t *testing.T) {
	for command, groups := range helpGroups {
		for _, f := range all(groups) {
			if (f.kind == toggle) != (f.value == "") {
				t.Errorf("%s --%s: the value has the name %q", command, f.name, f.value)
			}
			if f.help == "" || strings.ContainsAny(f.help, "`\n") || strings.HasSuffix(strings.TrimSuffix(f.help, "..."), ".") {
				t.Errorf("%s --%s: %q is not a plain sentence without a full stop", command, f.name, f.help)
			}
			if f.value != "" && strings.HasPrefix(f.help, f.value+" ") {
				t.Errorf("%s --%s: %q begins with the name of the value", command, f.name, f.help)
			}
		}
	}
}

func TestHelpFitsTheWidth(t *testing.T) {
	for command, groups := range helpGroups {
		for _, g := range groups {
			for line := range strings.Lines(g.usages(80)) {
				if len(line) > 81 {
					t.Errorf("%s: %q is %d columns wide", command, line, len(line)-1)
				}
			}
		}
	}
}
