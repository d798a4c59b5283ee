package result

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ReadAny reads the file path, plain or gzipped, in any of the formats FormatReport to
// FormatGoBench. The error is
// a *FileError, which wraps ErrNoCells if the file has no measured case. Memory is
// bounded by maxFileSize and maxElements.
func ReadAny(path string) (*Input, error) {
	b, err := readFile(path, maxFileSize)
	if err != nil {
		return nil, fileError("read", path, err)
	}
	in, err := ParseInput(path, b)
	if err != nil {
		return nil, fileError("read", path, err)
	}
	return in, nil
}

// ParseInput reads the unpacked content b of a file called source: see ReadAny,
// without the *FileError.
func ParseInput(source string, b []byte) (*Input, error) {
	sum := sha256.Sum256(b)
	in, err := parseAs(plainText(b))
	if err != nil {
		return nil, err
	}
	in.Source, in.Digest = source, hex.EncodeToString(sum[:])
	if err := in.check(); err != nil {
		return nil, err
	}
	return in, nil
}

func parseAs(b []byte) (*Input, error) {
	text := bytes.TrimSpace(b)
	switch {
	case len(text) == 0:
		return nil, notReport("it is empty")
	case text[0] == '{':
		return parseJSON(b)
	case text[0] == '[':
		return nil, notReport("JSON of another tool: a list where a report is an object")
	case bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text):
		return nil, notReport("it is not text")
	}
	if err := checkFields(b); err != nil {
		return nil, err
	}
	lines := textLines(string(b))
	in, err := parseGoBench(lines)
	if in == nil && err == nil {
		in, err = parseTables(lines)
	}
	if in == nil && err == nil {
		err = notReport("neither JSON, a table with a Mean column, nor Go benchmark text")
	}
	return in, err
}

func parseJSON(b []byte) (*Input, error) {
	var head struct {
		Schema     *string
		Title      *string
		Benchmarks json.RawMessage
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, jsonFault(b, err)
	}
	switch {
	case head.Schema != nil:
		r, err := parseReport(b)
		if err != nil {
			return nil, err
		}
		return InputOf("", r), nil
	case head.Benchmarks != nil:
		if err := checkElements(b); err != nil {
			return nil, err
		}
		return parseBDN(b)
	}
	return nil, notReport("JSON of another tool: it has neither the schema %q nor Benchmarks of BenchmarkDotNet", Schema)
}

// check refuses an input that could only be taken for a clean result by mistake.
func (in *Input) check() error {
	measured := 0
	seen := map[string]bool{}
	for i := range in.Cells {
		c := &in.Cells[i]
		if key := joinKey(c.Params, noParam); seen[key] {
			return notReport("duplicate case %q", c.ID)
		} else {
			seen[key] = true
		}
		if err := checkSummary(c.Summary); err != nil {
			return notReport("case %q: %v", c.ID, err)
		}
		if c.measured() {
			measured++
		}
	}
	switch {
	case len(in.Cells) == 0:
		return fmt.Errorf("%w: run it again", ErrNoCells)
	case measured == 0:
		return fmt.Errorf("%w: none of %d cases has an iteration", ErrNoCells, len(in.Cells))
	}
	return nil
}

func noParam(Param) bool { return false }

func textLines(s string) []string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines
}
