package report

import (
	"bytes"
	"fmt"
	"io"

	"github.com/mqttload/mqttload/result"
)

// writeMarkdown writes r for GitHub: the header as a code block, the table, and the
// sections of Console as lists. Text from outside cannot
// start markup.
func writeMarkdown(w io.Writer, r *result.Report) error {
	var b bytes.Buffer
	t := newTable(r)
	b.WriteString("```\n")
	for _, l := range append(headerLines(r), commonLines(t.Common)...) {
		b.WriteString(fenced(l) + "\n")
	}
	b.WriteString("```\n\n")
	if len(r.Cases) == 0 {
		b.WriteString("No case was run.\n")
		return flush(w, &b)
	}
	if r.Calibration != nil {
		if err := markdownCalibration(&b, r); err != nil {
			return err
		}
		return flush(w, &b)
	}
	if err := markdownGrid(&b, t); err != nil {
		return err
	}
	writeList(&b, "Delivery", deliveryLines(r.Cases))
	for _, s := range sections(r, t) {
		if s.name != "Legends" {
			writeList(&b, s.name, s.lines)
		}
	}
	return flush(w, &b)
}

// fenced keeps a line from closing the code block around it.
func fenced(line string) string {
	return string(bytes.ReplaceAll([]byte(line), []byte("```"), []byte("'''")))
}

// writeList writes lines as a code block: they stay aligned, and nothing in them is markup.
func writeList(b *bytes.Buffer, name string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n**%s**\n\n```\n", name)
	for _, l := range lines {
		b.WriteString(fenced(l) + "\n")
	}
	b.WriteString("```\n")
}
