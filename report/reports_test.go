package report

import (
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mqttload/mqttload/result"
)

// blank is a report without cases on a made-up machine.
func blank() *result.Report {
	finished := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &result.Report{
		Schema:      result.Schema,
		Tool:        result.Tool{Version: "0.1.0", Commit: "abcdef", Go: "go1.26.8"},
		Run:         result.Run{ID: "r1", Started: finished.Add(-time.Minute), Finished: &finished, Status: result.StatusComplete},
		Environment: result.Environment{OS: "linux", Arch: "amd64", Kernel: "6.1.0", CPU: "Example CPU @ 2.0GHz", Cores: 2, GOMAXPROCS: 2},
		Target:      result.Target{URL: "mqtt://127.0.0.1:1883", Embedded: true},
	}
}

// newCase makes a case of n steady iterations of ops operations, each op taking
// about ns nanoseconds, two warm-ups ahead.
func newCase(params []result.Param, n int, ops int64, ns float64) result.Case {
	c := result.Case{ID: result.CaseID(params), Params: params, Window: 100, WindowAsked: 100, OperationsPerMessage: 1, Kind: result.KindMessages}
	if params[0].Key == "qos" {
		c.QoS = new(params[0].Value[0] - '0')
	}
	for i := -2; i < n; i++ {
		it := result.Iteration{
			Launch: 1, Stage: result.StageActual, Index: i + 1, Operations: ops, Sent: ops, Received: ops, Bytes: ops * 10,
			ElapsedNS: int64(ns * float64(ops) * (1 + 0.01*float64(i%5))),
		}
		if i < 0 {
			it.Stage, it.Index = result.StageWarmup, i+3
		}
		c.Iterations = append(c.Iterations, it)
	}
	total := int64(n) * ops
	c.Summary = result.Summarize(c.Iterations, 1)
	c.Latency.EndToEnd = latency(int64(ns*50), total)
	c.Delivery = result.Delivery{Scheduled: total, Sent: total, Acked: total, Expected: total, Received: total, Delivered: total}
	c.CPU = result.CPU{UserNS: int64(ns*float64(total)) / 2, SystemNS: int64(ns*float64(total)) / 4}
	c.Bottleneck = &result.Bottleneck{Kind: "broker", Detail: "its CPU was busy 97 % of the time"}
	return c
}

// latency spreads n messages around typical nanoseconds with a tail.
func latency(typical, n int64) *result.Histogram {
	key := [2]int64{typical, n}
	if h, known := latencies.Load(key); known {
		copied := *h.(*result.Histogram)
		return &copied
	}
	h := record(typical, n)
	latencies.Store(key, h)
	copied := *h
	return &copied
}

// latencies are those made before: encoding one takes milliseconds.
var latencies sync.Map

func record(typical, n int64) *result.Histogram {
	h := result.NewHDR()
	for i := range int64(100) {
		result.Record(h, typical+typical*i/100, n/100)
	}
	result.Record(h, typical*20, 1)
	return result.NewHistogram(h)
}

func params(kv ...string) (ps []result.Param) {
	for i := 0; i < len(kv); i += 2 {
		ps = append(ps, result.Param{Key: kv[i], Value: kv[i+1]})
	}
	return ps
}

// matrixReport is the shape of a default run: three QoS by two payloads.
func matrixReport() *result.Report {
	r := blank()
	for q := range 3 {
		for i, payload := range []string{"10", "8192"} {
			c := newCase(params("qos", strconv.Itoa(q), "payload", payload, "protocol", "3.1.1", "transport", "tcp"),
				15, 50_000, 5_260.4*float64(1+q)*(1+0.5*float64(i)))
			c.Warnings = result.Analyze(c)
			r.Cases = append(r.Cases, c)
		}
	}
	return r
}

func tlsReport() *result.Report {
	r := blank()
	r.Target = result.Target{URL: "mqtts://broker.example:8883", TLS: &result.TLS{
		Version: "TLS 1.3", Cipher: "TLS_AES_128_GCM_SHA256", Curve: "X25519", Resumed: true, Insecure: true,
	}}
	c := newCase(params("qos", "1", "payload", "8192", "protocol", "5", "transport", "tls"), 15, 20_000, 48_000)
	c.Window = 20
	r.Cases = append(r.Cases, c)
	return r
}

// partialReport was interrupted: losses, errors, a case without any iteration.
func partialReport() *result.Report {
	r := blank()
	r.Run.Status = result.StatusPartial
	good := newCase(params("qos", "0", "payload", "10"), 15, 50_000, 5_000)
	lossy := newCase(params("qos", "1", "payload", "10"), 4, 50_000, 25_000)
	lossy.Iterations[4].ElapsedNS = 6_025e6
	lossy.Iterations[4].Lost, lossy.Iterations[4].Stalled = 3, true
	lossy.Summary = result.Summarize(lossy.Iterations, 1)
	lossy.Delivery = result.Delivery{
		Scheduled: 200_000, Sent: 199_990, Unsent: 10, Acked: 199_985, Nacked: 5, Expected: 199_990, Received: 199_989,
		Delivered: 199_987, Lost: 3, Duplicated: 2, Reordered: 1, Corrupted: 1, Foreign: 7, Late: 1,
	}
	lossy.Errors = []result.Error{
		{Kind: "publish", Reason: "Quota exceeded (0x97)", Count: 5, Example: "client bench-r1-0"},
		{Kind: "disconnect", Reason: "connection reset by peer", Count: 1},
	}
	never := result.Case{ID: "qos=2/payload=10", Params: params("qos", "2", "payload", "10"), OperationsPerMessage: 1}
	never.Errors = []result.Error{{Kind: "disconnect", Reason: "connection reset by peer", Count: 1233}}
	r.Cases = []result.Case{good, lossy, never}
	for i := range r.Cases {
		r.Cases[i].Warnings = result.Analyze(r.Cases[i])
	}
	value := 3.0
	r.Gates = []result.GateResult{
		{Rule: "lost == 0", Case: good.ID, Value: new(float64), Passed: true},
		{Rule: "lost == 0", Case: lossy.ID, Value: &value},
		{Rule: "p99 < 5ms", Case: never.ID},
	}
	return r
}

// hostileReport is made of names that try to leave their place.
func hostileReport() *result.Report {
	r := blank()
	evil := "\x1b[2J\u202e|`<script>&\n# x\x00\xff\u0085"
	r.Target = result.Target{URL: "mqtt://" + evil}
	r.Environment.CPU = evil
	r.Tool.Version = evil
	for _, v := range []string{evil, "```", strings.Repeat("long", 100), "日本語"} {
		c := newCase(params("topic", v, "k"+evil, "same"+evil), 3, 1000, 300_000)
		c.Bottleneck = &result.Bottleneck{Kind: evil, Detail: evil}
		c.Errors = []result.Error{{Kind: result.ErrorKind(evil), Reason: evil, Count: 1, Example: evil}}
		c.Warnings = []result.Warning{{Code: evil, Message: evil, Hint: evil}}
		c.Delivery.Foreign = 1
		r.Cases = append(r.Cases, c)
	}
	r.Gates = []result.GateResult{{Rule: evil, Case: evil}}
	return r
}

// oneReport has a single iteration: no deviation, no error.
func oneReport() *result.Report {
	r := blank()
	r.Cases = []result.Case{newCase(params("qos", "1", "payload", "4"), 1, 1000, 20_000)}
	r.Cases[0].Delivery.CountsOnly = true
	r.Cases[0].Warnings = result.Analyze(r.Cases[0])
	return r
}

// published is one row of a published table as printed, and as numbers.
type published struct {
	cells  []string // Mean, Error, StdDev, Median, Req/sec
	params []result.Param
}

func publishedRows(t *testing.T, name string) (rows []published) {
	t.Helper()
	b, err := os.ReadFile("../result/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	keys := strings.Split(lines[0], "\t")
	for _, line := range lines[1:] {
		cells := strings.Split(line, "\t")
		rows = append(rows, published{cells[4:], params(keys[0], cells[0], keys[1], cells[1], keys[2], cells[2], keys[3], cells[3])})
	}
	return rows
}

// turbomqttReport has the numbers of a published table: 10 launches of 10
// iterations of 1,000 messages, a publish and a receive counted apart.
func turbomqttReport(t *testing.T, name string) *result.Report {
	r := blank()
	for _, row := range publishedRows(t, name) {
		c := result.Case{ID: result.CaseID(row.params), Params: row.params, Window: 65535, WindowAsked: 65535, OperationsPerMessage: 2}
		v := make([]float64, len(row.cells))
		for i, s := range row.cells {
			n, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSuffix(s, " μs"), ",", ""), 64)
			if err != nil {
				t.Fatal(err)
			}
			v[i] = n
			if i < 4 {
				v[i] = n * 1e3
			}
		}
		messages := v[4] / 2
		c.Summary = result.Summary{N: 100, MeanNS: &v[0], ErrorNS: &v[1], StdDevNS: &v[2], MedianNS: &v[3], ReqPerSec: &v[4], MessagesPerSec: &messages}
		for launch := 1; launch <= 10; launch++ {
			for i := 1; i <= 10; i++ {
				its := result.Iteration{Launch: launch, Stage: result.StageWarmup, Index: i, Operations: 2000, ElapsedNS: int64(math.Round(v[0] * 2000))}
				c.Iterations = append(c.Iterations, its)
				its.Stage = result.StageActual
				c.Iterations = append(c.Iterations, its)
			}
		}
		c.Latency.EndToEnd = latency(int64(v[0]*400), 100_000)
		c.Delivery = result.Delivery{Scheduled: 100_000, Sent: 100_000, Acked: 100_000, Expected: 100_000, Received: 100_000, Delivered: 100_000}
		r.Cases = append(r.Cases, c)
	}
	return r
}
