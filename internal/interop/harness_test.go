// Package interop tests mqttload with programs of others: brokers, clients and
// tables of packets. It is a module of its own, so that these are not dependencies
// of the tool. The package itself has tests only; beside it are two programs that
// measure: goals, what the tool itself costs, and peers, what other clients cost.
package interop

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/result"
)

// Built once for all tests.
var toolPath, mochiPath string

// patience is the timeout of every wait in these tests. None normally takes long.
const patience = 60 * time.Second

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mqttload-interop-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	toolPath, mochiPath = filepath.Join(dir, "mqttload"), filepath.Join(dir, "mochi")
	for _, b := range []struct{ out, in, pkg string }{{toolPath, "../..", "."}, {mochiPath, ".", "./mochi"}} {
		cmd := exec.Command("go", "build", "-o", b.out, b.pkg)
		cmd.Dir = b.in
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", b.pkg, err, out)
			return 1
		}
	}
	return m.Run()
}

// need returns the path of a program, and skips the test if it is not installed;
// with CI=true it fails the test.
func need(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && name == "mosquitto" {
		path, err = exec.LookPath("/usr/sbin/mosquitto") // Debian's, not in a user's path
	}
	if err == nil {
		return path
	}
	lacking(t, "%s is not installed; install it, or run scripts/test as root on Debian", name)
	return ""
}

// lacking skips a test that lacks something; with CI=true it fails the test.
func lacking(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf("SKIPPED: "+format, args...)
}

// A process is a child process that ends with its test.
type process struct {
	*exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Scanner
	stderr *bufio.Scanner
	name   string
}

// start starts a program and reads its output line by line.
func start(t *testing.T, path string, args ...string) *process {
	t.Helper()
	return startWith(t, environ(), path, args...)
}

func startWith(t *testing.T, env []string, path string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	p := &process{Cmd: exec.CommandContext(ctx, path, args...), name: filepath.Base(path)}
	p.Env = env
	var err error
	if p.stdin, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdout, p.stderr = bufio.NewScanner(out), bufio.NewScanner(errs)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
		cancel()
	})
	return p
}

// environ is the environment of this process without settings of the tool.
func environ() []string {
	var list []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "MQTTLOAD_") {
			list = append(list, kv)
		}
	}
	return list
}

// awaitLine reads lines until one contains text, and returns it.
func awaitLine(t *testing.T, p *process, lines *bufio.Scanner, text string) string {
	t.Helper()
	line, err := findLine(lines, text)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	return line
}

func findLine(lines *bufio.Scanner, text string) (string, error) {
	var seen []string
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return lines.Text(), nil
		}
		seen = append(seen, lines.Text())
	}
	return "", fmt.Errorf("ended without saying %q, but:\n%s", text, strings.Join(seen, "\n"))
}

// drop reads and discards the rest of the output, so that the writer never blocks.
func drop(lines *bufio.Scanner) {
	for lines.Scan() {
	}
}

// command runs a program to its end and returns its standard output.
func command(t *testing.T, stdin, path string, args ...string) string {
	t.Helper()
	out, stderr, code := try(t, stdin, path, args...)
	if code != 0 {
		t.Fatalf("%s %s: exit code %d\n%s%s", filepath.Base(path), strings.Join(args, " "), code, out, stderr)
	}
	return out
}

func try(t *testing.T, stdin, path string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = environ()
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// startMosquitto starts Mosquitto with the configuration of configs/ and
// returns its port.
func startMosquitto(t *testing.T) string {
	t.Helper()
	path := need(t, "mosquitto")
	template, err := os.ReadFile("../../configs/mosquitto.conf")
	if err != nil {
		t.Fatal(err)
	}
	// Mosquitto cannot choose a free port. Another process may take a port that was
	// free before Mosquitto listens on it, so this may need several attempts.
	for range 5 {
		port := freePort(t)
		conf := filepath.Join(t.TempDir(), "mosquitto.conf")
		if err := os.WriteFile(conf, bytes.ReplaceAll(template, []byte("{{PORT}}"), []byte(port)), 0o644); err != nil {
			t.Fatal(err)
		}
		p := start(t, path, "-c", conf)
		if _, err = findLine(p.stderr, "running"); err == nil {
			go drop(p.stderr)
			return port
		}
	}
	t.Fatal("mosquitto: ", err)
	return ""
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// startMochi starts mochi in a process of its own and returns its address.
func startMochi(t *testing.T) string {
	t.Helper()
	p := start(t, mochiPath)
	go drop(p.stderr)
	return awaitLine(t, p, p.stdout, "127.0.0.1:")
}

// embedded is the broker of the tool, started by its broker command.
type embedded struct {
	port, tlsPort string
	ca            string // file of the certificate authority
}

func startEmbedded(t *testing.T) embedded {
	t.Helper()
	dir := t.TempDir()
	b := embedded{ca: filepath.Join(dir, "ca.pem")}
	addrs := filepath.Join(dir, "addrs")
	p := start(t, toolPath, "broker", "--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0",
		"--ca-out", b.ca, "--addr-file", addrs)
	awaitLine(t, p, p.stderr, "listening on mqtts://")
	go drop(p.stderr)
	urls, err := os.ReadFile(addrs)
	if err != nil {
		t.Fatal(err)
	}
	for u := range strings.FieldsSeq(string(urls)) {
		port := u[strings.LastIndexByte(u, ':')+1:]
		if strings.HasPrefix(u, "mqtts:") {
			b.tlsPort = port
		} else {
			b.port = port
		}
	}
	if b.port == "" || b.tlsPort == "" {
		t.Fatalf("--addr-file holds %q", urls)
	}
	return b
}

// run runs mqttload run with args. It must succeed. run checks the sums of the
// report and returns it.
func run(t *testing.T, args ...string) *result.Report {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	stdout, stderr, code := try(t, "", toolPath, append([]string{"run", "--no-progress", "--output", file}, args...)...)
	if code != 0 {
		t.Fatalf("mqttload run %s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	r, err := result.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if r.Run.Status != result.StatusComplete || len(r.Cases) == 0 {
		t.Fatalf("status %s with %d cases", r.Run.Status, len(r.Cases))
	}
	for _, c := range r.Cases {
		checkSums(t, c)
	}
	return r
}

// checkSums recomputes the numbers that the report has twice.
func checkSums(t *testing.T, c result.Case) {
	t.Helper()
	if err := c.Delivery.Check(); err != nil {
		t.Errorf("%s: %v", c.ID, err)
	}
	var sent, received, acked, actual int64
	for _, it := range c.Iterations {
		if it.Stage != result.StageActual {
			continue
		}
		actual++
		sent, received, acked = sent+it.Sent, received+it.Received, acked+it.Acked
		if it.ElapsedNS <= 0 || it.Operations != it.Received*int64(c.OperationsPerMessage) {
			t.Errorf("%s: iteration %d: %d operations of %d messages in %d ns", c.ID, it.Index, it.Operations, it.Received, it.ElapsedNS)
		}
	}
	d := c.Delivery
	if sent != d.Sent || received != d.Delivered || acked != d.Acked || int(actual) != c.Summary.N {
		t.Errorf("%s: iterations hold %d sent, %d delivered, %d acked in %d; the account %+v over %d", c.ID, sent, received, acked, actual, d, c.Summary.N)
	}
	if h := c.Latency.EndToEnd; !d.CountsOnly && (h == nil || h.Count != d.Delivered) {
		t.Errorf("%s: %d delivered, end-to-end latency of %+v", c.ID, d.Delivered, h)
	}
}
