package report

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
)

func TestConsoleGoldens(t *testing.T) {
	for name, r := range map[string]*result.Report{
		"matrix.txt": matrixReport(), "tls.txt": tlsReport(), "partial.txt": partialReport(), "hostile.txt": hostileReport(),
		"one.txt": oneReport(), "empty.txt": blank(), "turbomqtt.txt": turbomqttReport(t, "table-1.tsv"),
	} {
		golden(t, name, r, writeConsole)
	}
}

func TestMarkdownGoldens(t *testing.T) {
	for name, r := range map[string]*result.Report{
		"matrix.md": matrixReport(), "partial.md": partialReport(), "hostile.md": hostileReport(), "empty.md": blank(),
	} {
		golden(t, name, r, writeMarkdown)
	}
}

// TestPublishedNumbers prints the statistics of both published tables with the
// very digits, units and separators they were published with.
func TestPublishedNumbers(t *testing.T) {
	for _, name := range []string{"table-1.tsv", "table-2.tsv"} {
		table := newTable(turbomqttReport(t, name))
		want := []string{"QoSLevel", "PayloadSizeBytes", "Mean", "Error", "StdDev", "Median", "Req/sec", "Msg/s", "P50", "P99", "P99.9", "Max", "Lost", "Dup"}
		if got := table.header(); !slices.Equal(got, want) {
			t.Fatalf("%s: columns %q, want %q", name, got, want)
		}
		rows := publishedRows(t, name)
		if len(rows) != 12 || table.Rows != 12 {
			t.Fatalf("%s: %d and %d rows, want 12", name, len(rows), table.Rows)
		}
		for i, row := range rows {
			if got := table.row(i)[2:7]; !slices.Equal(got, row.cells) {
				t.Errorf("%s row %d: %q, published are %q", name, i+1, got, row.cells)
			}
		}
	}
}

func TestCommonLineLikeBenchmarkDotNet(t *testing.T) {
	got := commonLines(params("InvocationCount", "1", "LaunchCount", "10", "RunStrategy", "Monitoring", "UnrollFactor", "1", "WarmupCount", "10"))
	want := []string{"InvocationCount=1  LaunchCount=10  RunStrategy=Monitoring  ", "UnrollFactor=1  WarmupCount=10  "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestColumnsOnlyWhereThereIsSomething(t *testing.T) {
	r := matrixReport()
	if got := strings.Join(newTable(r).header(), " "); got != "qos payload Mean Error StdDev Median Req/sec P50 P99 P99.9 Max Lost Dup CPU/msg Limit" {
		t.Errorf("columns: %s", got)
	}
	for _, name := range []string{"Reordered", "Corrupted", "Unexpected", "Late", "Rejected", "Unsent", "Msg/s", "MB/s", "N"} {
		if newTable(r).column(name) != nil {
			t.Errorf("column %s is shown without need", name)
		}
	}
	p := newTable(partialReport())
	if got := strings.Join(p.header(), " "); got !=
		"qos N Mean Error StdDev Median Req/sec P50 P99 P99.9 Max Lost Dup Reordered Corrupted Unexpected Late Rejected Unsent CPU/msg Limit" {
		t.Errorf("columns: %s", got)
	}
	for _, name := range []string{"Mean", "Error", "StdDev", "Median", "Req/sec", "P50", "Lost", "Dup", "CPU/msg", "Limit"} {
		if got := p.column(name).Cells[2]; got != nA {
			t.Errorf("%s of a case that never ran = %q, want %s", name, got, nA)
		}
	}
}

func TestOneUnitPerGroup(t *testing.T) {
	r := blank()
	r.Cases = []result.Case{newCase(params("a", "1"), 3, 1000, 900), newCase(params("a", "2"), 3, 1000, 5e6)}
	table := newTable(r)
	for _, group := range [][]string{{"Mean", "Error", "StdDev", "Median"}, {"P50", "P99", "P99.9", "Max"}} {
		unit := table.column(group[0]).Unit.Name
		for _, name := range group {
			for _, cell := range table.column(name).Cells {
				if !strings.HasSuffix(cell, " "+unit) {
					t.Errorf("%s: %q is not in %s", name, cell, unit)
				}
			}
		}
	}
	if unit := table.column("Mean").Unit.Name; unit != "ns" {
		t.Errorf("unit of means 909 ns and 5 ms is %s, want ns", unit)
	}
	if unit := table.column("P50").Unit.Name; unit != "μs" {
		t.Errorf("unit of medians 68 μs and more is %s, want μs", unit)
	}
}

func TestDeliveryLine(t *testing.T) {
	one := func(d result.Delivery) string {
		return strings.Join(deliveryLines([]result.Case{{ID: "x", Delivery: d}}), "|")
	}
	full := func(n int64) result.Delivery {
		return result.Delivery{Scheduled: n, Sent: n, Expected: n, Received: n, Delivered: n}
	}
	fanout := full(10)
	fanout.Expected, fanout.Received, fanout.Delivered = 30, 30, 30
	short := full(10)
	short.CountsOnly = true
	lost := full(1_000_000)
	lost.Lost, lost.Delivered, lost.Received = 1, 999_999, 999_999
	broken := full(10)
	broken.Received = 11
	for _, c := range []struct {
		d    result.Delivery
		want string
	}{
		{full(1_234_567), "delivery: 1,234,567 sent, all delivered once, in order"},
		{fanout, "delivery: 10 sent, 30 deliveries expected, all delivered once, in order"},
		{short, "delivery: 10 sent, as many delivered; order and duplicates are not checked without stamps"},
		{result.Delivery{}, "delivery: nothing was sent"},
		{result.Delivery{Scheduled: 5, Sent: 5}, "delivery: 5 sent, no deliveries expected"},
		{lost, "delivery:|  x -> 1,000,000 of 1,000,000 sent (100 %), 999,999 of 1,000,000 delivered (>99.99 %), 1 lost (<0.01 %)"},
		{broken, "delivery:|  x -> delivery account does not balance: received = delivered + duplicated, but 11 is not 10"},
	} {
		if got := one(c.d); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	for kind, want := range map[result.Kind]string{result.KindReceived: "delivery: nothing was received", result.KindConnections: ""} {
		if got := strings.Join(deliveryLines([]result.Case{{ID: "x", Kind: kind}}), "|"); got != want {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
}

// TestHostileNamesStayInPlace checks every byte of both formats, whatever the
// golden files say.
func TestHostileNamesStayInPlace(t *testing.T) {
	for name, render := range map[string]func(io.Writer, *result.Report) error{"console": writeConsole, "markdown": writeMarkdown} {
		var b bytes.Buffer
		if err := render(&b, hostileReport()); err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(b.Bytes()) {
			t.Errorf("%s: invalid UTF-8", name)
		}
		for _, r := range b.String() {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Fatalf("%s: %U got through", name, r)
			}
		}
		if strings.Contains(b.String(), "\n# x") {
			t.Errorf("%s: a name started a line", name)
		}
	}
	var b bytes.Buffer
	if err := writeMarkdown(&b, hostileReport()); err != nil {
		t.Fatal(err)
	}
	outside, fences := "", 0
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "```") {
			fences++
		} else if fences%2 == 0 {
			outside += line
		}
	}
	if fences%2 != 0 || strings.Contains(outside, "<script>") {
		t.Errorf("markup got through:\n%s", outside)
	}
	bars := 0
	for line := range strings.Lines(outside) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if bars != 0 && n != bars {
			t.Errorf("%d bars in %q, want %d", n, line, bars)
		}
		bars = n
	}
	if bars == 0 {
		t.Error("no table")
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken pipe")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWriterErrorsAreReported(t *testing.T) {
	for _, render := range []func(io.Writer, *result.Report) error{writeConsole, writeMarkdown} {
		if err := render(brokenWriter{}, matrixReport()); !errors.Is(err, errBroken) {
			t.Errorf("error %v, want %v", err, errBroken)
		}
	}
}

func TestBDNLine(t *testing.T) {
	for _, c := range []struct {
		stage   string
		index   int
		ops, ns int64
		want    string
	}{
		{result.StageWarmup, 1, 2000, 5926793600, "WorkloadWarmup   1: 2000 op, 5926793600.00 ns, 2.9634 ms/op"},
		{result.StageWarmup, 2, 2000, 6007833100, "WorkloadWarmup   2: 2000 op, 6007833100.00 ns, 3.0039 ms/op"},
		{result.StageActual, 10, 2000, 10530000, "WorkloadActual  10: 2000 op, 10530000.00 ns, 5.2650 us/op"},
		{result.StageActual, 100, 0, 10, "WorkloadActual  100: 0 op, 10.00 ns, NA/op"},
		{"", 1, 1, 1, "Workload         1: 1 op, 1.00 ns, 1.0000 ns/op"},
	} {
		if got := BDNLine(c.stage, c.index, c.ops, c.ns); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

func TestProgress(t *testing.T) {
	for _, c := range []struct {
		s    Step
		want string
	}{
		{Step{Case: 3, Cases: 12, ID: "qos=1/payload=1024", Launch: 1, Launches: 2, Stage: "actual", Iteration: 4, Iterations: 15, MessagesPerSec: 41234.4},
			"[3/12] qos=1/payload=1024  launch 1/2  actual 4/15  41,234 msg/s"},
		{Step{Case: 1, Cases: 1, ID: "a=\x1b", Launch: 1, Launches: 1}, `[1/1] a=\x1b`},
		{Step{Case: 1, ID: "a", Stage: "warmup", Iteration: 2}, "[1] a  warmup 2"},
	} {
		if got := Progress(c.s); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func FuzzCells(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[31m", "\u202eabc", "a\nb\tc\r", "\xff\xfe", "日本語 μs", "\u2028", "�"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{markdownCell(s), shorten(text.Plain(s))} {
			for _, r := range got {
				if !unicode.IsPrint(r) {
					t.Fatalf("%q -> %q lets %U through", s, got, r)
				}
			}
		}
	})
}

// TestCycles: if every request is a cycle of connect, subscribe and disconnect, nothing is
// called a message.
func TestCycles(t *testing.T) {
	r := matrixReport()
	for i := range r.Cases {
		r.Cases[i].Kind, r.Cases[i].Delivery = result.KindCycles, result.Delivery{Scheduled: 5, Sent: 4, Unsent: 1}
	}
	table := newTable(r)
	if got := strings.Join(table.header(), " "); got != "qos payload Mean Error StdDev Median Req/sec P50 P99 P99.9 Max Unsent CPU/cycle Limit" {
		t.Errorf("columns: %s", got)
	}
	for _, c := range table.Columns {
		if strings.Contains(c.Legend, "essage") || strings.Contains(c.Legend, "Publish") {
			t.Errorf("%s: %s", c.Name, c.Legend)
		}
	}
	r.Cases[0].Kind = result.KindMessages
	if newTable(r).column("CPU/msg") == nil {
		t.Error("a case of messages has no CPU/msg")
	}
}
