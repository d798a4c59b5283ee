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
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

// This variable makes the test binary run a broker in another process. It prints its
// addresses and its CA, and exits at the end of stdin.
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
	plain, err1 := broker.Listen("mqtt", "127.0.0.1:0", nil)
	secure, err2 := broker.Listen("mqtts", "127.0.0.1:0", bundle.ServerConfig())
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
	ca            []byte      // PEM
	conf          *tls.Config // trusts it
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
	r.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.ca)
	r.conf = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13}
	return r
}

// opener opens the i-th connection.
type opener func(ctx context.Context, i int) (io.Closer, error)

// bare opens only the transport.
func (r remote) bare(transport string) opener {
	return func(context.Context, int) (io.Closer, error) {
		if transport == "tls" {
			return tls.Dial("tcp", r.secure, r.conf)
		}
		return net.Dial("tcp", r.plain)
	}
}

// floor also sends CONNECT and reads CONNACK: the least that a client can do.
func (r remote) floor(transport string) opener {
	open := r.bare(transport)
	return func(ctx context.Context, i int) (io.Closer, error) {
		p := packet.Connect{Version: packet.V5, CleanStart: true, ClientID: "f" + strconv.Itoa(i)}
		hello, err := p.Append(nil)
		if err != nil {
			return nil, err
		}
		nc, err := open(ctx, i)
		if err != nil {
			return nil, err
		}
		if _, err := nc.(net.Conn).Write(hello); err != nil {
			return nc, err
		}
		_, err = nc.(net.Conn).Read(make([]byte, 64))
		return nc, err
	}
}

type closer struct{ *mqtt.Client }

func (a closer) Close() error { a.Client.Close(); return nil }

// client opens a connection as a run does.
func (r remote) client(transport string, sweeper *mqtt.Sweeper) opener {
	c := &scenarios.Case{Transport: scenarios.TCP}
	addr := netip.MustParseAddrPort(r.plain)
	if transport == "tls" {
		addr, c.Transport, c.TLS.CAPEM = netip.MustParseAddrPort(r.secure), scenarios.TLS, r.ca
	}
	c.Target.URLs = []scenarios.URL{{Scheme: "mqtt", Host: addr.Addr().String(), Port: int(addr.Port())}}
	routes := dial.NewRoutes(c, nil)
	return func(ctx context.Context, i int) (io.Closer, error) {
		client, err := mqtt.Connect(ctx, mqtt.Config{
			Dial: routes.Dialer(i).Dial, Version: packet.V5, CleanStart: true, ClientID: "c" + strconv.Itoa(i),
			KeepAlive: time.Minute, Sweeper: sweeper,
		})
		return closer{client}, err
	}
}

// openAll opens n connections from several goroutines, each one connection at a time,
// as package load does.
func openAll(t testing.TB, n int, open opener) []io.Closer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conns := make([]io.Closer, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 64 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				conns[i], errs[i] = open(ctx, i)
			}
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

func ownCPU() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkConnect compares the CPU time of a connection up to CONNACK with that of
// net.Dial or tls.Dial, and with the least that a client can do beyond that. All
// three take turns in one run, against one broker.
func BenchmarkConnect(b *testing.B) {
	r := startBroker(b)
	sweeper := mqtt.NewSweeper()
	defer sweeper.Stop()
	for _, transport := range []string{"tcp", "tls"} {
		b.Run("transport="+transport, func(b *testing.B) {
			const n, rounds = 300, 9
			open := []opener{r.bare(transport), r.floor(transport), r.client(transport, sweeper)}
			var cost [3][]float64 // us
			for b.Loop() {
				for range rounds {
					for i := range open {
						runtime.GC() // collect the garbage of the last round
						before := ownCPU()
						conns := openAll(b, n, open[i])
						cost[i] = append(cost[i], float64(ownCPU()-before)/n/1e3)
						closeAll(conns)
					}
				}
			}
			bare, floor, ours := median(cost[0]), median(cost[1]), median(cost[2])
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(bare, "dial-us")
			b.ReportMetric(floor, "floor-us")
			b.ReportMetric(ours, "us/connect")
			b.ReportMetric(ours/bare, "x-dial")
			b.ReportMetric(ours/floor, "x-floor")
		})
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// resident returns the resident memory of this process in bytes, 0 if unknown.
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

// BenchmarkIdle measures the memory of an idle connection, with the broker in
// another process.
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

// TestIdleMemory bounds heap and stacks of an idle connection with its MQTT state.
// BenchmarkIdle measures resident memory.
func TestIdleMemory(t *testing.T) {
	r := startBroker(t)
	sweeper := mqtt.NewSweeper()
	defer sweeper.Stop()
	for transport, most := range map[string]int64{"tcp": 8 << 10, "tls": 28 << 10} {
		const n = 200
		before := settled()
		conns := openAll(t, n, r.client(transport, sweeper))
		after := settled()
		closeAll(conns)
		if each := (after.heap - before.heap + after.stack - before.stack) / n; each > most {
			t.Errorf("%s: an idle connection holds %d bytes, at most %d are wanted", transport, each, most)
		}
	}
}
