package mqtt

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sources are the folders with the code that implements statements, by the side that
// must obey them.
var sources = map[string][]string{
	"client": {"mqtt", "mqtt/packet", "internal/wire", "load", "scenarios"},
	"broker": {"broker", "mqtt/packet", "internal/wire"},
}

// A statement is one line of testdata/statements.txt.
type statement struct {
	line                     int
	version, id, side, tests string // tests is the folder of the tests
	names                    []string
}

// TestStatements: every statement of the list is named in a comment above the code
// that implements it, and the tests that would fail without that code exist.
func TestStatements(t *testing.T) {
	comments, tests := map[string]string{}, map[string]string{}
	for side, dirs := range sources {
		comments[side] = commentsOf(t, dirs)
	}
	seen := map[string]bool{}
	for _, s := range readStatements(t) {
		where := filepath.ToSlash(filepath.Join("testdata", "statements.txt"))
		key := s.version + " " + s.id + " " + s.side
		if seen[key] {
			t.Errorf("%s:%d: %s is listed twice", where, s.line, key)
		}
		seen[key] = true
		if !names(comments[s.side], s.id) {
			t.Errorf("%s:%d: no comment in %v names %s", where, s.line, sources[s.side], s.id)
		}
		if tests[s.tests] == "" {
			tests[s.tests] = filesOf(t, s.tests, true)
		}
		for _, name := range s.names {
			if !strings.Contains(tests[s.tests], "\nfunc "+name+"(") {
				t.Errorf("%s:%d: no %s in %s", where, s.line, name, s.tests)
			}
		}
	}
	if len(seen) == 0 {
		t.Errorf("no statements")
	}
}

// names reports whether text contains id, and not only as a part of another one.
func names(text, id string) bool {
	const more = "-.0123456789"
	for {
		before, after, ok := strings.Cut(text, id)
		if !ok {
			return false
		}
		if !strings.ContainsAny(before[max(0, len(before)-1):], more) && !strings.ContainsAny(after[:min(1, len(after))], more) {
			return true
		}
		text = after
	}
}

var statementLine = regexp.MustCompile(`^(5\.0|3\.1\.1|3\.1) (\S+) (client|broker) (\S+):((?: (?:Test|Fuzz)\w+)+)$`)

func readStatements(t *testing.T) (list []statement) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "statements.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		line := strings.TrimSpace(in.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		m := statementLine.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("statements.txt:%d: %q is not VERSION ID SIDE FOLDER: TEST ...", n, line)
			continue
		}
		list = append(list, statement{n, m[1], m[2], m[3], m[4], strings.Fields(m[5])})
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// commentsOf returns the comments of the Go files in dirs, without tests.
func commentsOf(t *testing.T, dirs []string) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range dirs {
		for _, line := range strings.Split(filesOf(t, dir, false), "\n") {
			if _, comment, ok := strings.Cut(line, "//"); ok {
				b.WriteString(comment + "\n")
			}
		}
	}
	return b.String()
}

// filesOf returns the text of the Go files in a folder of the module.
func filesOf(t *testing.T, dir string, tests bool) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no Go files in %s: %v", dir, err)
	}
	var b strings.Builder
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") != tests {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
		b.Write(text)
	}
	return b.String()
}
