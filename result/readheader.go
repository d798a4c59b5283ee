package result

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	bdnTitle   = regexp.MustCompile(`^(BenchmarkDotNet)(?:=| )v?([\d.]+\S*?), (.+?)(?: \(.*)?$`)
	ourTitle   = regexp.MustCompile(`^(mqttload) (\S+), \S+, (\S+)(?: \S+)*, (\S+)$`)
	cpuLine    = regexp.MustCompile(`^(.+?), (?:\d+ CPU, )?(\d+) logical(?: and \d+ physical)? cores?`)
	keyValue   = regexp.MustCompile("(?:^|[ `])([A-Za-z][\\w.]*)=([^ `,]+)")
	countParam = regexp.MustCompile(`^(Launch|Iteration|Warmup|Invocation)Count$`)
)

// bdnMonitoringIterations is how many iterations BenchmarkDotNet runs by default with
// RunStrategy=Monitoring (EngineGeneralStage).
const bdnMonitoringIterations = 10

// header reads what a line before a table says about the run.
func (in *Input) header(line string) {
	if len(in.Cells) > 0 {
		return
	}
	line = strings.TrimSpace(line)
	if m := bdnTitle.FindStringSubmatch(line); m != nil {
		in.ToolName, in.ToolVersion, in.Environment.OS = m[1], m[2], m[3]
		return
	}
	if m := ourTitle.FindStringSubmatch(line); m != nil {
		in.ToolName, in.ToolVersion, in.Environment.OS, in.Environment.Arch = m[1], m[2], m[3], m[4]
		return
	}
	if m := cpuLine.FindStringSubmatch(line); m != nil && in.Environment.CPU == "" && !strings.HasPrefix(line, "**") {
		in.Environment.CPU = m[1]
		in.Environment.Cores, _ = strconv.Atoi(m[2])
		return
	}
	for _, m := range keyValue.FindAllStringSubmatch(line, -1) {
		in.common = append(in.common, Param{Key: m[1], Value: m[2]})
	}
}

// applyHeader applies what the header said to all cells.
func (in *Input) applyHeader() {
	said := map[string]string{}
	for _, p := range in.common {
		said[p.Key] = p.Value
		// This program prints parameters that are equal in every row there;
		// BenchmarkDotNet leaves them in the table.
		if in.ToolName == "mqttload" && !countParam.MatchString(p.Key) {
			for i := range in.Cells {
				c := &in.Cells[i]
				c.Params = append(c.Params, p)
				c.ID = CaseID(c.Params)
			}
		}
	}
	launches, _ := strconv.Atoi(said["LaunchCount"])
	iterations, _ := strconv.Atoi(said["IterationCount"])
	if iterations == 0 && said["RunStrategy"] == "Monitoring" {
		iterations = bdnMonitoringIterations
	}
	in.StatedN = max(launches, 1) * iterations
	throughput := said["RunStrategy"] == "" || said["RunStrategy"] == "Throughput"
	in.VariableN = in.ToolName == "BenchmarkDotNet" && throughput && said["OutlierMode"] != "DontRemove"
	n := in.usualN()
	for i := range in.Cells {
		c := &in.Cells[i]
		if implied := c.impliedN(); implied.holds(n) {
			c.Summary.N = n
		} else {
			c.Summary.N = implied.Best
		}
	}
	in.OperationsPerIteration = in.knownOperations()
}

// turboMqttOperations is how many operations an iteration of TurboMqtt's
// end-to-end benchmarks has: 1,000 messages, published and received.
const turboMqttOperations = 2000

// knownOperations recognises the benchmark whose tables do not say how long an
// iteration is, by its method and columns.
func (in *Input) knownOperations() int64 {
	for i := range in.Cells {
		names := map[string]string{}
		for _, p := range in.Cells[i].Params {
			names[p.Key] = p.Value
		}
		if names["Method"] != "PublishAndReceiveMessages" || names["QoSLevel"] == "" || names["PayloadSizeBytes"] == "" {
			return 0
		}
	}
	return turboMqttOperations
}
