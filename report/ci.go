package report

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
)

// maxSummary is the longest summary of a step that GitHub accepts, 1 MiB. It refuses a
// longer one altogether.
const maxSummary = 1 << 20

// StepSummary is r as markdown for the file that GITHUB_STEP_SUMMARY names: a heading
// with the verdict, and the report below it. If GitHub would refuse it as too long, it is
// cut to the heading and the findings.
func StepSummary(r *result.Report) string {
	head := summaryHead(r)
	var b bytes.Buffer
	if err := writeMarkdown(&b, r); err != nil {
		// A buffer takes everything: the table itself could not be drawn.
		return head + "\n" + markdownCell(err.Error()) + "\n"
	}
	if len(head)+b.Len() < maxSummary {
		return head + "\n" + b.String()
	}
	return head + fmt.Sprintf("\nThe table of %s cases is too long for a step summary: read the report file.\n", result.FormatInt(int64(len(r.Cases))))
}

// summaryHead names at most findingsShown findings, each in findingRunes.
func summaryHead(r *result.Report) string {
	const findingsShown, findingRunes = 20, 400
	fs := findings(r)
	if len(fs) == 0 {
		return fmt.Sprintf("### ✅ mqttload: %s\n", text.Count(len(r.Cases), "case"))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "### ❌ mqttload: %s in %s\n\n", text.Count(len(fs), "finding"), text.Count(len(r.Cases), "case"))
	for i, f := range fs {
		if i == findingsShown {
			fmt.Fprintf(&b, "- and %s more\n", result.FormatInt(int64(len(fs)-i)))
			break
		}
		fmt.Fprintf(&b, "- %s\n", markdownCell(shortenTo(about(f), findingRunes)))
	}
	return b.String()
}

func about(f finding) string {
	if f.id == "" {
		return f.text
	}
	return f.id + ": " + f.text
}

// ErrorLines are GitHub workflow commands, one for every reason to fail the
// build: a run that is not complete, a broken delivery contract, a failed gate.
// nil if there is none. GitHub shows the first ten of a step as annotations.
func ErrorLines(r *result.Report) (lines []string) {
	for _, f := range findings(r) {
		lines = append(lines, "::error title="+commandProperty("mqttload: "+f.kind)+"::"+commandData(about(f)))
	}
	return lines
}

// ComparisonSummary is c as markdown for a step summary, as StepSummary.
func ComparisonSummary(c *result.Comparison) string {
	head := fmt.Sprintf("### ✅ mqttload comparison: %s\n", headline(c))
	if !c.Complete() || c.Regressions() > 0 {
		head = strings.Replace(head, "✅", "❌", 1)
	}
	var b bytes.Buffer
	if err := comparisonMarkdown(&b, c); err != nil {
		return head + "\n" + markdownCell(err.Error()) + "\n"
	}
	if len(head)+b.Len() < maxSummary {
		return head + "\n" + b.String()
	}
	return head + fmt.Sprintf("\nThe table of %s is too long for a step summary: read the comparison itself.\n", text.Count(len(c.Cells), "cell"))
}

// ComparisonErrorLines are workflow commands like ErrorLines: one for every regression and
// every cell without a counterpart, and one if no cell was compared.
func ComparisonErrorLines(c *result.Comparison) (lines []string) {
	add := func(kind, text string) {
		lines = append(lines, "::error title="+commandProperty("mqttload: "+kind)+"::"+commandData(text))
	}
	if len(c.Cells) == 0 {
		add("not compared", headline(c))
	}
	for i := range c.Cells {
		if x := &c.Cells[i]; x.Regression {
			add("regression", x.ID+": "+regressionText(x))
		}
	}
	for _, m := range c.Missing {
		add("not compared", m.ID+": not in "+m.Side+": "+m.Reason)
	}
	return lines
}

// commandData and commandProperty escape as GitHub's toolkit does (actions/toolkit,
// packages/core/src/command.ts), so that no name starts a command of its own.
func commandData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text.Plain(s))
}

func commandProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(commandData(s))
}
