package cmd

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// help prints a command's help: an example first, because people look for it, then
// the commands, the flags by group, and the exit codes.
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
			b.WriteString("\n" + g.usages(a.helpWidth()))
		}
	default:
		if flags := visible(c.LocalFlags()); flags != "" {
			b.WriteString("\nFlags:\n" + flags)
		}
	}
	if c.Name() == "run" {
		b.WriteString("\n" + runHelpTail)
	}
	if slices.Contains(judging, c.Name()) {
		b.WriteString("\n" + exitCodesHelp)
	}
	_, _ = io.WriteString(c.OutOrStdout(), b.String())
}

// judging are the commands whose help lists the exit codes.
var judging = []string{"mqttload", "run", "conn", "pub", "sub", "compare-reports", "audit", "check", "calibrate"}

// helpGroups are the commands whose help shows flags by group.
var helpGroups = map[string][]flagGroup{
	"run": runFlags, "conn": connFlags, "pub": pubFlags, "sub": subFlags, "broker": brokerFlags,
	"compare-reports": compareFlags, "report": reportFlags, "audit": auditFlags,
	"calibrate": calibrateFlags, "check": checkFlags,
}

const runHelpTail = `Precedence, highest first: flag, environment (MQTTLOAD_CLIENT_ID is
--client-id), configuration file (client-id: ...), scenario, default.
In the environment, commas separate the values of a list; in those of
user-property and fail-if, line breaks do.
`

// helpWidth is the width of the terminal, within sensible bounds, or a common one
// without a terminal.
func (a *app) helpWidth() int {
	if f, ok := a.Stdout.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return min(max(width, 72), 120)
		}
	}
	return 100
}

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
