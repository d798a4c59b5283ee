package cmd

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// choices are the values that a shell offers for a flag. Flags of the matrix take
// lists: the text before the last comma is kept.
var choices = map[string][]string{
	"qos":         {"0", "1", "2"},
	"protocol":    {"3.1", "3.1.1", "5"},
	"transport":   scenarios.TransportNames(),
	"shape":       scenarios.ShapeNames(),
	"arrival":     {"constant", "poisson"},
	"auth-method": {scenarios.SCRAMSHA256},
	"verify":      {"on", "off"},
	"format":      reportFormats,
	"allow":       result.UnlikeKeys,
	"log":         {"bdn"},
	"tls-min":     {"1.2", "1.3"},
	"tls-max":     {"1.2", "1.3"},
}

// completeFlags registers the choices of those flags of c that have no completion
// yet.
func completeFlags(c *cobra.Command) {
	for name, values := range choices {
		complete(c, name, values)
	}
}

// complete offers values for one flag of c.
func complete(c *cobra.Command, name string, values []string) {
	// It fails only if the flag does not exist or has a completion already.
	_ = c.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		kept := typed[:strings.LastIndexByte(typed, ',')+1]
		var list []string
		for _, v := range values {
			list = append(list, kept+v)
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	})
}

// shellCompletion completes cobra's own command with an example and with this
// program's way to refuse arguments.
func shellCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Example = "  source <(mqttload completion bash)"
		c.Short = "Print the completion script for a shell"
		c.Args = noArgs
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		for _, shell := range c.Commands() {
			shell.Args = noArgs
		}
	}
}
