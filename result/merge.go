package result

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// CodeMerged is the warning by which a merged report says what it is made of.
const CodeMerged = "merged"

// MergeError says why reports cannot be merged.
type MergeError struct{ Reason string }

func (e *MergeError) Error() string { return "merge reports: " + e.Reason }

func mergeError(format string, args ...any) error {
	return &MergeError{fmt.Sprintf(format, args...)}
}

// Merge makes one report of those of several machines, or of several runs, of the
// same scenario: iterations follow each other under the ids of their runs, with
// launches numbered on; histograms, accounts and errors add; every statistic is
// computed anew, none is averaged. Messages and bytes per second of runs that
// were under way at the same time add too, those of others are over all time.
// Unlike scenarios and a run given twice are a *MergeError. One report alone is
// returned as it is.
func Merge(reports ...*Report) (*Report, error) {
	if len(reports) == 0 {
		return nil, mergeError("there is none")
	}
	if len(reports) == 1 {
		return reports[0], nil
	}
	if err := mergeable(reports); err != nil {
		return nil, err
	}
	out := *reports[0]
	out.Schema, out.Gates, out.Cases = Schema, nil, nil
	out.Run, out.Environment = mergedRun(reports), mergedEnvironment(reports)
	side := sideBySide(reports)
	for _, id := range caseOrder(reports) {
		c, err := mergedCase(id, reports, side)
		if err != nil {
			return nil, fmt.Errorf("merge reports: case %s: %w", id, err)
		}
		out.Cases = append(out.Cases, c)
	}
	return &out, nil
}

func mergeable(reports []*Report) error {
	first := reports[0]
	ids := map[string]bool{}
	for _, r := range reports {
		switch {
		case r.ScenarioHash != first.ScenarioHash:
			x, y := scenarioDifference(first, r)
			return mergeError("runs %s and %s have other scenarios (%s; %s): merge runs of one", first.Run.ID, r.Run.ID, x, y)
		case r.Run.ID == "":
			return mergeError("a report has no run id: merge reports as they were written")
		case ids[r.Run.ID]:
			return mergeError("run %s is given twice and would count twice", r.Run.ID)
		case r.Target.Embedded != first.Target.Embedded:
			return mergeError("one run had the embedded broker and another had not")
		}
		ids[r.Run.ID] = true
	}
	return nil
}

// mergedRun spans all runs; it is as complete as the least complete.
func mergedRun(reports []*Report) Run {
	run := reports[0].Run
	run.Status = StatusComplete
	var ids []string
	for _, r := range reports {
		ids = append(ids, r.Run.ID)
		if r.Run.Started.Before(run.Started) {
			run.Started = r.Run.Started
		}
		switch {
		case run.Finished == nil || r.Run.Finished == nil:
			run.Finished = nil
		case r.Run.Finished.After(*run.Finished):
			run.Finished = r.Run.Finished
		}
		if r.Run.Status != StatusComplete {
			run.Status = StatusPartial
		}
	}
	run.ID = strings.Join(ids, "+")
	return run
}

// mergedEnvironment joins the names of machines that differ and adds their cores.
func mergedEnvironment(reports []*Report) Environment {
	names := func(of func(Environment) string) string {
		var all []string
		for _, r := range reports {
			if s := of(r.Environment); !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
		return strings.Join(all, " + ")
	}
	e := Environment{
		OS:     names(func(e Environment) string { return e.OS }),
		Arch:   names(func(e Environment) string { return e.Arch }),
		Kernel: names(func(e Environment) string { return e.Kernel }),
		CPU:    names(func(e Environment) string { return e.CPU }),
	}
	together := sideBySide(reports)
	for _, r := range reports {
		if !together {
			e.Cores, e.GOMAXPROCS = max(e.Cores, r.Environment.Cores), max(e.GOMAXPROCS, r.Environment.GOMAXPROCS)
			e.NoFile = max(e.NoFile, r.Environment.NoFile)
			continue
		}
		e.Cores += r.Environment.Cores
		e.GOMAXPROCS += r.Environment.GOMAXPROCS
		e.NoFile += r.Environment.NoFile
	}
	return e
}

// sideBySide reports whether all runs were under way at one moment.
func sideBySide(reports []*Report) bool {
	var start, end time.Time
	for i, r := range reports {
		if r.Run.Finished == nil {
			return false
		}
		if i == 0 || r.Run.Started.After(start) {
			start = r.Run.Started
		}
		if i == 0 || r.Run.Finished.Before(end) {
			end = *r.Run.Finished
		}
	}
	return start.Before(end)
}

func caseOrder(reports []*Report) (ids []string) {
	for _, r := range reports {
		for _, c := range r.Cases {
			if !slices.Contains(ids, c.ID) {
				ids = append(ids, c.ID)
			}
		}
	}
	return ids
}

func mergedCase(id string, reports []*Report, side bool) (Case, error) {
	var out Case
	var parts []string
	var latencies []Latency
	for _, r := range reports {
		i := slices.IndexFunc(r.Cases, func(c Case) bool { return c.ID == id })
		if i < 0 {
			continue
		}
		c := &r.Cases[i]
		if len(parts) == 0 {
			out = firstOf(c)
		} else if c.OperationsPerMessage != out.OperationsPerMessage {
			return out, errors.New("a request is not the same in all runs")
		}
		parts = append(parts, fmt.Sprintf("%s (%s, %d cores)", r.Run.ID, absent(r.Environment.CPU), r.Environment.Cores))
		latencies = append(latencies, c.Latency)
		out.join(c, r.Run.ID)
	}
	legs, err := mergedLegs(latencies)
	if err != nil {
		return out, err
	}
	out.Latency = latencyOf(legs)
	out.Summary = Summarize(out.Iterations, out.OperationsPerMessage)
	if side {
		out.Summary.MessagesPerSec, out.Summary.BytesPerSec = addedThroughput(&out)
	}
	out.Warnings = append(out.mergedWarnings(len(reports), parts), Analyze(out)...)
	return out, nil
}

// firstOf is a case with what is not added: the place in the matrix.
func firstOf(c *Case) Case {
	return Case{
		ID: c.ID, Params: c.Params, Window: c.Window, WindowAsked: c.WindowAsked,
		OperationsPerMessage: c.OperationsPerMessage, Bottleneck: c.Bottleneck,
	}
}

// join adds what can be added of c, a case of the run of that id.
func (out *Case) join(c *Case, run string) {
	launches := 0
	for _, it := range out.Iterations {
		launches = max(launches, it.Launch)
	}
	for _, it := range c.Iterations {
		it.Launch += launches
		if it.Run == "" {
			it.Run = run
		}
		out.Iterations = append(out.Iterations, it)
	}
	out.Delivery.Add(c.Delivery)
	out.Clients.add(&c.Clients)
	out.CPU.UserNS += c.CPU.UserNS
	out.CPU.SystemNS += c.CPU.SystemNS
	out.IO.Reads += c.IO.Reads
	out.IO.Writes += c.IO.Writes
	out.IO.BytesRead += c.IO.BytesRead
	out.IO.BytesWritten += c.IO.BytesWritten
	out.Window = min(out.Window, c.Window)
	if c.Bottleneck != nil && (out.Bottleneck == nil || c.Bottleneck.Kind == "generator") {
		out.Bottleneck = c.Bottleneck // a generator at its limit spoils the sum
	}
	out.Timeline = append(out.Timeline, c.Timeline...)
	slices.SortStableFunc(out.Timeline, func(a, b Tick) int { return int(min(max(a.TNS-b.TNS, -1), 1)) })
	out.addErrors(c.Errors)
	for _, w := range c.Warnings {
		if !slices.Contains(computedCodes, w.Code) && !slices.Contains(out.Warnings, w) {
			out.Warnings = append(out.Warnings, w)
		}
	}
}

// computedCodes are those of Analyze, which looks at the merged case again.
var computedCodes = []string{
	CodeZeroMeasurement, CodeMinIterationTime, CodeStalled, CodeOutliers, CodeMultimodal, CodeGeneratorLimited, CodeLatencyClamped, CodeLedger,
}

func (out *Case) addErrors(errs []Error) {
	for _, e := range errs {
		i := slices.IndexFunc(out.Errors, func(o Error) bool { return o.Kind == e.Kind && o.Reason == e.Reason })
		if i < 0 {
			out.Errors = append(out.Errors, e)
			continue
		}
		out.Errors[i].Count += e.Count
	}
}

func (out *Case) mergedWarnings(reports int, parts []string) []Warning {
	w := Warning{
		Code:    CodeMerged,
		Message: fmt.Sprintf("merged from %d runs: %s", len(parts), strings.Join(parts, ", ")),
		Hint:    "the rows of the single reports tell the machines apart",
	}
	if len(parts) < reports {
		w.Message = fmt.Sprintf("merged from %d of %d runs, the others have no such case: %s", len(parts), reports, strings.Join(parts, ", "))
	}
	return append([]Warning{w}, out.Warnings...)
}

// latencyOf is the legs, in the order of Latency.All, as a Latency.
func latencyOf(legs []NamedHistogram) Latency {
	at := func(i int) *Histogram { return legs[i].Histogram }
	return Latency{
		EndToEnd: at(0), Service: at(1), SendLag: at(2), Ack: at(3), Pubrec: at(4),
		Connect: at(5), TLSHandshake: at(6), Connack: at(7), Subscribe: at(8),
	}
}

// addedThroughput adds the throughputs of the runs that c was merged from; nil
// where it was not merged.
func addedThroughput(c *Case) (messages, bytes *float64) {
	byRun := map[string][]Iteration{}
	for _, it := range c.Iterations {
		byRun[it.Run] = append(byRun[it.Run], it)
	}
	if len(byRun) < 2 {
		return nil, nil
	}
	var m, b float64
	for _, run := range slices.Sorted(maps.Keys(byRun)) {
		x, y := throughput(byRun[run], c.OperationsPerMessage)
		if x == nil || y == nil {
			continue
		}
		m, b = m+*x, b+*y
	}
	if m == 0 || math.IsInf(m, 0) {
		return nil, nil
	}
	return &m, &b
}
