package cmd

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// allowed is who may import whom inside of the module. A folder that is not
// named may import none of ours, and none may import cmd.
var allowed = map[string]string{
	"":                    "cmd",
	"internal/text":       "",
	"internal/file":       "",
	"internal/racing":     "",
	"internal/strictyaml": "internal/text",
	"mqtt/packet":         "internal/text",
	"tlsconf":             "internal/file internal/text",
	"result/stats":        "",
	"result":              "result/stats internal/text",
	"internal/wire":       "mqtt/packet",
	"internal/mqtttest":   "mqtt/packet internal/pace internal/wire",
	"mqtt":                "mqtt/packet internal/wire internal/text",
	"broker":              "mqtt/packet internal/pace internal/wire internal/text",
	"scenarios":           "mqtt/packet tlsconf result internal/strictyaml internal/file internal/text",
	"internal/pace":       "",
	"internal/cputime":    "",
	"internal/dial":       "mqtt mqtt/packet scenarios tlsconf result internal/text",
	"load":                "internal/dial scenarios mqtt mqtt/packet tlsconf result internal/pace internal/cputime internal/text",
	"internal/preflight":  "internal/dial load scenarios mqtt mqtt/packet tlsconf result internal/text",
	"internal/bench":      "internal/preflight internal/dial load broker mqtt mqtt/packet scenarios tlsconf result internal/text",
	"internal/calibrate":  "internal/bench load broker scenarios result",
	"report":              "result internal/text",
	"cmd":                 "internal/bench internal/dial mqtt mqtt/packet tlsconf scenarios load result report broker internal/calibrate internal/preflight internal/strictyaml internal/file internal/text",
}

// only says which folders may use a package from outside.
var only = map[string]string{
	"github.com/spf13/cobra":               "cmd",
	"github.com/spf13/pflag":               "cmd",
	"github.com/spf13/viper":               "cmd",
	"os/signal":                            "cmd",
	"log":                                  "",
	"log/slog":                             "",
	"github.com/olekukonko/tablewriter":    "report",
	"github.com/olekukonko/tablewriter/tw": "report",
}

// TestImports keeps the architecture: reports link no network code, the engine
// no formatting, and only cmd knows the process around it.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "../...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	const module = "github.com/mqttload/mqttload"
	seen := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		from := strings.TrimPrefix(strings.TrimPrefix(fields[0], module), "/")
		seen++
		for _, imp := range fields[1:] {
			to, ours := strings.CutPrefix(imp, module+"/")
			if ours && !contains(allowed[from], to) {
				t.Errorf("%s imports %s; it may import: %s", fields[0], to, allowed[from])
			}
			if folders, limited := only[imp]; limited && !contains(folders, from) {
				t.Errorf("%s imports %s; only these may: %q", fields[0], imp, folders)
			}
		}
	}
	if seen < 8 {
		t.Errorf("go list named %d packages: these are not all", seen)
	}
}

// TestNoTestPeerInTheProgram: what is there for tests is not linked into the
// program.
func TestNoTestPeerInTheProgram(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "..").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, p := range strings.Fields(string(out)) {
		if strings.HasSuffix(p, "/internal/mqtttest") || p == "testing" {
			t.Errorf("the program links %s", p)
		}
	}
}

func contains(list, word string) bool {
	for _, w := range strings.Fields(list) {
		if w == word {
			return true
		}
	}
	return false
}

// TestImportsOnTheArchitecturePage holds docs/architecture.md to the code: its floors and import
// rules are those above, its files exist, and what it names in a file is there.
func TestImportsOnTheArchitecturePage(t *testing.T) {
	b, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	floors, imports := map[string]int{}, map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| (\\d+) \\| `(.+?)` \\| .* \\|(.*) \\|$").FindAllStringSubmatch(page, -1) {
		folder := strings.TrimPrefix(m[2], "main.go")
		floors[folder], _ = strconv.Atoi(m[1])
		imports[folder] = strings.Fields(m[3])
	}
	for folder, list := range allowed {
		if got := strings.Join(imports[folder], " "); got != list || floors[folder] == 0 {
			t.Errorf("%q may import %q, the page says %q", folder, list, got)
		}
		for _, to := range strings.Fields(list) {
			if floors[to] >= floors[folder] {
				t.Errorf("the page has %q on floor %d and %q, which it may import, on floor %d", folder, floors[folder], to, floors[to])
			}
		}
	}
	if len(floors) != len(allowed) {
		t.Errorf("the page has %d packages, the rules %d", len(floors), len(allowed))
	}
	named := regexp.MustCompile("`([\\w/]+\\.\\w+|internal/interop)`(?: \\(((?:`\\w+`(?:, )?)+)\\))?").FindAllStringSubmatch(page, -1)
	for _, m := range named {
		content, err := os.ReadFile("../" + m[1])
		if _, statErr := os.Stat("../" + m[1]); statErr != nil {
			t.Errorf("the page names a file that does not exist: %v", statErr)
		}
		for _, name := range strings.FieldsFunc(m[2], func(r rune) bool { return r == '`' || r == ',' || r == ' ' }) {
			if err != nil || !regexp.MustCompile(`\b`+name+`\b`).Match(content) {
				t.Errorf("%s has no %s", m[1], name)
			}
		}
	}
	if len(named) < 40 {
		t.Errorf("the test finds only %d files on the page", len(named))
	}
}
