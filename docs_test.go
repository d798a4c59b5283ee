package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/cmd"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

// documents are all that users read.
func documents(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("docs/*.md")
	if err != nil || len(names) < 3 {
		t.Fatalf("docs: %v, %v", names, err)
	}
	texts := map[string]string{}
	for _, name := range append(names, "README.md", "CHANGELOG.md", "CONTRIBUTING.md") {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(b)
	}
	return texts
}

// A block is a fenced one, with the comment in the line before it.
type block struct{ mark, lang, text string }

var fence = regexp.MustCompile("(?ms)^(?:<!-- ([^\n]*) -->\n)?```(\\w+)\n(.*?)^```$")

func blocks(text string) (list []block) {
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		list = append(list, block{m[1], m[2], m[3]})
	}
	return list
}

// tool runs the program and returns its standard output and exit code.
func tool(args ...string) (stdout, stderr string, code int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if args[0] == "broker" {
		cancel() // it would serve for ever
	}
	var out, errs bytes.Buffer
	code = cmd.Main(ctx, cmd.Process{
		Args: args, Environ: []string{"BENCH_PASSWORD=secret"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
	})
	return out.String(), errs.String(), code
}

// TestDocumentedCommands runs every "$ mqttload" of the documents. A comment
// before the block says how: "run FLAGS" for real, with these flags added
// (fewer iterations, another port); without one a run is planned only. What a
// comment "file: NAME" stands before is there as a file.
func TestDocumentedCommands(t *testing.T) {
	texts := documents(t)
	t.Chdir(t.TempDir())
	writeFiles(t, texts)
	ran := 0
	for name, text := range texts {
		for _, b := range blocks(text) {
			if b.lang != "console" {
				continue
			}
			for _, line := range commands(b.text) {
				ran++
				t.Run(fmt.Sprintf("%s: %s", name, line), func(t *testing.T) { runDocumented(t, b, line) })
			}
		}
	}
	if ran < 10 {
		t.Errorf("only %d commands were found", ran)
	}
}

// commands are the lines of mqttload, continued ones joined, without comments.
func commands(text string) (list []string) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "$ mqttload "); ok {
			rest, _, _ = strings.Cut(rest, " #")
			list = append(list, strings.TrimSpace(rest))
		}
	}
	return list
}

func runDocumented(t *testing.T, b block, line string) {
	args := words(line)
	extra, real := strings.CutPrefix(b.mark, "run")
	if args[0] == "run" && !real {
		extra = "--dry-run"
	}
	stdout, stderr, code := tool(append(args, words(extra)...)...)
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if want := tableHead(b.text); want != nil {
		if got := tableHead(stdout); !reflect.DeepEqual(got, want) {
			t.Errorf("the table has the columns %q, the document shows %q", got, want)
		}
	}
}

// words splits as a shell does, as far as documents use it: at spaces outside
// of single or double quotes.
func words(s string) (list []string) {
	for _, m := range regexp.MustCompile(`(?:[^\s'"]|'[^']*'|"[^"]*")+`).FindAllString(s, -1) {
		list = append(list, strings.NewReplacer(`'`, "", `"`, "").Replace(m))
	}
	return list
}

// tableHead are the names of the columns of the first table in text.
func tableHead(text string) (names []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") {
			for cell := range strings.SplitSeq(strings.Trim(line, "|\n"), "|") {
				names = append(names, strings.TrimSpace(cell))
			}
			return names
		}
	}
	return nil
}

// writeFiles makes the files that commands of the documents name.
func writeFiles(t *testing.T, texts map[string]string) {
	bundle, err := tlsconf.ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		"ca.pem": bundle.CAPEM(), "client.pem": bundle.ClientOptions().CertPEM, "client.key": bundle.ClientOptions().KeyPEM,
		"password.txt": []byte("secret\n"),
	}
	for _, text := range texts {
		for _, b := range blocks(text) {
			if name, ok := strings.CutPrefix(b.mark, "file: "); ok {
				files[name] = []byte(b.text)
			}
		}
	}
	for name, content := range files {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Every key of the report file is described in docs/report.md.
func TestReportSchemaIsDocumented(t *testing.T) {
	text := documents(t)["docs/report.md"]
	seen := 0
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			seen++
			if key == "" || !strings.Contains(text, "`"+key+"`") {
				t.Errorf("%s.%s: `%s` is not described", typ, f.Name, key)
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[result.Report]())
	if seen < 100 {
		t.Errorf("the walk saw only %d keys", seen)
	}
	if !strings.Contains(text, "`"+result.Schema+"`") {
		t.Errorf("the schema is not named %s", result.Schema)
	}
}

// Every key of the scenario file and every built-in is in docs/scenarios.md.
func TestScenarioKeysAreDocumented(t *testing.T) {
	text := documents(t)["docs/scenarios.md"]
	for _, key := range scenarios.Keys() {
		if want := "`" + key + "`"; !strings.Contains(text, want) && !strings.Contains(text, "`--"+key+"`") && key != "tls" {
			t.Errorf("the key %s is not described", want)
		}
	}
	for _, s := range scenarios.Builtins() {
		if !strings.Contains(text, "| `"+s.Name+"` |") {
			t.Errorf("the built-in scenario %s is not described", s.Name)
		}
	}
}

// Flags that are named in running text exist, and exit codes are as --help has them.
func TestDocumentsAgreeWithHelp(t *testing.T) {
	var help strings.Builder
	for _, c := range []string{"run", "broker", "compare-reports", "report", "audit", "calibrate"} {
		stdout, stderr, code := tool(c, "--help")
		if code != 0 {
			t.Fatalf("%s --help: exit code %d\n%s", c, code, stderr)
		}
		help.WriteString(stdout)
	}
	known := map[string]bool{"--help": true}
	flag := regexp.MustCompile(`--[a-z][a-z-]+`)
	for _, f := range flag.FindAllString(help.String(), -1) {
		known[f] = true
	}
	texts := documents(t)
	for name, text := range texts {
		for _, span := range regexp.MustCompile("`--[^`\n]*`").FindAllString(text, -1) {
			if f := flag.FindString(span); !known[f] {
				t.Errorf("%s: %s is no flag", name, f)
			}
		}
	}
	_, list, _ := strings.Cut(help.String(), "Exit codes:\n")
	codes := regexp.MustCompile(`(?m)^  (\d+) `).FindAllStringSubmatch(list, -1)
	if len(codes) < 7 {
		t.Fatalf("--help lists %d exit codes", len(codes))
	}
	for _, c := range codes {
		if !strings.Contains(texts["README.md"], "| "+c[1]+" |") {
			t.Errorf("README.md does not explain exit code %s", c[1])
		}
	}
}

// Links between the documents lead somewhere.
func TestDocumentLinks(t *testing.T) {
	texts := documents(t)
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	for name, text := range texts {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			path = filepath.Join(filepath.Dir(name), path)
			if path == filepath.Dir(name) {
				path = name
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %s leads nowhere", name, m[1])
			}
			found := anchor == ""
			for _, h := range heading.FindAllStringSubmatch(texts[path], -1) {
				found = found || anchorOf(h[1]) == anchor
			}
			if !found {
				t.Errorf("%s: %s has no heading %s", name, path, anchor)
			}
		}
	}
}

// anchorOf is what a link to heading has behind its #.
func anchorOf(heading string) string {
	return strings.NewReplacer(" ", "-", "`", "", ",", "").Replace(strings.ToLower(heading))
}
