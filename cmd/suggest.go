package cmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mqttload/mqttload/internal/bench"
)

// flagError turns what pflag says about the command line into a usage error,
// with the flag that was probably meant. It never repeats a value: that may be
// a password.
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
		// "-clients 10" is one dash too few rather than a row of short flags.
		name, _, _ = strings.Cut(group, "=")
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := nearest(name, names); near != "" {
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
	if near := nearest(name, names); near != "" {
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

// printable is an argument as it may be repeated: a URL may hold a password.
func printable(arg string) string {
	if before, _, ok := strings.Cut(arg, "://"); ok {
		return before + "://..."
	}
	if strings.ContainsRune(arg, '@') {
		return "..."
	}
	return arg
}

// nearest returns the name closest to s: one that differs in few letters, or
// the only one that s is the end or the beginning of; "" when none is close.
func nearest(s string, names []string) string {
	s = strings.ToLower(strings.ReplaceAll(s, "_", "-"))
	best, least := "", max(1, len(s)/3)+1
	for _, n := range names {
		if d := distance(s, n); d < least {
			best, least = n, d
		}
	}
	if best != "" || len(s) < 3 {
		return best
	}
	for _, n := range names {
		if strings.HasPrefix(n, s) || strings.HasSuffix(n, "-"+s) || strings.HasPrefix(s, n+"-") {
			if best != "" {
				return ""
			}
			best = n
		}
	}
	return best
}

// distance counts the insertions, deletions, substitutions and swaps of
// neighbours that lead from a to b (optimal string alignment).
func distance(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
