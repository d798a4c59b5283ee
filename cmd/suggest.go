package cmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/internal/text"
)

// flagError turns an error of pflag into a usage error, with the flag that was
// probably meant. It never repeats a value, which may be a password.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	var syntax *pflag.InvalidSyntaxError
	see := "see mqttload" + strings.TrimPrefix(c.CommandPath(), "mqttload") + " --help"
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case errors.As(err, &unknown):
		return unknownFlag(c, unknown, see)
	case errors.As(err, &missing):
		return bench.Faultf(bench.Usage, see, "flag --%s needs a value", missing.GetFlag().Name)
	case errors.As(err, &invalid):
		name := invalid.GetFlag().Name
		return bench.Faultf(bench.Usage, fmt.Sprintf("write --%s, or --%s=false", name, name), "--%s is true or false", name)
	case errors.As(err, &syntax):
		return bench.Faultf(bench.Usage, see, "a flag is written --name or --name=value")
	}
	return bench.Faultf(bench.Usage, see, "the command line cannot be read")
}

func unknownFlag(c *cobra.Command, e *pflag.NotExistError, see string) error {
	name, shown := e.GetSpecifiedName(), "--"+e.GetSpecifiedName()
	if group := e.GetSpecifiedShortnames(); group != "" {
		shown = "-" + name
		// "-clients 10" misses a dash; it is not a row of short flags.
		name, _, _ = strings.Cut(group, "=")
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := text.Nearest(name, names); near != "" {
		return bench.Faultf(bench.Usage, see, "unknown flag %s, did you mean --%s?", shown, near)
	}
	return bench.Faultf(bench.Usage, see, "unknown flag %s", shown)
}

func unknownCommand(c *cobra.Command, name string) error {
	see := "see " + c.CommandPath() + " --help"
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if near := text.Nearest(name, names); near != "" {
		return bench.Faultf(bench.Usage, see, "unknown command %q, did you mean %q?", printable(name), near)
	}
	return bench.Faultf(bench.Usage, see, "unknown command %q", printable(name))
}

// noArgs refuses stray arguments.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if c.HasSubCommands() {
		return unknownCommand(c, args[0])
	}
	return stray(c, args[0])
}

func stray(c *cobra.Command, arg string) error {
	hint := "see " + c.CommandPath() + " --help"
	if arg == "true" || arg == "false" {
		hint = "a switch takes its value with an equals sign: --name=" + arg
	}
	return bench.Faultf(bench.Usage, hint, "stray argument %q", printable(arg))
}

// printable is an argument without the parts that may hold a password.
func printable(arg string) string {
	if before, _, ok := strings.Cut(arg, "://"); ok {
		return before + "://..."
	}
	if strings.ContainsRune(arg, '@') {
		return "..."
	}
	return arg
}
