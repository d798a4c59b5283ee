package result

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// bdnFile is the part of BenchmarkDotNet's full JSON export that is read.
type bdnFile struct {
	Title               string
	HostEnvironmentInfo struct {
		BenchmarkDotNetVersion string
		OsVersion              string
		ProcessorName          string
		LogicalCoreCount       int
		Architecture           string
	}
	Benchmarks []bdnBenchmark
}

type bdnBenchmark struct {
	Method     string
	Parameters string // "QoSLevel=AtMostOnce&PayloadSizeBytes=10"
	Statistics *struct {
		OriginalValues    []float64
		N                 int
		Mean              *float64
		Median            *float64
		StandardDeviation *float64
	}
	Measurements []bdnMeasurement
}

type bdnMeasurement struct {
	IterationMode  string
	IterationStage string
	LaunchIndex    int
	Operations     int64
	Nanoseconds    float64
}

func parseBDN(b []byte) (*Input, error) {
	var f bdnFile
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, jsonFault(b, err)
	}
	host := f.HostEnvironmentInfo
	in := &Input{
		Format: FormatBDN, ToolName: "BenchmarkDotNet", ToolVersion: host.BenchmarkDotNetVersion,
		Started: bdnStarted(f.Title),
		Environment: Environment{
			OS: host.OsVersion, Arch: host.Architecture, CPU: host.ProcessorName, Cores: host.LogicalCoreCount,
		},
	}
	for i := range f.Benchmarks {
		c, err := f.Benchmarks[i].cell()
		if err != nil {
			return nil, err
		}
		in.Cells = append(in.Cells, c)
	}
	return in, nil
}

// bdnStarted reads the local time at the end of a title, "Type-20240529-101112";
// zero if there is none.
func bdnStarted(title string) time.Time {
	const layout = "20060102-150405"
	if len(title) < len(layout) {
		return time.Time{}
	}
	at, err := time.Parse(layout, title[len(title)-len(layout):])
	if err != nil {
		return time.Time{}
	}
	return at
}

func (b *bdnBenchmark) cell() (Cell, error) {
	params := []Param{{Key: "Method", Value: b.Method}}
	if b.Parameters != "" {
		for part := range strings.SplitSeq(b.Parameters, "&") {
			key, value, _ := strings.Cut(part, "=")
			params = append(params, Param{Key: key, Value: value})
		}
	}
	c := Cell{ID: CaseID(params), Params: params}
	b.measurements(&c)
	if s := b.Statistics; s != nil {
		if len(c.Samples) == 0 {
			c.Samples = s.OriginalValues
		}
		c.Summary = Summary{N: s.N, MeanNS: s.Mean, MedianNS: s.Median, StdDevNS: s.StandardDeviation}
	}
	for _, x := range c.Samples {
		if !plausible(x) {
			return Cell{}, notReport("case %q has an iteration of %g ns per operation", c.ID, x)
		}
	}
	if len(c.Samples) > 0 {
		stated := c.Summary
		c.Stated, c.Summary = &stated, summaryOf(c.Samples)
		c.markStall()
	}
	if err := checkSummary(c.Summary); err != nil {
		return Cell{}, notReport("case %q: %v", c.ID, err)
	}
	return c, nil
}

// measurements reads the samples of the stage Result, which excludes overhead and removed
// outliers as the statistics do, or of the stage Actual if there is none.
func (b *bdnBenchmark) measurements(c *Cell) {
	for _, stage := range []string{"Result", "Actual"} {
		total := 0.0
		for _, m := range b.Measurements {
			if m.IterationMode == "Workload" && m.IterationStage == stage && m.Operations > 0 {
				c.Samples = append(c.Samples, m.Nanoseconds/float64(m.Operations))
				c.Launches = append(c.Launches, m.LaunchIndex)
				total += m.Nanoseconds
			}
		}
		if n := len(c.Samples); n > 0 {
			mean := total / float64(n)
			c.IterationNS = &mean
			return
		}
	}
}

// checkSummary refuses numbers that a measurement cannot give.
func checkSummary(s Summary) error {
	for _, v := range []struct {
		name     string
		v        *float64
		zeroGood bool
	}{{"mean", s.MeanNS, false}, {"median", s.MedianNS, false}, {"standard deviation", s.StdDevNS, true}, {"error", s.ErrorNS, true}} {
		if v.v == nil || plausible(*v.v) || v.zeroGood && *v.v == 0 {
			continue
		}
		if math.IsNaN(*v.v) || math.IsInf(*v.v, 0) {
			return fmt.Errorf("the %s is not a number", v.name)
		}
		return fmt.Errorf("the %s is %g", v.name, *v.v)
	}
	return nil
}
