package cmd

import (
	"bytes"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/report"
	"github.com/mqttload/mqttload/result"
)

var auditFormats = formatSet(report.AuditFormats())

var auditFlags = []flagGroup{{"Flags", []flagSpec{
	outputFlag("findings", auditFormats),
	formatFlag(auditFormats),
}}}

func (a *app) auditCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "audit FILE... [flags]", Short: "Recompute the numbers of a report",
		Long: "Audit recomputes the numbers of a report of mqttload, or of a table of another\n" +
			"tool: the number of iterations behind Error and StdDev, Req/sec against Mean,\n" +
			"digits, short iterations, and stalls hidden in a mean; for reports of mqttload,\n" +
			"every number that follows from iterations, counts and histograms. The exit code\n" +
			"is 8 if a number does not follow from the data. A number that is correct but\n" +
			"misleading is a warning, with exit code 0.",
		Example: "  mqttload audit report.json",
		Args:    someFiles,
		RunE:    func(c *cobra.Command, args []string) error { return a.audit(c, args) },
	}
	define(c, auditFlags)
	complete(c, "format", auditFormats)
	return c
}

// audited is one file and the findings about it.
type audited struct {
	input    *result.Input
	findings []result.Finding
}

type audits []audited

func (a *app) audit(c *cobra.Command, args []string) error {
	var bad bench.Faults
	s := flagSettings(c, auditFlags)
	outs := auditFormats.parse(s, &bad)
	outs.spare(s, args, &bad)
	inputs := readInputs(args, &bad)
	if len(bad) > 0 {
		return bad.InOrder()
	}
	var all audits
	for _, in := range inputs {
		all = append(all, audited{in, result.Audit(in)})
	}
	a.noteReplaced(outs)
	return append(all.verdict(), outs.finish(a.Stdout, all.write)...).InOrder().Err()
}

// verdict has one fault for each file that contradicts itself.
func (list audits) verdict() (bad bench.Faults) {
	for _, one := range list {
		n, first := 0, ""
		for _, f := range one.findings {
			if f.Level != result.LevelFail {
				continue
			}
			if n++; n == 1 {
				first = strings.TrimPrefix(f.Case+": "+f.Message, ": ")
			}
		}
		if n > 0 {
			bad.Add(bench.Unlike, "", "%s: %s%s", one.input.Source, first, bench.AndMore(n-1))
		}
	}
	return bad
}

func (list audits) write(w io.Writer, format string) error {
	var b bytes.Buffer
	for i, one := range list {
		separate(&b, format, i, len(list))
		if err := report.WriteAudit(&b, format, one.input, one.findings); err != nil {
			return err
		}
	}
	closeList(&b, format, len(list))
	_, err := w.Write(b.Bytes())
	return err
}
