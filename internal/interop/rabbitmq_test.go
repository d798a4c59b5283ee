package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// rabbitmqServer is the path of the program itself in packages; the one in PATH
// changes the user first.
const rabbitmqServer = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// startRabbitMQ starts RabbitMQ with its MQTT plugin only and all its files in a
// directory of the test, and returns the address. It also starts an Erlang port
// mapper on a free port, and stops it at the end.
func startRabbitMQ(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(rabbitmqServer); err != nil {
		// This is not a failure even with CI=true: with Erlang the package is large.
		t.Skip("SKIPPED: rabbitmq-server is not installed; on Debian, install it to run this test")
	}
	dir, port, epmd := t.TempDir(), freePort(t), "ERL_EPMD_PORT="+freePort(t)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	conf := write("rabbitmq.conf", fmt.Sprintf("listeners.tcp.1 = 127.0.0.1:%s\nmqtt.listeners.tcp.1 = 127.0.0.1:%s\n"+
		"mqtt.allow_anonymous = true\nmqtt.prefetch = 1000\nlog.console = true\nlog.console.level = info\nlog.file = false\n", freePort(t), port))
	plugins := write("enabled_plugins", "[rabbitmq_mqtt].\n")
	env := append(environ(), epmd, "ERL_EPMD_ADDRESS=127.0.0.1", "HOME="+dir,
		"RABBITMQ_NODENAME=interop"+port+"@localhost", "RABBITMQ_DIST_PORT="+freePort(t), "RABBITMQ_CONFIG_FILE="+conf,
		"RABBITMQ_ENABLED_PLUGINS_FILE="+plugins, "RABBITMQ_MNESIA_BASE="+dir, "RABBITMQ_LOG_BASE="+dir,
		"RABBITMQ_PID_FILE="+filepath.Join(dir, "pid"), "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}")
	t.Cleanup(func() {
		cmd := exec.Command("epmd", "-kill")
		cmd.Env = env
		_ = cmd.Run() // it may have ended already
	})
	p := startWith(t, env, rabbitmqServer)
	go drop(p.stderr)
	ready, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		_, err := findLine(p.stdout, "Server startup complete")
		ready <- err
		drop(p.stdout)
	}()
	t.Cleanup(func() {
		// The script has a child that outlives it.
		if text, err := os.ReadFile(filepath.Join(dir, "pid")); err == nil {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		_ = p.Process.Kill()
		<-ended
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case err := <-ready:
		if err != nil {
			t.Fatal("rabbitmq-server: ", err)
		}
	case <-ctx.Done():
		t.Skipf("SKIPPED: rabbitmq-server does not start within %v", patience)
	}
	return "127.0.0.1:" + port
}

// TestRabbitMQ measures the MQTT plugin of RabbitMQ, which before 4.0 speaks 3.1
// and 3.1.1 and grants QoS 1 at most.
func TestRabbitMQ(t *testing.T) {
	measureAll(t, startRabbitMQ(t), slices.DeleteFunc(cells("3.1.1"), func(c cell) bool { return c.qos == 2 }))
}
