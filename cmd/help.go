package cmd

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// help prints a command's help: an example first, because that is what people
// look for, then what there is, by groups, and the exit codes.
func (a *app) help(c *cobra.Command, _ []string) {
	var b strings.Builder
	if c.Example != "" {
		fmt.Fprintf(&b, "Example:\n%s\n\n", c.Example)
	}
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n", about, useLine(c))
	if c.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-16s %s\n", sub.Name(), sub.Short)
			}
		}
	}
	switch groups := helpGroups[c.Name()]; {
	case groups != nil:
		for _, g := range groups {
			b.WriteString("\n" + groupUsages(c, g))
		}
	default:
		if flags := visible(c.LocalFlags()); flags != "" {
			b.WriteString("\nFlags:\n" + flags)
		}
	}
	if c.Name() == "run" {
		b.WriteString("\n" + runHelpTail)
	}
	if slices.Contains([]string{"mqttload", "run", "conn", "pub", "sub", "compare-reports", "audit", "check", "calibrate"}, c.Name()) {
		b.WriteString("\n" + exitCodesHelp)
	}
	_, _ = io.WriteString(c.OutOrStdout(), b.String())
}

// helpGroups are the commands whose flags are shown by groups.
var helpGroups = map[string][]flagGroup{
	"run": runFlags, "conn": connFlags, "pub": pubFlags, "sub": subFlags, "broker": brokerFlags, "compare-reports": compareFlags, "report": reportFlags, "audit": auditFlags,
	"calibrate": calibrateFlags, "check": checkFlags,
}

const runHelpTail = `Values come from, first to last: flag, environment (--client-id is
MQTTLOAD_CLIENT_ID), configuration file (client-id: ...), scenario, default.
In the environment, lists take commas between values; user-property and
fail-if take new lines.
`

func visible(fs *pflag.FlagSet) string {
	out := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			out.AddFlag(f)
		}
	})
	return out.FlagUsages()
}

// helpCommand is "mqttload help run", the same as "mqttload run --help".
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show the help of a command",
		Example: "  mqttload help run",
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(c, args[len(args)-1])
			}
			return c.Help()
		},
	}
}

func useLine(c *cobra.Command) string {
	if c.HasAvailableSubCommands() {
		return c.CommandPath() + " COMMAND"
	}
	return c.UseLine()
}
