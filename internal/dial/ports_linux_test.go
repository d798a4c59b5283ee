package dial

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// inNamespace tells the test binary that it runs in a network namespace of its own.
const inNamespace = "MQTTLOAD_TEST_NAMESPACE"

// TestAllPorts: from a source address all ports of the range are used towards
// each broker; one connection more fails for want of a port. The range is 100
// ports, in a network namespace.
func TestAllPorts(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		allPorts(t)
		return
	}
	ip, err := exec.LookPath("ip")
	if err != nil || os.Getuid() != 0 {
		t.Skip("needs root and ip, for a network namespace with few ports")
	}
	cmd := exec.Command("/bin/sh", "-c", ip+` link set lo up && echo 40000 40099 > /proc/sys/net/ipv4/ip_local_port_range && exec "$0" -test.run '^TestAllPorts$'`, os.Args[0])
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, syscall.EPERM):
		t.Skipf("cannot make a network namespace: %v", err)
	case errors.As(err, &exit) && exit.ExitCode() == 2 && len(out) < 200:
		t.Skipf("cannot narrow the ports of a namespace: %s", out)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	}
}

func allPorts(t *testing.T) {
	// Two brokers on ports outside of the range: nobody else is in here.
	for _, address := range []string{"127.0.0.1:50001", "127.0.0.1:50002"} {
		port, _ := listen(t, address)
		r := routesTo("127.0.0.1", port, "127.0.0.2")
		dial := func() error {
			nc, err := r.Dialer(0).Dial(t.Context())
			if err == nil {
				t.Cleanup(func() { _ = nc.Close() })
			}
			return err
		}
		for i := range 100 {
			if err := dial(); err != nil {
				t.Fatalf("%s: connection %d of 100: %v", address, i+1, err)
			}
		}
		if err := dial(); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("%s: connection 101 over 100 ports: %v", address, err)
		}
	}
}
