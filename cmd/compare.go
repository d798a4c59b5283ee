package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/result"
)

var compareFlags = []flagGroup{{"Flags", []flagSpec{
	{name: "base", kind: list, tool: true, value: "FILE", help: "base report; the iterations of several are pooled"},
	{name: "head", kind: list, tool: true, value: "FILE", help: "head report; the iterations of several are pooled"},
	{name: "across", tool: true, value: "KEY",
		help: "compare the values of this parameter, such as transport, inside one report; KEY=VALUE makes VALUE the base"},
	{name: "ignore", kind: list, tool: true, value: "KEY",
		help: "ignore this parameter when matching cases; repeatable"},
	{name: "threshold", tool: true, value: "PERCENT", help: "smallest change that matters", preset: "5%"},
	{name: "allow", kind: list, tool: true, value: "KEY",
		help: "ignore this difference between the runs (see above); repeatable"},
	{name: "strict", kind: toggle, tool: true, help: "exit with 8 if a case is inconclusive"},
	outputFlag("comparison", comparisonFormats),
	formatFlag(comparisonFormats),
}}}

func (a *app) compareCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "compare-reports BASE HEAD... [flags]", Aliases: []string{"compare"},
		Short: "Compare reports case by case",
		Long: "Compare-reports says for each case whether HEAD is faster than BASE, slower, the\n" +
			"same or inconclusive. Several HEADs are compared with BASE one by one; files\n" +
			"joined by commas are one side, and their iterations are pooled. It reads reports\n" +
			"of mqttload (.json, .json.gz), BenchmarkDotNet's markdown and full JSON,\n" +
			"tab-separated tables and Go benchmark text. The exit code is 0 without a\n" +
			"regression, 7 with one, and 8 if the reports cannot be compared.\n\n" +
			"Runs that differ in their conditions are refused. --allow accepts a difference:\n" +
			strings.Join(wrapped(strings.Join(result.UnlikeKeys, ", "), 78), "\n") + ".",
		Example: "  mqttload compare-reports base.json head.json",
		RunE: func(c *cobra.Command, args []string) error {
			return a.compareReports(c, args)
		},
	}
	define(c, compareFlags)
	complete(c, "format", comparisonFormats)
	complete(c, "allow", result.UnlikeKeys)
	return c
}

// compareReports compares what the arguments name and prints it.
func (a *app) compareReports(c *cobra.Command, args []string) error {
	var bad bench.Faults
	s := flagSettings(c, compareFlags)
	outs := comparisonFormats.parse(s, &bad)
	o := compareOptions(s, "threshold", &bad)
	base, heads := sides(s, args, &bad)
	outs.spare(s, slices.Concat(base, slices.Concat(heads...)), &bad)
	if len(heads) > 1 && outs.has("html") {
		bad.Usage("give one HEAD, or join the files of one side by commas", "html shows one comparison")
	}
	if len(bad) > 0 {
		return bad
	}
	all := comparisons{}
	for _, head := range heads {
		all = append(all, comparison{head: readInputs(head, &bad)})
	}
	inputs := readInputs(base, &bad)
	if len(bad) > 0 {
		return bad.Err()
	}
	return a.compareAll(all, inputs, o, outs, s["strict"].on())
}

// compareAll compares every head with the base, and shows each comparison that is
// possible even if another is not.
func (a *app) compareAll(all comparisons, base []*result.Input, o result.CompareOptions, outs outputs, strict bool) error {
	var bad bench.Faults
	var done comparisons
	for _, one := range all {
		var err error
		one.base = base
		if one.outcome, err = result.Compare(base, one.head, o); err != nil {
			bad = append(bad, bench.CompareFault(err))
			continue
		}
		done = append(done, one)
	}
	if len(done) > 0 {
		a.noteReplaced(outs)
		failed := outs.finish(a.Stdout, done.write, done.files()...)
		bad = slices.Concat(bad, done.verdict(strict), failed)
		a.tellGitHub(done.summary(), done.errorLines())
	}
	return bad.InOrder().Err()
}

// sides lists the files of the base, and of each head.
func sides(s settings, args []string, bad *bench.Faults) (base []string, heads [][]string) {
	base, head := splitFiles(s["base"].values...), splitFiles(s["head"].values...)
	across := s["across"].value() != ""
	if len(args) > 0 && len(base) == 0 {
		base, args = splitFiles(args[0]), args[1:]
	}
	if len(head) > 0 {
		heads = append(heads, head)
	}
	for _, arg := range args {
		heads = append(heads, splitFiles(arg))
	}
	switch {
	case len(base) == 0:
		bad.Usage("name the base and the head: mqttload compare-reports base.json head.json", "there is nothing to compare")
	case across && len(heads) > 0:
		bad.Usage("give one file, or leave --across out", "--across compares inside one file")
	case across:
		heads = [][]string{nil}
	case len(heads) == 0:
		bad.Usage("name a second file, or compare inside this one with --across KEY", "there is no head to compare %s with", printable(base[0]))
	case len(head) > 0 && len(args) > 0:
		bad.Usage("remove one of them", "both --head and an argument name the head")
	}
	return base, heads
}
