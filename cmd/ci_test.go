//go:build unix

package cmd

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/mqttload/mqttload/result"
)

// quickArgs run one case in no time; ten iterations are enough to tell a factor.
const quickArgs = "quick --qos 1 --payload 10 --protocol 5 --messages 200 --warmup 1 --iterations 10 --quiet"

// step is one step of an action or a job, as GitHub has them.
type step struct {
	Name, ID, If, Shell, Run, Uses string
	Env, With                      map[string]string
}

// action is as much of GitHub's metadata as this project uses: an unknown key
// does not decode.
type action struct {
	Name, Description, Author string
	Branding                  struct{ Icon, Color string }
	Inputs                    map[string]struct{ Description, Default string }
	Outputs                   map[string]struct{ Description, Value string }
	Runs                      struct {
		Using string
		Steps []step
	}
}

type workflow struct {
	Name string
	On   struct {
		Push        struct{ Branches []string }
		PullRequest *struct{} `yaml:"pull_request"`
	}
	Permissions map[string]string
	Jobs        map[string]struct {
		RunsOn   any `yaml:"runs-on"`
		Services map[string]struct {
			Image string
			Ports []string
		}
		Env   map[string]string
		Steps []step
	}
}

func strictly(t *testing.T, path string, out any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(out); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// shell is a step's environment: a directory of its own, and the files that
// GitHub Actions gives.
type shell struct {
	t    *testing.T
	dir  string
	env  map[string]string
	last string // what the last script printed on both outputs
}

func newShell(t *testing.T) *shell {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not here")
	}
	dir := t.TempDir()
	s := &shell{t: t, dir: dir, env: map[string]string{
		"HOME": dir, "TMPDIR": dir, "RUNNER_TEMP": dir, "GITHUB_ACTIONS": "true", "GITHUB_WORKFLOW": "load",
		"GITHUB_OUTPUT": filepath.Join(dir, "output"), "GITHUB_PATH": filepath.Join(dir, "path"),
		"GITHUB_STEP_SUMMARY": filepath.Join(dir, "summary"),
		"PATH":                filepath.Join(dir, "stubs") + ":" + os.Getenv("PATH"),
	}}
	for _, name := range []string{"GOCOVERDIR", "TESTSCRIPT_COMMAND"} {
		if v, ok := os.LookupEnv(name); ok {
			s.env[name] = v
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "stubs"), 0o755); err != nil {
		t.Fatal(err)
	}
	return s
}

// stub puts a script in front of a command of the system.
func (s *shell) stub(name, script string) { s.write("stubs/"+name, "#!/bin/sh\n"+script+"\n", 0o755) }

func (s *shell) write(name, text string, mode os.FileMode) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shell) read(name string) string {
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Helper()
		s.t.Fatal(err)
	}
	return string(b)
}

func (s *shell) has(name string) bool {
	_, err := os.Stat(filepath.Join(s.dir, name))
	return err == nil
}

// run runs a script as GitHub's "shell: bash" does and demands an exit code.
func (s *shell) run(want int, script string, env map[string]string, args ...string) {
	s.t.Helper()
	cmd := exec.Command("bash", append([]string{"--noprofile", "--norc", "-eo", "pipefail", "-c", script, "script"}, args...)...)
	cmd.Dir = s.dir
	all := maps.Clone(s.env)
	maps.Copy(all, env)
	for k, v := range all {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	out, err := cmd.CombinedOutput()
	s.last = string(out)
	if cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != want {
		s.t.Fatalf("exit code %d, want %d:\n%s", code, want, out)
	}
}

func (s *shell) printed(want string) {
	s.t.Helper()
	if !regexp.MustCompile("(?m)" + want).MatchString(s.last) {
		s.t.Errorf("%q is not in:\n%s", want, s.last)
	}
}

// theAction reads action.yml; its scripts take values from the environment
// alone: an expression inside of one would be run, whatever stands in it.
func theAction(t *testing.T) action {
	var a action
	strictly(t, "../action.yml", &a)
	if a.Runs.Using != "composite" || len(a.Runs.Steps) < 4 {
		t.Fatalf("using %s with %d steps", a.Runs.Using, len(a.Runs.Steps))
	}
	for _, st := range a.Runs.Steps {
		if strings.Contains(st.Run, "${{") || st.Run != "" && st.Shell != "bash" {
			t.Errorf("step %s: an expression in a script, or no shell", st.Name)
		}
	}
	return a
}

var expression = regexp.MustCompile(`\$\{\{ *([a-z_.-]+) *\}\}`)

// step is the named step's script with its environment for these inputs.
func (a action) step(t *testing.T, name string, inputs map[string]string) (string, map[string]string) {
	t.Helper()
	i := slices.IndexFunc(a.Runs.Steps, func(s step) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no step %q", name)
	}
	for name := range inputs {
		if _, ok := a.Inputs[name]; !ok {
			t.Fatalf("no input %q", name)
		}
	}
	context := map[string]string{"github.token": "token", "github.repository": "o/r", "github.event.repository.default_branch": "main"}
	env := map[string]string{}
	for k, v := range a.Runs.Steps[i].Env {
		env[k] = expression.ReplaceAllStringFunc(v, func(e string) string {
			name := expression.FindStringSubmatch(e)[1]
			if input, ok := strings.CutPrefix(name, "inputs."); ok {
				declared, ok := a.Inputs[input]
				if !ok {
					t.Fatalf("%s: no input %q", k, input)
				}
				if v, ok := inputs[input]; ok {
					return v
				}
				return declared.Default
			}
			v, ok := context[name]
			if !ok {
				t.Fatalf("%s: unknown %s", k, name)
			}
			return v
		})
	}
	return a.Runs.Steps[i].Run, env
}

// TestWorkflow: the example's side-by-side job, with two embedded brokers.
func TestWorkflow(t *testing.T) {
	var w workflow
	strictly(t, "../configs/ci/github.yml", &w)
	a, s := theAction(t), newShell(t)
	for _, st := range w.Jobs["baseline"].Steps {
		if strings.HasPrefix(st.Uses, "mqttload/mqttload@") {
			a.step(t, "Run mqttload", st.With) // knows the inputs
			if !strings.Contains(st.With["args"], "--launches 5") {
				t.Errorf("one launch cannot be compared: %s", st.With["args"])
			}
		}
	}
	job := w.Jobs["side-by-side"]
	maps.Copy(s.env, job.Env)
	s.env["SCENARIO"] = "s.yaml"
	s.write("s.yaml", "matrix: {qos: [1], payload: [10], protocol: [\"5\"]}\nload: {messages: 200, warmup: 1, iterations: 3}\n", 0o644)
	for _, name := range []string{"BASE_URL", "HEAD_URL"} {
		s.env[name] = startBroker(t, s.dir)
	}
	s.stub("go", `case $1 in install) ;; env) echo "$HOME" ;; esac`)
	ran := 0
	for _, st := range job.Steps {
		if st.Run != "" {
			script := strings.ReplaceAll(st.Run, "--threshold 5%", "--threshold 5000%") // two loaded cores are no bench
			s.run(0, script, nil)
			ran++
		}
	}
	if ran != 3 || !s.has("compare.html") || !s.has("head-3.json") {
		t.Errorf("%d scripts", ran)
	}
	for _, name := range []string{"base-1.json", "head-3.json"} {
		r, err := result.Read(filepath.Join(s.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		its := r.Cases[0].Iterations
		if got := its[len(its)-1].Launch; got != 5 {
			t.Errorf("%s: %d launches: how much they differ is not seen in fewer", name, got)
		}
	}
}

// startBroker serves a broker for as long as the test runs, and returns its URL.
func startBroker(t *testing.T, dir string) string {
	path := filepath.Join(dir, "addr")
	cmd := exec.Command("mqttload", "broker", "--listen", "127.0.0.1:0", "--addr-file", path)
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	url := regexp.MustCompile(`listening on (\S+)`)
	buf, text := make([]byte, 4096), ""
	for {
		n, err := pipe.Read(buf)
		text += string(buf[:n])
		if m := url.FindStringSubmatch(text); m != nil && strings.HasSuffix(text, "\n") {
			return m[1]
		}
		if err != nil {
			t.Fatalf("the broker ended: %s", text)
		}
	}
}

// TestShellScript: ci.sh keeps a baseline, and only a good run becomes it.
func TestShellScript(t *testing.T) {
	s := newShell(t)
	delete(s.env, "GITHUB_ACTIONS")
	path, err := filepath.Abs("../configs/ci/ci.sh")
	if err != nil {
		t.Fatal(err)
	}
	ci := fmt.Sprintf("sh %q %s", path, quickArgs)
	s.run(0, ci, map[string]string{"BENCH_KEEP": "false"})
	s.printed("^warning: there is no .mqttload/baseline.json.gz yet")
	if s.has(".mqttload/baseline.json.gz") {
		t.Error("a baseline was kept unasked")
	}
	s.run(6, ci+" --fail-if 'delivered > 0'", map[string]string{"BENCH_KEEP": "true"})
	if s.has(".mqttload/baseline.json.gz") {
		t.Error("a bad run became the baseline")
	}
	s.run(0, ci, map[string]string{"BENCH_KEEP": "true"})
	baseline := filepath.Join(s.dir, ".mqttload/baseline.json.gz")
	if err := scaleReport(baseline, baseline, 0.001); err != nil {
		t.Fatal(err)
	}
	before := s.read(".mqttload/baseline.json.gz")
	s.run(7, ci, map[string]string{"BENCH_KEEP": "true"})
	if s.read(".mqttload/baseline.json.gz") != before {
		t.Error("a slower run became the baseline")
	}
	s.run(0, ci, map[string]string{"BENCH_KEEP": "true", "BENCH_REGRESSION": "1000000%"})
	if s.read(".mqttload/baseline.json.gz") == before {
		t.Error("a good run did not become the baseline")
	}
	if s.read("mqttload-report/junit.xml") == "" || s.read("mqttload-report/report.html") == "" {
		t.Error("a report is missing")
	}
}

// TestGitLab: the job's script against a GitLab that has no baseline, has one,
// and is broken.
func TestGitLab(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not here")
	}
	var doc map[string]struct {
		Stage, Image string
		Services     []struct{ Name, Alias string }
		Variables    map[string]string
		Script       []string
		Artifacts    struct {
			When    string
			Paths   []string
			Reports struct{ Junit string }
		}
	}
	strictly(t, "../configs/ci/gitlab.yml", &doc)
	job, s := doc["load"], newShell(t)
	ci, err := os.ReadFile("../configs/ci/ci.sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "configs/ci"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("configs/ci/ci.sh", string(ci), 0o644)
	s.stub("go", `[ "$1" = install ]`)
	var status atomic.Int64
	status.Store(http.StatusNotFound)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/projects/7/jobs/artifacts/main/raw/mqttload-report/report.json.gz" || r.Header.Get("JOB-TOKEN") != "secret" || r.URL.Query().Get("job") != "load" {
			t.Errorf("GET %s", r.URL)
		}
		code := int(status.Load())
		w.WriteHeader(code)
		if code == http.StatusOK {
			b, _ := os.ReadFile(filepath.Join(s.dir, "baseline.json.gz"))
			_, _ = w.Write(b)
		}
	}))
	defer server.Close()
	maps.Copy(s.env, job.Variables)
	maps.Copy(s.env, map[string]string{"BENCH_ARGS": quickArgs, "CI_API_V4_URL": server.URL, "CI_PROJECT_ID": "7", "CI_DEFAULT_BRANCH": "main", "CI_JOB_TOKEN": "secret"})
	script := strings.Join(job.Script, "\n")
	s.run(0, script, nil)
	s.printed("nothing is compared")
	if s.read(job.Artifacts.Reports.Junit) == "" {
		t.Error("no JUnit")
	}
	if err := scaleReport(filepath.Join(s.dir, "mqttload-report/report.json.gz"), filepath.Join(s.dir, "baseline.json.gz"), 0.001); err != nil {
		t.Fatal(err)
	}
	status.Store(http.StatusOK)
	s.run(7, script, nil)
	status.Store(http.StatusInternalServerError)
	s.run(1, script, nil)
	s.printed("HTTP status 500")
}
