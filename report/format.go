package report

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/result"
)

// writer is one format of a report, with its names and the extensions of its files.
type writer struct {
	name       string
	aliases    []string
	extensions []string // the usual one first
	write      func(io.Writer, *result.Report) error
}

// writers are all formats, in the order in which a help text lists them.
var writers = []writer{
	{"console", []string{"table", "text"}, []string{".txt"}, writeConsole},
	{"markdown", []string{"md", "github"}, []string{".md", ".markdown"}, writeMarkdown},
	{"csv", nil, []string{".csv"}, writeCSV},
	{"json", nil, []string{".json", ".json.gz"}, writeReportJSON},
	{"ndjson", []string{"jsonl"}, []string{".ndjson", ".jsonl"}, writeNDJSON},
	{"junit", []string{"xml"}, []string{".xml"}, writeJUnit},
	{"gobench", []string{"benchfmt", "benchstat"}, []string{".bench"}, writeGoBench},
	{"hdrlog", []string{"hlog"}, []string{".hlog"}, writeHDRLog},
	{"html", nil, []string{".html", ".htm"}, writeHTML},
}

// formatError is the error of an unknown format name.
type formatError struct {
	Name  string
	Known []string
}

func (e *formatError) Error() string {
	return fmt.Sprintf("unknown format %q: use one of %s", e.Name, strings.Join(e.Known, ", "))
}

// Formats returns the names of all formats, the console's first.
func Formats() []string {
	names := make([]string, len(writers))
	for i, f := range writers {
		names[i] = f.name
	}
	return names
}

// FormatName returns the format called name. name may be an alias, such as md, table,
// jsonl or benchfmt. The error of an unknown name lists the formats.
func FormatName(name string) (string, error) {
	for _, f := range writers {
		if f.name == name || slices.Contains(f.aliases, name) {
			return f.name, nil
		}
	}
	return "", &formatError{Name: name, Known: Formats()}
}

// Extension returns the usual ending of files of a format, such as ".md" for
// markdown; "" for a name that is not one of Formats.
func Extension(name string) string {
	for _, f := range writers {
		if f.name == name {
			return f.extensions[0]
		}
	}
	return ""
}

// FormatOf returns the format that the name of a file means, by its extension:
// "out/r.html" is html, "r.json.gz" is json; false if it means none.
func FormatOf(path string) (name string, ok bool) {
	base := strings.ToLower(filepath.Base(path))
	for _, f := range writers {
		if slices.ContainsFunc(f.extensions, func(e string) bool { return strings.HasSuffix(base, e) }) {
			return f.name, true
		}
	}
	return "", false
}

// Write writes r in the format called name, one of Formats or an alias of it.
// Every format shows the same model; text from outside is escaped for its
// readers. The error names an unknown format, or the case of a number that cannot be
// written, or is that of w.
func Write(w io.Writer, name string, r *result.Report) error {
	full, err := FormatName(name)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(writers, func(f writer) bool { return f.name == full })
	return writers[i].write(w, r)
}

// writeReportJSON writes r as result.Encode does, with characters that do not print, such
// as bidirectional controls, as \uXXXX: the same values, safe on a terminal.
func writeReportJSON(w io.Writer, r *result.Report) error {
	var b bytes.Buffer
	if err := result.Encode(&b, r); err != nil {
		return err
	}
	safe := bytes.NewBuffer(printableJSON(b.Bytes()))
	return flush(w, safe)
}
