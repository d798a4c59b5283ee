//go:build unix

package cmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/result"
)

// TestActionRuns: good, gated, slower and not comparable runs of the action.
func TestActionRuns(t *testing.T) {
	a, s := theAction(t), newShell(t)
	run := func(want int, inputs map[string]string) {
		t.Helper()
		_ = os.Remove(s.env["GITHUB_OUTPUT"])
		inputs["args"] = strings.Replace(quickArgs, " --qos", "\n--qos", 1) + " --user-property 'Trace=a b'"
		script, env := a.step(t, "Run mqttload", inputs)
		s.run(want, script, env)
		if got := s.read("output"); !strings.Contains(got, fmt.Sprintf("exit-code=%d\n", want)) {
			t.Errorf("outputs:\n%s", got)
		}
	}
	run(0, map[string]string{"baseline-artifact": "mqttload-baseline", "fail-if": "lost > 0\np99 > 10m\n"})
	s.printed("^::warning title=mqttload::there is no baseline")
	for _, name := range []string{"mqttload-report/report.json", "mqttload-report/report.html", "mqttload-report/junit.xml", "summary"} {
		if s.read(name) == "" {
			t.Errorf("%s is empty", name)
		}
	}
	r, err := result.Read(filepath.Join(s.dir, "mqttload-report/report.json"))
	if err != nil || len(r.Gates) != 2 || !slices.Contains(r.Run.Command, "--user-property=Trace=a b") {
		t.Errorf("report: %v, %v, %q", err, r.Gates, r.Run.Command)
	}
	run(8, map[string]string{"baseline-artifact": "mqttload-baseline", "baseline-required": "true"})
	run(6, map[string]string{"fail-if": "delivered > 0"})
	s.printed("^::error title=mqttload")

	good := filepath.Join(s.dir, "mqttload-report/report.json")
	if err := os.Mkdir(filepath.Join(s.dir, "mqttload-baseline"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		factor float64
		want   int
	}{{0.001, 7}, {1000, 0}} {
		if err := scaleReport(good, filepath.Join(s.dir, "mqttload-baseline/report.json"), test.factor); err != nil {
			t.Fatal(err)
		}
		run(test.want, map[string]string{"baseline-artifact": "mqttload-baseline", "report": "other"})
	}
	r.Environment.CPU = "Another 1"
	if err := result.Write(filepath.Join(s.dir, "alien.json"), r); err != nil {
		t.Fatal(err)
	}
	run(8, map[string]string{"baseline": "alien.json", "report": "other"})
	run(0, map[string]string{"baseline": "alien.json", "report": "other", "allow": "cpu\n", "max-regression": "1000000%"})
}

// TestActionArgs: every word arrives, and words that cannot be told apart stop
// the step before anything is loaded.
func TestActionArgs(t *testing.T) {
	a, s := theAction(t), newShell(t)
	s.stub("mqttload", `for word; do echo "<$word>"; done`)
	for _, test := range []struct {
		args string
		want string
		code int
	}{
		{"quick  --user-property 'a b'\n--username \"\"", "<run>\n<quick>\n<--user-property>\n<a b>\n<--username>\n<>\n<--output>\n", 0},
		{"", "<run>\n<--output>\n", 0},
		{"quick --username 'o --url mqtt://broker:1883", "::error title=mqttload::args: a quote is not closed\n", 2},
		{"quick --username o\" --url mqtt://broker:1883", "::error title=mqttload::args: a quote is not closed\n", 2},
	} {
		_ = os.Remove(s.env["GITHUB_OUTPUT"])
		script, env := a.step(t, "Run mqttload", map[string]string{"args": test.args})
		s.run(test.code, script, env)
		if !strings.Contains(s.last, test.want) || test.code != 0 && strings.Contains(s.last, "<run>") {
			t.Errorf("%q: %s", test.args, s.last)
		}
		if got := s.read("output"); !strings.Contains(got, fmt.Sprintf("exit-code=%d\n", test.code)) {
			t.Errorf("%q: outputs:\n%s", test.args, got)
		}
	}
}

// TestActionFetchesBaseline: the newest run that has the artifact counts.
func TestActionFetchesBaseline(t *testing.T) {
	a, s := theAction(t), newShell(t)
	script, env := a.step(t, "Fetch the baseline", map[string]string{"baseline-artifact": "keep"})
	s.stub("gh", `case "$*" in
"run list --workflow load --branch main --status success "*) echo 3; echo 2; echo 1 ;;
"run download 2 --name keep --dir "*) mkdir -p "$7" && echo '{}' > "$7/report.json" ;;
*) exit 1 ;;
esac`)
	s.run(0, script, env)
	s.printed("^baseline: run 2$")
	if !s.has("mqttload-baseline/report.json") {
		t.Error("no baseline")
	}
	s.stub("gh", `[ "$2" = list ]`)
	s.run(0, script, env)
	if s.has("mqttload-baseline") {
		t.Error("an old baseline was left")
	}
	s.stub("gh", "exit 4")
	s.run(4, script, env)
}

// TestActionInstalls: by Go, and from a release whose checksum is right.
func TestActionInstalls(t *testing.T) {
	a, s := theAction(t), newShell(t)
	real, err := exec.LookPath("mqttload")
	if err != nil {
		t.Fatal(err)
	}
	s.env["REAL"], s.env["ASSETS"] = real, filepath.Join(s.dir, "assets")
	s.stub("go", `[ "$*" = "install github.com/mqttload/mqttload@v1.2.3" ] && cp "$REAL" "$GOBIN/mqttload"`)
	script, env := a.step(t, "Install mqttload", map[string]string{"version": "v1.2.3"})
	s.run(0, script, env)
	s.printed("^mqttload ")
	if got := s.read("path"); got != filepath.Join(s.dir, "mqttload-bin")+"\n" {
		t.Errorf("path %q", got)
	}

	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Skip("sha256sum is not here")
	}
	s.stub("uname", `case $1 in -s) echo Linux ;; -m) echo x86_64 ;; esac`)
	s.stub("curl", `while [ $# -gt 1 ]; do
	case $1 in --output) out=$2; shift ;; --write-out) echo https://github.com/mqttload/mqttload/releases/tag/v2.0.0 ;; esac
	shift
done
case $1 in */latest) ;; *) echo "GET $1"; cp "$ASSETS/${1##*/}" "$out" ;; esac`)
	s.run(0, `mkdir -p assets/mqttload_2.0.0_linux_amd64 && cd assets && cp "$REAL" mqttload_2.0.0_linux_amd64/mqttload &&
		tar -czf mqttload_2.0.0_linux_amd64.tar.gz mqttload_2.0.0_linux_amd64 && sha256sum *.tar.gz > checksums.txt`, nil)
	script, env = a.step(t, "Install mqttload", map[string]string{"install": "release"})
	s.run(0, script, env)
	s.printed("GET https://github.com/mqttload/mqttload/releases/download/v2.0.0/mqttload_2.0.0_linux_amd64.tar.gz$")
	s.write("assets/checksums.txt", strings.Repeat("0", 64)+"  mqttload_2.0.0_linux_amd64.tar.gz\n", 0o644)
	s.run(1, script, env)

	script, env = a.step(t, "Install mqttload", map[string]string{"install": "brew"})
	s.run(2, script, env)
}
