//go:build unix

package load_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

// The test binary is also the other process of BenchmarkOverhead: a broker, or
// a raw echo, told by this variable. It prints its address and ends with stdin.
const peerVariable = "MQTTLOAD_TEST_PEER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(peerVariable); kind != "" {
		os.Exit(servePeer(kind))
	}
	os.Exit(m.Run())
}

func servePeer(kind string) int {
	scheme, tc := "mqtt", (*tls.Config)(nil)
	if kind == "broker-tls" {
		bundle, err := tlsconf.ThrowAway(nil, time.Now())
		if err != nil {
			return 1
		}
		scheme, tc = "mqtts", bundle.ServerConfig()
	}
	l, err := broker.Listen(scheme, "127.0.0.1:0", tc)
	if err != nil {
		return 1
	}
	fmt.Println(l.Addr())
	if kind == "echo" {
		go serveEcho(l)
	} else {
		go broker.New(broker.Config{}).Serve(l)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func serveEcho(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			b := make([]byte, 64<<10)
			for {
				n, err := nc.Read(b)
				if err != nil {
					return
				}
				if _, err := nc.Write(b[:n]); err != nil {
					return
				}
			}
		}()
	}
}

// startPeer starts the other process and returns its address.
func startPeer(b *testing.B, kind string) (addr string, pid int) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), peerVariable+"="+kind)
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { stdin.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line), cmd.Process.Pid
}

// cpuOf is the CPU time of another process of this machine so far.
func cpuOf(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * time.Second / 100
}

func ownCPU() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkOverhead puts the engine, ledger and latency on, against the
// loopback broker in a process of its own, beside a raw TCP echo of as many
// bytes in 64 KiB chunks.
func BenchmarkOverhead(b *testing.B) {
	brokerAddr, brokerPID := startPeer(b, "broker")
	secureAddr, securePID := startPeer(b, "broker-tls")
	echoAddr, echoPID := startPeer(b, "echo")
	for _, payload := range []int{10, 1024, 8192} {
		b.Run(fmt.Sprintf("work=echo/payload=%d", payload), func(b *testing.B) {
			rawEcho(b, echoAddr, echoPID, 2+2+len("t/r1/1")+payload)
		})
		for qos := byte(0); qos <= 2; qos++ {
			for _, v := range []packet.Version{packet.V311, packet.V5} {
				c := testCase(qos, payload, v)
				b.Run(fmt.Sprintf("work=engine/transport=tcp/protocol=%s/qos=%d/payload=%d", v, qos, payload), func(b *testing.B) {
					overhead(b, c, "mqtt", brokerAddr, brokerPID)
				})
			}
			c := testCase(qos, payload, packet.V311)
			c.Transport, c.TLS.Insecure = scenarios.TLS, true
			b.Run(fmt.Sprintf("work=engine/transport=tls/protocol=3.1.1/qos=%d/payload=%d", qos, payload), func(b *testing.B) {
				overhead(b, c, "mqtts", secureAddr, securePID)
			})
		}
	}
}

// overhead runs b.N messages of c, 1,000 on their way.
func overhead(b *testing.B, c scenarios.Case, scheme, addr string, pid int) {
	_, port, _ := net.SplitHostPort(addr)
	n, _ := strconv.Atoi(port)
	c.Load.Inflight, c.Load.Warmup, c.Load.Iterations, c.Load.Messages = 1000, 1, 1, int64(b.N)
	c.Target.URLs = []scenarios.URL{{Scheme: scheme, Host: "127.0.0.1", Port: n}}
	before := cpuOf(pid)
	results, err := load.New(load.Config{RunID: "r1"}).Run(b.Context(), []scenarios.Case{c})
	if err != nil {
		b.Fatal(err)
	}
	r := &results[0]
	check(b, r, int64(b.N))
	b.ReportMetric(*r.Summary.MessagesPerSec, "msg/s")
	b.ReportMetric(float64(r.CPU.UserNS+r.CPU.SystemNS)/float64(b.N), "client-cpu-ns/msg")
	// The broker's time holds the warm-up iteration as well.
	b.ReportMetric(float64(cpuOf(pid)-before)/float64(2*b.N), "broker-cpu-ns/msg")
	b.ReportMetric(float64(r.IO.Writes)/float64(b.N), "writes/msg")
}

func rawEcho(b *testing.B, addr string, pid, size int) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	total := int64(b.N) * int64(size)
	before, peer := ownCPU(), cpuOf(pid)
	began := time.Now()
	go func() {
		chunk := make([]byte, 64<<10)
		for left := total; left > 0; left -= int64(len(chunk)) {
			if _, err := nc.Write(chunk[:min(left, int64(len(chunk)))]); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for got := int64(0); got < total; {
		k, err := nc.Read(buf)
		if err != nil {
			b.Fatal(err)
		}
		got += int64(k)
	}
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "msg/s")
	b.ReportMetric(float64(ownCPU()-before)/float64(b.N), "client-cpu-ns/msg")
	b.ReportMetric(float64(cpuOf(pid)-peer)/float64(b.N), "broker-cpu-ns/msg")
}
