package cmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/scenarios"
)

func (a *app) scenariosCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "scenarios", Short: "List and show the built-in scenarios",
		Example: "  mqttload scenarios list\n  mqttload scenarios show default > mine.yaml",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the built-in scenarios", Args: noArgs,
			Example: "  mqttload scenarios list",
			RunE:    func(*cobra.Command, []string) error { return a.listScenarios() },
		},
		&cobra.Command{
			Use: "show NAME", Short: "Print a built-in scenario as YAML", ValidArgsFunction: completeScenario,
			Example: "  mqttload scenarios show default > mine.yaml",
			Args:    oneScenario,
			RunE:    func(_ *cobra.Command, args []string) error { return a.showScenario(args[0]) },
		})
	return c
}

func oneScenario(c *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return bench.Faultf(bench.Usage, "see mqttload scenarios list", "show needs the name of a scenario")
	case 1:
		return nil
	}
	return stray(c, args[1])
}

func (a *app) listScenarios() error {
	var b strings.Builder
	for _, s := range scenarios.Builtins() {
		fmt.Fprintf(&b, "%-12s %s\n", s.Name, s.Description)
	}
	_, err := io.WriteString(a.Stdout, b.String())
	return stdoutError(err)
}

// showScenario prints a built-in scenario as it is shipped, comments included.
func (a *app) showScenario(name string) error {
	var known []string
	for _, s := range scenarios.Builtins() {
		if s.Name == name {
			_, err := a.Stdout.Write(s.Source())
			return stdoutError(err)
		}
		known = append(known, s.Name)
	}
	if near := text.Nearest(name, known); near != "" {
		return bench.Faultf(bench.Usage, "see mqttload scenarios list", "no built-in scenario %q, did you mean %q?", printable(name), near)
	}
	return bench.Faultf(bench.Usage, "see mqttload scenarios list", "no built-in scenario %q", printable(name))
}

func completeScenario(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list []string
	for _, s := range scenarios.Builtins() {
		list = append(list, s.Name+"\t"+s.Description)
	}
	return list, cobra.ShellCompDirectiveDefault
}
