package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
)

// writeHDRLog writes the histograms of r as an HdrHistogram interval log, version
// 1.3, which HistogramLogProcessor and every other HdrHistogram tool reads: one
// line per case and histogram, tagged "qos=1/payload=8192/leg=end_to_end". Values are
// nanoseconds, Interval_Max milliseconds. StartTime and BaseTime are that of the
// run in whole seconds, since some readers do not accept fractions; every case counts from its own
// start. The error names the case and histogram that is damaged.
func writeHDRLog(w io.Writer, r *result.Report) error {
	var b bytes.Buffer
	start := max(r.Run.Started.Unix(), 0)
	fmt.Fprintf(&b, "#[Latencies in nanoseconds, of mqttload run %s]\n", text.Plain(r.Run.ID))
	fmt.Fprintf(&b, "#[Histogram log format version 1.3]\n")
	fmt.Fprintf(&b, "#[StartTime: %d (seconds since epoch), %s]\n", start, time.Unix(start, 0).UTC().Format(time.RFC3339))
	fmt.Fprintf(&b, "#[BaseTime: %d (seconds since epoch)]\n", start)
	b.WriteString("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n")
	for i := range r.Cases {
		if err := hdrCase(&b, &r.Cases[i]); err != nil {
			return err
		}
	}
	return flush(w, &b)
}

func hdrCase(b *bytes.Buffer, c *result.Case) error {
	from, length := interval(c)
	for _, leg := range c.Latency.All() {
		if leg.Histogram == nil {
			continue
		}
		// Do not pass on what cannot be decoded.
		if _, err := leg.Histogram.Decode(); err != nil {
			return fmt.Errorf("write histogram log: case %q, latency.%s: %w", c.ID, leg.Name, err)
		}
		fmt.Fprintf(b, "Tag=%s,%.3f,%.3f,%.3f,%s\n", hdrTag(c, leg.Name), from, length, float64(leg.Histogram.MaxNS)/1e6, leg.Histogram.HDR)
	}
	return nil
}

// hdrTag has none of the characters that separate fields of a log line: ids have no spaces
// or line breaks, and commas are escaped as in ids.
func hdrTag(c *result.Case, leg string) string {
	params := append(append([]result.Param{}, c.Params...), result.Param{Key: "leg", Value: leg})
	return strings.ReplaceAll(result.CaseID(params), ",", "%2C")
}

// interval is when the counted iterations of c began and how long they took, in
// seconds from the case's start.
func interval(c *result.Case) (from, length float64) {
	first, last := int64(-1), int64(0)
	for _, it := range c.Iterations {
		if it.Stage != result.StageActual {
			continue
		}
		if first < 0 || it.StartNS < first {
			first = it.StartNS
		}
		last = max(last, it.StartNS+it.ElapsedNS)
	}
	if first < 0 {
		return 0, 0
	}
	return float64(first) / 1e9, float64(last-first) / 1e9
}
