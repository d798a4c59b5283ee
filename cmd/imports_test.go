package cmd

import (
	"os/exec"
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
