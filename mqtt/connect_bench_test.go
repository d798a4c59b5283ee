//go:build unix

package mqtt_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/tlsconf"
)

// The test binary is also the broker in another process, told by this
// variable. It prints its addresses and its CA, and ends with stdin.
const brokerVariable = "MQTTLOAD_TEST_BROKER"

func TestMain(m *testing.M) {
	if os.Getenv(brokerVariable) != "" {
		os.Exit(serveBroker())
	}
	os.Exit(m.Run())
}

func serveBroker() int {
	bundle, err := tlsconf.ThrowAway(nil, time.Now())
	if err != nil {
		return 1
	}
	plain, err1 := broker.Listen("127.0.0.1:0", nil)
	secure, err2 := broker.Listen("127.0.0.1:0", bundle.ServerConfig())
	if err1 != nil || err2 != nil {
		return 1
	}
	b := broker.New(broker.Config{})
	go b.Serve(plain)
	go b.Serve(secure)
	block, _ := pem.Decode(bundle.CAPEM())
	fmt.Printf("%s %s %x\n", plain.Addr(), secure.Addr(), block.Bytes)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// remote is a broker in another process.
type remote struct {
	plain, secure string
	conf          *tls.Config
}

func startBroker(t testing.TB) remote {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), brokerVariable+"=1")
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var r remote
	var der []byte
	if _, err := fmt.Sscanf(line, "%s %s %x", &r.plain, &r.secure, &der); err != nil {
		t.Fatal(err)
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	r.conf = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13}
	return r
}

// dial is the bare connection; wrapped is that of the tool, which the client
// can write without blocking.
func (r remote) dial(transport string, wrap func(net.Conn) net.Conn) mqtt.Dialer {
	d := net.Dialer{KeepAlive: -1}
	if transport == "tcp" {
		return func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", r.plain) }
	}
	return func(ctx context.Context) (net.Conn, error) {
		nc, err := d.DialContext(ctx, "tcp", r.secure)
		if err != nil {
			return nil, err
		}
		tc := tls.Client(wrap(nc), r.conf)
		return tc, tc.HandshakeContext(ctx)
	}
}

func unwrapped(nc net.Conn) net.Conn { return nc }

// opener opens the i-th connection.
type opener func(ctx context.Context, i int) (io.Closer, error)

func (r remote) bare(transport string) opener {
	dial := r.dial(transport, unwrapped)
	return func(ctx context.Context, i int) (io.Closer, error) { return dial(ctx) }
}

type closer struct{ *mqtt.Client }

func (a closer) Close() error { a.Client.Close(); return nil }

func (r remote) client(transport string, sweeper *mqtt.Sweeper) opener {
	dial := r.dial(transport, mqtt.NonBlocking)
	return func(ctx context.Context, i int) (io.Closer, error) {
		c, err := mqtt.Connect(ctx, mqtt.Config{
			Dial: dial, Version: packet.V5, CleanStart: true, ClientID: "c" + strconv.Itoa(i),
			KeepAlive: time.Minute, Sweeper: sweeper,
		})
		return closer{c}, err
	}
}

// openAll opens n connections, some at a time as the engine does.
func openAll(t testing.TB, n int, open opener) []io.Closer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conns := make([]io.Closer, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	turn := make(chan struct{}, 64)
	for i := range n {
		turn <- struct{}{}
		wg.Go(func() {
			conns[i], errs[i] = open(ctx, i)
			<-turn
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return conns
}

func closeAll(conns []io.Closer) {
	for _, c := range conns {
		_ = c.Close()
	}
}

func userCPU() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkConnect compares the CPU time of a connection up to CONNACK with
// that of the bare connection, in turns: one run, one machine, one broker.
func BenchmarkConnect(b *testing.B) {
	r := startBroker(b)
	for _, transport := range []string{"tcp", "tls"} {
		b.Run("transport="+transport, func(b *testing.B) {
			sweeper := mqtt.NewSweeper()
			defer sweeper.Stop()
			const n, rounds = 400, 5
			cost := func(open opener) float64 {
				before := userCPU()
				conns := openAll(b, n, open)
				spent := userCPU() - before
				closeAll(conns)
				return float64(spent) / n / 1e3
			}
			bare, ours := r.bare(transport), r.client(transport, sweeper)
			openAll(b, n, bare)
			var bares, all []float64
			for b.Loop() {
				for range rounds {
					bares = append(bares, cost(bare))
					all = append(all, cost(ours))
				}
			}
			x, y := median(bares), median(all)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(x, "bare-us/connect")
			b.ReportMetric(y, "us/connect")
			b.ReportMetric(y/x, "ratio")
		})
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// resident is this process's resident memory in bytes, 0 where not known.
func resident() int64 {
	b, _ := os.ReadFile("/proc/self/statm")
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// memory is what the process holds: resident, heap and stacks, in bytes.
type memory struct{ rss, heap, stack int64 }

func settled() memory {
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{resident(), int64(m.HeapAlloc), int64(m.StackInuse)}
}

// BenchmarkIdle tells what an idle connection holds in this process: the
// broker is in another.
func BenchmarkIdle(b *testing.B) {
	r := startBroker(b)
	for _, transport := range []string{"tcp", "tls"} {
		b.Run("transport="+transport, func(b *testing.B) {
			sweeper := mqtt.NewSweeper()
			defer sweeper.Stop()
			const n = 4000
			for b.Loop() {
				before := settled()
				conns := openAll(b, n, r.client(transport, sweeper))
				after := settled()
				b.ReportMetric(float64(after.rss-before.rss)/n, "bytes/conn")
				b.ReportMetric(float64(after.heap-before.heap)/n, "heap-bytes/conn")
				b.ReportMetric(float64(after.stack-before.stack)/n, "stack-bytes/conn")
				closeAll(conns)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
