package result

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// machineKeys are the UnlikeKeys in which the machines of merged reports may differ.
var machineKeys = []string{"cpu", "cores", "os", "arch", "gomaxprocs"}

// MergeError says why reports cannot be merged.
type MergeError struct {
	Reason string
	// Differences are the conditions that differ, if that is the reason: Base
	// is the first report's, Head another's.
	Differences []Difference
}

// Error gives the reason.
func (e *MergeError) Error() string { return "merge reports: " + e.Reason }

func mergeError(format string, args ...any) error {
	return &MergeError{Reason: fmt.Sprintf(format, args...)}
}

// Merge makes one report from those of several machines, or of several runs, of the same
// scenario. Iterations follow each other under the ids of their runs, with launches
// renumbered. Histograms, accounts and errors are added. Every statistic is computed
// again, none is averaged, and the gates of all reports are judged again: see
// mergedGates. Messages and bytes per second are added if the runs overlapped in time,
// else they are computed over the total time.
//
// The error is a *MergeError for a run given twice, and for runs that differ in more than
// their machine, such as in scenario, target, TLS or window. A case that some report does
// not have gets a warning and makes the merged run partial. A single report is returned
// unchanged.
func Merge(reports ...*Report) (*Report, error) {
	if len(reports) == 0 {
		return nil, mergeError("no report")
	}
	if len(reports) == 1 {
		return reports[0], nil
	}
	if err := mergeable(reports); err != nil {
		return nil, err
	}
	out := *reports[0]
	out.Schema, out.Gates, out.Cases, out.Calibration = Schema, nil, nil, nil
	out.Run, out.Environment = mergedRun(reports), mergedEnvironment(reports)
	side := sideBySide(reports)
	for _, id := range caseOrder(reports) {
		c, err := mergedCase(id, reports, side)
		if err != nil {
			return nil, fmt.Errorf("merge reports: case %s: %w", id, err)
		}
		out.Cases = append(out.Cases, c)
		if slices.ContainsFunc(c.Warnings, func(w Warning) bool { return w.Code == CodeMergedPart }) {
			out.Run.Status = StatusPartial
		}
	}
	out.Gates = mergedGates(&out, reports)
	return &out, nil
}

func mergeable(reports []*Report) error {
	ids := map[string]bool{}
	for _, r := range reports {
		switch {
		case r.Run.ID == "":
			return mergeError("a report has no run id: merge unchanged reports")
		case ids[r.Run.ID]:
			return mergeError("run %s is given twice and would count twice", r.Run.ID)
		}
		ids[r.Run.ID] = true
	}
	first := reports[0]
	var all []Difference
	var texts []string
	for _, r := range reports[1:] {
		ds := mergeDifferences(first, r)
		for _, d := range ds {
			texts = append(texts, fmt.Sprintf("%s in runs %s and %s", d, first.Run.ID, r.Run.ID))
		}
		all = append(all, ds...)
	}
	if len(all) == 0 {
		return nil
	}
	err := &MergeError{Differences: all}
	err.Reason = fmt.Sprintf("the runs differ (%s): merge runs made under the same conditions", strings.Join(texts, "; "))
	return err
}

// mergeDifferences are the conditions other than the machine in which two runs
// differ: what Compare refuses would be averaged away by a merge.
func mergeDifferences(a, b *Report) []Difference {
	ds := slices.DeleteFunc(differences(InputOf("", a), InputOf("", b)), func(d Difference) bool {
		return slices.Contains(machineKeys, d.Key)
	})
	hasTarget := slices.ContainsFunc(ds, func(d Difference) bool { return d.Key == "target" })
	if a.Target.Embedded != b.Target.Embedded && !hasTarget {
		ds = append(ds, Difference{"target", absent(a.Target.kind()), absent(b.Target.kind())})
	}
	for i := range a.Cases {
		x := &a.Cases[i]
		at := slices.IndexFunc(b.Cases, func(c Case) bool { return c.ID == x.ID })
		if at >= 0 {
			ds = append(ds, caseDifferences(x, &b.Cases[at])...)
		}
	}
	return ds
}

func caseDifferences(x, y *Case) (ds []Difference) {
	add := func(key string, a, b int) {
		if a != b {
			ds = append(ds, Difference{key, absent(known(a)), fmt.Sprintf("%s (%s)", absent(known(b)), x.ID)})
		}
	}
	add("window", x.Window, y.Window)
	add("operations", x.OperationsPerMessage, y.OperationsPerMessage)
	return ds
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

// sideBySide reports whether all runs overlapped in time.
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
	var offered []*Offered
	for _, r := range reports {
		i := slices.IndexFunc(r.Cases, func(c Case) bool { return c.ID == id })
		if i < 0 {
			continue
		}
		c := &r.Cases[i]
		if len(parts) == 0 {
			out = firstOf(c)
		}
		parts = append(parts, fmt.Sprintf("%s (%s, %d cores)", r.Run.ID, absent(r.Environment.CPU), r.Environment.Cores))
		latencies = append(latencies, c.Latency)
		offered = append(offered, c.Offered)
		out.join(c, r.Run.ID)
	}
	var err error
	if out.Latency, err = mergedLatency(latencies); err != nil {
		return out, err
	}
	out.Summary = Summarize(out.Iterations, out.OperationsPerMessage)
	if side {
		out.addThroughput()
	}
	out.Offered = mergedOffered(offered, side)
	out.Warnings = append(out.mergedWarnings(reports, parts), Analyze(out)...)
	return out, nil
}

// firstOf is a case with the fields of c that are not added up.
func firstOf(c *Case) Case {
	return Case{
		ID: c.ID, Params: c.Params, Kind: c.Kind, QoS: c.QoS, PersistentSessions: c.PersistentSessions, Request: c.Request,
		Window: c.Window, WindowAsked: c.WindowAsked,
		OperationsPerMessage: c.OperationsPerMessage, Bottleneck: c.Bottleneck, Aliases: c.Aliases,
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
	out.Losses = addedLosses(out.Losses, c.Losses)
	out.Clients.add(&c.Clients)
	out.CPU.UserNS += c.CPU.UserNS
	out.CPU.SystemNS += c.CPU.SystemNS
	out.IO.Reads += c.IO.Reads
	out.IO.Writes += c.IO.Writes
	out.IO.BytesRead += c.IO.BytesRead
	out.IO.BytesWritten += c.IO.BytesWritten
	out.Window = min(out.Window, c.Window)
	if out.Aliases != nil && c.Aliases != nil && c.Aliases.Granted < out.Aliases.Granted {
		out.Aliases = c.Aliases
	}
	if c.Bottleneck != nil && (out.Bottleneck == nil || c.Bottleneck.Kind == "generator") {
		out.Bottleneck = c.Bottleneck // a generator at its limit spoils the sum
	}
	for _, tick := range c.Timeline {
		tick.Run = cmp.Or(tick.Run, run)
		out.Timeline = append(out.Timeline, tick)
	}
	slices.SortStableFunc(out.Timeline, func(a, b Tick) int { return int(min(max(a.TNS-b.TNS, -1), 1)) })
	out.Errors = AddErrors(out.Errors, c.Errors)
	for _, w := range c.Warnings {
		if !slices.Contains(computedCodes, w.Code) && !slices.Contains(out.Warnings, w) {
			out.Warnings = append(out.Warnings, w)
		}
	}
}

// computedCodes are those of Analyze, which looks at the merged case again.
var computedCodes = []string{
	CodeZeroMeasurement, CodeMinIterationTime, CodeStalled, CodeOutliers, CodeMultimodal, CodeGeneratorLimited, CodeClosedLoopStall, CodeLatencyClamped, CodeLedger,
}

// mergedWarnings says which runs out was merged from, and which runs are missing.
func (out *Case) mergedWarnings(reports []*Report, parts []string) []Warning {
	w := Warning{
		Code:    CodeMerged,
		Message: fmt.Sprintf("merged from %d runs: %s", len(parts), strings.Join(parts, ", ")),
		Hint:    "the single reports have a row for each machine",
	}
	var without []string
	for _, r := range reports {
		if !slices.ContainsFunc(r.Cases, func(c Case) bool { return c.ID == out.ID }) {
			without = append(without, r.Run.ID)
		}
	}
	if len(without) > 0 {
		w.Code, w.Hint = CodeMergedPart, "do not compare it with cases of all runs: run it there too"
		w.Message = fmt.Sprintf("merged from %d of %d runs, %s has no such case: %s",
			len(parts), len(reports), strings.Join(without, " and "), strings.Join(parts, ", "))
	}
	return append([]Warning{w}, out.Warnings...)
}

// addThroughput puts the sums of runs that ran side by side in the summary.
func (out *Case) addThroughput() {
	s := &out.Summary
	m, b := addedThroughput(out)
	if m != nil && s.MessagesPerSec != nil && *s.MessagesPerSec > 0 && s.DeliveriesPerSec != nil {
		d := *s.DeliveriesPerSec * *m / *s.MessagesPerSec
		s.DeliveriesPerSec = &d
	}
	s.MessagesPerSec, s.BytesPerSec = m, b
}

// addedThroughput adds the throughputs of the runs that c was merged from; nil if
// it was not merged.
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
