package cmd

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/result"
)

var reportFlags = []flagGroup{{"Flags", []flagSpec{
	outputFlag("report", reportFormats),
	formatFlag(reportFormats),
}}}

func (a *app) reportCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "report FILE... [flags]", Short: "Convert and merge saved reports",
		Long: "Report prints reports that run has saved, in any format. Several reports of one\n" +
			"scenario, from machines that ran it at the same time or one after another, are\n" +
			"merged into one: iterations and histograms are combined, and means are never\n" +
			"averaged. Gates are evaluated again; if one fails, the exit code is 6.",
		Example: "  mqttload report report.json --output report.html",
		Args:    someFiles,
		RunE:    func(c *cobra.Command, args []string) error { return a.rerender(c, args) },
	}
	define(c, reportFlags)
	complete(c, "format", reportFormats)
	return c
}

// someFiles demands arguments.
func someFiles(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return bench.Faultf(bench.Usage, "see "+c.CommandPath()+" --help", "%s needs the name of a report file", c.Name())
	}
	return nil
}

func (a *app) rerender(c *cobra.Command, args []string) error {
	var bad bench.Faults
	s := flagSettings(c, reportFlags)
	outs := reportFormats.parse(s, &bad)
	outs.spare(s, args, &bad)
	var list []*result.Report
	var files []*result.Input
	for _, path := range args {
		r, err := readReport(path)
		if err != nil {
			bad = append(bad, readFault(err))
			continue
		}
		list, files = append(list, r), append(files, result.InputOf(path, r))
	}
	if len(bad) > 0 {
		return bad
	}
	merged := list[0]
	if len(list) > 1 {
		var err error
		if merged, err = result.Merge(list...); err != nil {
			return mergeFaults(err, files)
		}
	}
	a.noteReplaced(outs)
	bad = outs.finish(a.Stdout, rendered(merged, nil), files...)
	if len(list) > 1 {
		// Merging has evaluated the gates again, over all reports.
		bad = append(bad, bench.GateFaults(merged.Gates)...)
	}
	return bad.InOrder().Err()
}

// readReport reads a report of mqttload. Unlike for compare-reports, it need not
// have a measured case.
func readReport(path string) (*result.Report, error) {
	if err := endless(path); err != nil {
		return nil, err
	}
	return result.Read(path)
}

// mergeFaults explains why reports cannot be merged: they are of unlike runs, or a
// file is damaged.
func mergeFaults(err error, files []*result.Input) error {
	var unlike *result.MergeError
	if errors.As(err, &unlike) {
		return bench.Faultf(bench.Unlike, "", "%v", err)
	}
	return damageFaults(err, bench.Unlike, files)
}
