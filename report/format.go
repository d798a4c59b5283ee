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

// writer is one form of a report, and the file names that mean it.
type writer struct {
	name       string
	aliases    []string
	extensions []string // the usual one first
	write      func(io.Writer, *result.Report) error
}

// writers are all formats, in the order in which a help text lists them.
var writers = []writer{
	{"console", []string{"table", "text"}, []string{".txt"}, Console},
	{"markdown", []string{"md", "github"}, []string{".md", ".markdown"}, Markdown},
	{"csv", nil, []string{".csv"}, CSV},
	{"json", nil, []string{".json", ".json.gz"}, JSON},
	{"ndjson", []string{"jsonl"}, []string{".ndjson", ".jsonl"}, NDJSON},
	{"junit", []string{"xml"}, []string{".xml"}, JUnit},
	{"gobench", []string{"benchfmt", "benchstat"}, []string{".bench"}, GoBench},
	{"hdrlog", []string{"hlog"}, []string{".hlog"}, HDRLog},
	{"html", nil, []string{".html", ".htm"}, HTML},
}

// FormatError says that no format of those in Known has the name Name.
type FormatError struct {
	Name  string
	Known []string
}

func (e *FormatError) Error() string {
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

// FormatName returns the name among Formats that name means, itself or an alias
// such as md, table, jsonl or benchfmt; otherwise a *FormatError.
func FormatName(name string) (string, error) {
	for _, f := range writers {
		if f.name == name || slices.Contains(f.aliases, name) {
			return f.name, nil
		}
	}
	return "", &FormatError{Name: name, Known: Formats()}
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
// "out/r.html" is html, "r.json.gz" is json; false where it means none.
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
// readers. It returns a *FormatError for an unknown name, an error that names
// the case where a number cannot be written, or else w's error.
func Write(w io.Writer, name string, r *result.Report) error {
	full, err := FormatName(name)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(writers, func(f writer) bool { return f.name == full })
	return writers[i].write(w, r)
}

// JSON writes r as result.Encode does, with characters that do not print, such
// as bidirectional controls, as \uXXXX: the same values, safe on a terminal.
func JSON(w io.Writer, r *result.Report) error {
	var b bytes.Buffer
	if err := result.Encode(&b, r); err != nil {
		return err
	}
	safe := bytes.NewBuffer(printableJSON(b.Bytes()))
	return flush(w, safe)
}
