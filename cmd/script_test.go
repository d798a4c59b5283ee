//go:build unix

package cmd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mqttload/mqttload/internal/racing"
	"github.com/mqttload/mqttload/result"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"mqttload": func() { os.Exit(Main(context.Background(), OS())) },
	})
}

func TestScripts(t *testing.T) {
	if racing.Enabled {
		t.Cleanup(func() {
			if dir, err := plainProgram(); err == nil {
				_ = os.RemoveAll(dir)
			}
		})
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			data, err := filepath.Abs("../result/testdata")
			if err != nil {
				return err
			}
			e.Setenv("TABLES", data)
			if racing.Enabled {
				bin, err := plainProgram()
				if err != nil {
					return err
				}
				e.Setenv("PATH", bin+string(filepath.ListSeparator)+e.Getenv("PATH"))
			}
			e.Values[processesKey{}] = processes{}
			e.Values[valuesKey{}] = map[any]any{}
			e.Defer(func() {
				for _, p := range e.Values[processesKey{}].(processes) {
					p.end()
				}
			})
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "nohup" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return signal.Ignored(syscall.SIGHUP), nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exit": exitCode, "start": start, "await": await, "signal": sendSignal, "exits": exits,
			"report": checkReport, "closedport": closedPort, "once": once,
			"fake": fake, "awaitpublish": awaitPublish, "samerun": sameRun, "nocanary": noCanary,
			"certs": certs, "address": address, "expired": expired,
			"synth": synth, "scale": scale, "truncated": truncated, "bomb": bomb, "huge": huge,
			"encoded": encoded, "mkfifo": mkfifo,
		},
	})
}

// plainProgram builds mqttload as users have it, and returns its folder. Scripts
// start hundreds of processes, which the race detector would make several times
// slower; the engine's own tests run under it.
var plainProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mqttload-script")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "mqttload"), "..").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build mqttload for the scripts: %w\n%s", err, out)
	}
	return dir, nil
})

// exitCode runs a command that must end with exactly this exit code:
// exit CODE COMMAND ARG...
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit CODE COMMAND ARG...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s\nstderr:\n%s\nstdout:\n%s", code, args[0], ts.ReadFile("stderr"), ts.ReadFile("stdout"))
	}
}

type processesKey struct{}

// processes are those that a script has started, by name.
type processes map[string]*process

type process struct {
	cmd   *exec.Cmd
	lines chan string // of stderr, closed at its end

	mu             sync.Mutex
	stdout, stderr strings.Builder
}

// end kills what still runs.
func (p *process) end() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.wait()
	}
}

func (p *process) wait() error {
	for range p.lines { // Wait closes the pipe, so it must have been read
	}
	return p.cmd.Wait()
}

// start runs a command in the background: start NAME COMMAND ARG...
func start(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir = ts.Getenv("WORK")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TESTSCRIPT_COMMAND", "GOCOVERDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	p := &process{cmd: cmd, lines: make(chan string, 10_000)}
	cmd.Stdout = &p.stdout
	pipe, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	go p.read(pipe)
	ts.Value(processesKey{}).(processes)[args[0]] = p
}

func (p *process) read(r io.Reader) {
	defer close(p.lines)
	for s := bufio.NewScanner(r); s.Scan(); {
		p.mu.Lock()
		p.stderr.WriteString(s.Text() + "\n")
		p.mu.Unlock()
		p.lines <- s.Text()
	}
}

func named(ts *testscript.TestScript, name string) *process {
	p := ts.Value(processesKey{}).(processes)[name]
	if p == nil {
		ts.Fatalf("no process %s", name)
	}
	return p
}

// await reads a process's stderr up to a line: await NAME REGEXP
func await(ts *testscript.TestScript, _ bool, args []string) {
	p := named(ts, args[0])
	want := regexp.MustCompile(args[1])
	deadline := time.After(20 * time.Second)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				ts.Fatalf("%s ended without %q; stderr:\n%s", args[0], args[1], &p.stderr)
			}
			if want.MatchString(line) {
				return
			}
		case <-deadline:
			ts.Fatalf("%s did not print %q within 20 s", args[0], args[1])
		}
	}
}

// sendSignal: signal NAME INT|TERM|HUP|KILL
func sendSignal(ts *testscript.TestScript, _ bool, args []string) {
	sig := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}[args[1]]
	ts.Check(named(ts, args[0]).cmd.Process.Signal(sig))
}

// exits waits for a process, checks its code, and leaves its output in
// NAME.stdout and NAME.stderr: exits NAME CODE
func exits(ts *testscript.TestScript, _ bool, args []string) {
	p := named(ts, args[0])
	_ = p.wait()
	if code := p.cmd.ProcessState.ExitCode(); strconv.Itoa(code) != args[1] {
		ts.Fatalf("%s: exit code %d, want %s\nstderr:\n%s", args[0], code, args[1], &p.stderr)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".stdout"), []byte(p.stdout.String()), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".stderr"), []byte(p.stderr.String()), 0o644))
}

// checkReport: report FILE STATUS CASES [lossy|unfinished] reads a report, recomputes its
// summaries and checks its identities.
func checkReport(ts *testscript.TestScript, _ bool, args []string) {
	r, err := result.Read(ts.MkAbs(args[0]))
	ts.Check(err)
	if r.Run.Status != args[1] {
		ts.Fatalf("status %s, want %s", r.Run.Status, args[1])
	}
	if n := strconv.Itoa(len(r.Cases)); args[2] != "any" && n != args[2] {
		ts.Fatalf("%s cases, want %s", n, args[2])
	}
	if unfinished := len(args) > 3 && args[3] == "unfinished"; unfinished != (r.Run.Finished == nil) {
		ts.Fatalf("finished %v", r.Run.Finished)
	}
	if r.Run.ID == "" || r.ScenarioHash == "" || r.Tool.Go == "" || r.Environment.Cores == 0 || r.Target.URL == "" {
		ts.Fatalf("missing: run %+v tool %+v environment %+v target %+v", r.Run, r.Tool, r.Environment, r.Target)
	}
	for _, c := range r.Cases {
		ts.Check(checkCase(c))
		if args[1] == result.StatusComplete && len(args) == 3 && (c.Delivery.Delivered == 0 || c.Delivery.Lost != 0 || c.Delivery.Duplicated != 0) {
			ts.Fatalf("%s: %+v", c.ID, c.Delivery)
		}
	}
}

func checkCase(c result.Case) error {
	if err := c.Delivery.Check(); err != nil {
		return fmt.Errorf("%s: %w", c.ID, err)
	}
	if c.ID != result.CaseID(c.Params) {
		return fmt.Errorf("id %q does not come from %v", c.ID, c.Params)
	}
	got, _ := json.Marshal(c.Summary)
	want, _ := json.Marshal(result.Summarize(c.Iterations, c.OperationsPerMessage))
	if string(got) != string(want) {
		return fmt.Errorf("%s: summary %s, recomputed %s", c.ID, got, want)
	}
	return nil
}

// closedPort sets a variable to a port that refuses connections: it is taken,
// so that nobody else can have it, but not listened on. closedport NAME
func closedPort(ts *testscript.TestScript, _ bool, args []string) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	ts.Check(err)
	ts.Defer(func() { _ = syscall.Close(fd) })
	ts.Check(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	addr, err := syscall.Getsockname(fd)
	ts.Check(err)
	ts.Setenv(args[0], strconv.Itoa(addr.(*syscall.SockaddrInet4).Port))
}

// once: once stderr|stdout|FILE REGEXP demands exactly one line that matches.
func once(ts *testscript.TestScript, _ bool, args []string) {
	re, n := regexp.MustCompile(args[1]), 0
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if re.MatchString(strings.TrimSuffix(line, "\n")) {
			n++
		}
	}
	if n != 1 {
		ts.Fatalf("%d lines match %q, want 1:\n%s", n, args[1], ts.ReadFile(args[0]))
	}
}
