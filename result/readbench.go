package result

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mqttload/mqttload/result/stats"
)

// benchNamespace is the name under which this program writes its own cases. It is not
// one of their parameters.
const benchNamespace = "Mqttload"

// parseGoBench reads the Go benchmark format: "BenchmarkName/key=value-8 100
// 123 ns/op ..." lines, several of a name being samples, and "key: value" lines
// of configuration (Proposal: Go Benchmark Data Format, 2016). It returns nil
// where no line is such a result.
func parseGoBench(lines []string) (*Input, error) {
	in := &Input{Format: FormatGoBench}
	at := map[string]int{}
	totals := map[string]float64{}
	procs := benchProcs(lines)
	for _, line := range lines {
		if key, value, ok := strings.Cut(line, ": "); ok && !strings.ContainsAny(key, " \t") {
			in.configure(key, strings.TrimSpace(value))
			continue
		}
		name, n, ns, err := benchLine(line)
		if err != nil {
			return nil, err
		}
		if name == "" {
			continue
		}
		params, p := benchParams(name)
		if len(procs) > 1 && isForeign(params) {
			params = append(params, Param{Key: "gomaxprocs", Value: strconv.Itoa(max(p, 1))})
		}
		id := CaseID(params)
		i, seen := at[id]
		if !seen {
			i = len(in.Cells)
			at[id] = i
			in.Cells = append(in.Cells, Cell{ID: id, Params: params})
		}
		in.Cells[i].Samples = append(in.Cells[i].Samples, ns)
		totals[id] += ns * n
	}
	for p := range procs {
		if len(procs) == 1 {
			in.Environment.GOMAXPROCS = p
		}
	}
	if len(in.Cells) == 0 {
		return nil, nil
	}
	for i := range in.Cells {
		c := &in.Cells[i]
		mean := totals[c.ID] / float64(len(c.Samples))
		c.IterationNS, c.Summary = &mean, summaryOf(c.Samples)
		c.markStall()
	}
	return in, nil
}

// benchProcs are the numbers of GOMAXPROCS under which lines were measured; 0 if a name
// has none, as for 1. Cases of this program have none.
func benchProcs(lines []string) map[int]bool {
	procs := map[int]bool{}
	for _, line := range lines {
		name, _, _, err := benchLine(line)
		if params, p := benchParams(name); err == nil && name != "" && isForeign(params) {
			procs[p] = true
		}
	}
	return procs
}

// isForeign reports whether params are those of another program's benchmark.
func isForeign(params []Param) bool { return len(params) > 0 && params[0].Key == "name" }

func (in *Input) configure(key, value string) {
	switch strings.ToLower(key) {
	case "goos":
		in.Environment.OS = value
	case "goarch":
		in.Environment.Arch = value
	case "cpu":
		in.Environment.CPU = value
	}
}

// benchLine splits one line of results and returns its iterations and time per
// operation; name is "" for other lines,
// and for those without a time.
func benchLine(line string) (name string, n, ns float64, err error) {
	fields := strings.Fields(line)
	if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
		return "", 0, 0, nil
	}
	n, err = strconv.ParseFloat(fields[1], 64)
	if err != nil {
		return "", 0, 0, nil // a line of log
	}
	for i := 2; i+1 < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		switch fields[i+1] {
		case "sec/op":
			v *= 1e9
		case "ns/op":
		default:
			continue
		}
		if err != nil || !plausible(v) || !plausible(n) {
			return "", 0, 0, notReport("%s: %s %s over %s iterations is not a measurement", fields[0], fields[i], fields[i+1], fields[1])
		}
		return strings.TrimPrefix(fields[0], "Benchmark"), n, v, nil
	}
	return "", 0, 0, nil
}

func positive(v float64) bool { return v > 0 && !math.IsInf(v, 0) }

// plausible reports whether v can be a measured time in ns. Sums of squares of larger
// values would leave the range of numbers.
func plausible(v float64) bool { return v >= 1e-9 && v <= 1e18 }

// benchParams splits "Publish/qos=1/payload=8192-8" into parameters and
// GOMAXPROCS, which go test leaves out if it is 1; 0 if none is named.
func benchParams(name string) ([]Param, int) {
	procs := 0
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if p, err := strconv.Atoi(name[i+1:]); err == nil && p > 0 {
			name, procs = name[:i], p
		}
	}
	parts := strings.Split(name, "/")
	var params []Param
	if parts[0] != benchNamespace {
		params = append(params, Param{Key: "name", Value: unescaped(parts[0])})
	}
	for i, part := range parts[1:] {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			key, value = "sub"+strconv.Itoa(i+1), part
		}
		params = append(params, Param{Key: unescaped(key), Value: unescaped(value)})
	}
	return params, procs
}

// unescaped is s without the escapes of CaseID, or s itself if it has invalid ones.
func unescaped(s string) string {
	if u, err := unescapeID(s); err == nil {
		return u
	}
	return s
}

// markStall looks for a stalled iteration among bare samples.
func (c *Cell) markStall() {
	if c.IterationNS == nil || len(c.Samples) == 0 {
		return
	}
	operations := max(1, math.Round(*c.IterationNS/stats.Mean(c.Samples)))
	var its []Iteration
	for i, x := range c.Samples {
		it := Iteration{Stage: StageActual, Launch: 1, Index: i + 1, Operations: int64(operations), ElapsedNS: int64(x * operations)}
		if i < len(c.Launches) {
			it.Launch = c.Launches[i]
		}
		its = append(its, it)
	}
	if ws := stalled(Case{Iterations: its}, slices.Sorted(slices.Values(c.Samples))); len(ws) > 0 {
		c.Stalled = &ws[0]
	}
}
