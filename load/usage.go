package load

import (
	"runtime/metrics"
	"time"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/result"
)

// usage is what the process and a launch's connections have used so far.
type usage struct {
	user, system time.Duration
	io           result.IO
	pauses       *metrics.Float64Histogram
}

// used is what the measured iterations of a case have used.
type used struct {
	cpu          result.CPU
	io           result.IO
	longestPause int64 // of garbage collection, ns
}

// add adds the difference of two usages.
func (u *used) add(before, after usage) {
	u.cpu.UserNS += int64(after.user - before.user)
	u.cpu.SystemNS += int64(after.system - before.system)
	u.longestPause = max(u.longestPause, longestSince(before.pauses, after.pauses))
	u.io.Reads += after.io.Reads - before.io.Reads
	u.io.Writes += after.io.Writes - before.io.Writes
	u.io.BytesRead += after.io.BytesRead - before.io.BytesRead
	u.io.BytesWritten += after.io.BytesWritten - before.io.BytesWritten
}

func addIO(sum *result.IO, c *mqtt.Client) {
	s := c.Stats()
	sum.Reads += s.Reads
	sum.Writes += s.Writes
	sum.BytesRead += s.BytesIn
	sum.BytesWritten += s.BytesOut
}

const pauseMetric = "/sched/pauses/total/gc:seconds"

// gcPauses returns the distribution of the garbage collection pauses of the
// process so far.
func gcPauses() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: pauseMetric}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return &metrics.Float64Histogram{}
	}
	return s[0].Value.Float64Histogram()
}

// longestSince is a lower bound of the longest pause since before: the lower
// bound of its bucket, in nanoseconds.
func longestSince(before, after *metrics.Float64Histogram) int64 {
	for i := len(after.Counts) - 1; i >= 0; i-- {
		if i < len(before.Counts) && after.Counts[i] > before.Counts[i] {
			return int64(max(after.Buckets[i], 0) * 1e9)
		}
	}
	return 0
}
