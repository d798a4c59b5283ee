package report

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
)

// benchUnits tell benchstat which way is better; it knows ns/op itself.
var benchUnits = []struct{ unit, better string }{
	{"req/s", "higher"}, {"p50-ns", "lower"}, {"p99-ns", "lower"}, {"p99.9-ns", "lower"}, {"max-ns", "lower"}, {"lost", "lower"},
}

// commentRunes is the longest value of a comment.
const commentRunes = 1000

// writeGoBench writes r in the Go benchmark format (golang.org/design/14313): one
// line per counted iteration, "BenchmarkMqttload/qos=1/payload=8192 N ns/op
// req/s", so that a reader sees n samples. Percentiles come from a histogram
// over all iterations of a case; they and "lost" are on its first line
// only: repeated, they would look like n equal samples.
//
// Only goos, goarch, pkg and cpu are configuration lines, as those of go test.
// benchstat makes separate tables for every difference in configuration, so everything
// that differs from run to run is in comments.
func writeGoBench(w io.Writer, r *result.Report) error {
	var b bytes.Buffer
	benchHead(&b, r)
	for i := range r.Cases {
		benchCase(&b, &r.Cases[i])
	}
	return flush(w, &b)
}

func benchHead(b *bytes.Buffer, r *result.Report) {
	for _, f := range facts(r) {
		// Readers stop at a line of 64 KiB.
		fmt.Fprintf(b, "# %s: %s\n", f.Key, text.Plain(shortenTo(f.Value, commentRunes)))
	}
	for _, kv := range [][2]string{
		{"goos", r.Environment.OS}, {"goarch", r.Environment.Arch}, {"pkg", "github.com/mqttload/mqttload"}, {"cpu", r.Environment.CPU},
	} {
		if kv[1] != "" {
			fmt.Fprintf(b, "%s: %s\n", kv[0], text.Plain(kv[1]))
		}
	}
	for _, u := range benchUnits {
		fmt.Fprintf(b, "Unit %s better=%s\n", u.unit, u.better)
	}
}

func benchCase(b *bytes.Buffer, c *result.Case) {
	name, first := benchName(c), true
	for _, it := range c.Iterations {
		ns := nsPerOp(it)
		if it.Stage != result.StageActual || ns == nil {
			continue
		}
		fmt.Fprintf(b, "%s\t%d\t%s ns/op\t%s req/s", name, it.Operations, benchNumber(*ns), benchNumber(1e9 / *ns))
		if first {
			benchOnce(b, c)
		}
		first = false
		b.WriteString("\n")
	}
}

// benchOnce writes the values that exist once per case, not per iteration.
func benchOnce(b *bytes.Buffer, c *result.Case) {
	if h := c.Latency.EndToEnd; h != nil {
		fmt.Fprintf(b, "\t%d p50-ns\t%d p99-ns\t%d p99.9-ns\t%d max-ns", h.P50NS, h.P99NS, h.P999NS, h.MaxNS)
	}
	if c.Delivery.Expected > 0 {
		fmt.Fprintf(b, "\t%d lost", c.Delivery.Lost)
	}
}

// benchNumber has enough digits to tell two samples apart, and no exponent, which not
// every reader understands.
func benchNumber(v float64) string {
	return strconv.FormatFloat(v, 'f', max(0, min(6, 8-digits(v))), 64)
}

func digits(v float64) int { return len(strconv.FormatInt(int64(v), 10)) }

// procs is the suffix of a Go benchmark's name that ran on several processors.
var procs = regexp.MustCompile(`-(\d+)$`)

// benchName is the case's name: its parameters are the parts that benchstat's -col,
// -row and -filter select by. A value that ends as "-8" would be read as
// GOMAXPROCS, so that dash is escaped as in ids.
func benchName(c *result.Case) string {
	id := result.CaseID(c.Params)
	if len(c.Params) == 0 && c.ID != "" {
		id = result.CaseID([]result.Param{{Key: "case", Value: c.ID}})
	}
	return strings.TrimSuffix("BenchmarkMqttload/"+procs.ReplaceAllString(id, "%2D$1"), "/")
}
