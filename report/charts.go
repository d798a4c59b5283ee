package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
)

// charts is the data of the page's charts, as its script reads it.
type charts struct {
	Reports []string    `json:"reports"` // labels, empty if there is only one report
	Grid    []float64   `json:"grid"`    // x = 1/(1-p), from 1
	Cases   []chartCase `json:"cases"`
}

type chartCase struct {
	ID    string      `json:"id"`
	Short string      `json:"short"` // without the parameters that all cases share
	Runs  []*chartRun `json:"runs"`  // one per report, nil if it does not have the case
}

type chartRun struct {
	Legs       []chartLeg       `json:"legs"`
	T          []float64        `json:"t"`    // seconds from the case's start
	Rate       []*float64       `json:"rate"` // messages received per second
	P99        []*int64         `json:"p99"`
	Iterations []chartIteration `json:"iterations"`
}

// chartLeg holds latencies in nanoseconds at the x of the grid, up to the x from which on
// they are the maximum.
type chartLeg struct {
	Name string  `json:"name"`
	NS   []int64 `json:"ns"`
}

type chartIteration struct {
	At     int      `json:"at"`
	Warmup bool     `json:"warmup"`
	NS     *float64 `json:"ns"`
}

const (
	// ticksPerDecade of 1/(1-p): enough for a smooth line on a wide screen.
	ticksPerDecade = 16
	// legMinCount is the fewest values of a curve.
	legMinCount = 10
)

// gridX is the k-th x of the grid.
func gridX(k int) float64 { return math.Pow(10, float64(k)/ticksPerDecade) }

// chartsOf matches the cases of all reports by their parameters.
func chartsOf(reports []*result.Report, labels []string) (*charts, error) {
	ch := &charts{Reports: labels, Cases: []chartCase{}}
	index, all := map[string]int{}, []result.Case{}
	for i, r := range reports {
		for _, c := range r.Cases {
			key := caseKey(c)
			if _, known := index[key]; !known {
				index[key] = len(ch.Cases)
				ch.Cases = append(ch.Cases, chartCase{ID: text.Plain(key), Runs: make([]*chartRun, len(reports))})
				all = append(all, c)
			}
			run, err := chartRunOf(c)
			if err != nil {
				return nil, err
			}
			ch.Cases[index[key]].Runs[i] = run
		}
	}
	ch.shorten(all)
	ch.Grid = grids(ch.Cases)
	return ch, nil
}

// caseKey is equal for matching cases.
func caseKey(c result.Case) string {
	if len(c.Params) == 0 {
		return c.ID
	}
	return result.CaseID(c.Params)
}

// runLabels name the reports: the first is the base.
func runLabels(reports []*result.Report) []string {
	labels := make([]string, len(reports))
	for i, r := range reports {
		switch {
		case len(reports) == 1:
		case len(reports) == 2:
			labels[i] = joined(" ", []string{"base", "head"}[i], r.Run.ID)
		default:
			labels[i] = joined(" ", fmt.Sprintf("%d", i+1), r.Run.ID)
		}
	}
	return labels
}

// shorten names the cases by the parameters in which they differ.
func (ch *charts) shorten(all []result.Case) {
	t := table{Rows: len(all)}
	t.addParams(all)
	for i := range ch.Cases {
		var ps []string
		for _, c := range t.Columns {
			ps = append(ps, c.Name+"="+shorten(c.Cells[i]))
		}
		ch.Cases[i].Short = joined(" ", ps...)
		if len(ps) == 0 {
			ch.Cases[i].Short = shorten(ch.Cases[i].ID)
		}
	}
}

// grids is the part of the grid that the longest curve needs.
func grids(cases []chartCase) []float64 {
	longest := 0
	for _, c := range cases {
		for _, run := range c.Runs {
			if run == nil {
				continue
			}
			for _, leg := range run.Legs {
				longest = max(longest, len(leg.NS))
			}
		}
	}
	grid := make([]float64, longest)
	for k := range grid {
		grid[k] = gridX(k)
	}
	return grid
}

func chartRunOf(c result.Case) (*chartRun, error) {
	run := &chartRun{Legs: []chartLeg{}, T: []float64{}, Rate: []*float64{}, P99: []*int64{}, Iterations: []chartIteration{}}
	for _, leg := range c.Latency.All() {
		if leg.Histogram == nil || leg.Histogram.Count < legMinCount {
			continue
		}
		ns, err := curve(leg.Histogram)
		if err != nil {
			return nil, fmt.Errorf("case %q, latency.%s: %w", c.ID, leg.Name, err)
		}
		run.Legs = append(run.Legs, chartLeg{leg.Name, ns})
	}
	run.Rate = append(run.Rate, tickRates(c)...)
	for _, tick := range c.Timeline {
		run.T = append(run.T, float64(tick.TNS)/1e9)
		run.P99 = append(run.P99, tick.P99NS)
	}
	for i, it := range c.Iterations {
		run.Iterations = append(run.Iterations, chartIteration{i + 1, it.Stage == result.StageWarmup, nsPerOp(it)})
	}
	return run, nil
}

// curve reads h at the x of the grid. Percentiles of n values are the maximum beyond
// p = 1 - 1/n, so the curve ends with the first x that is n or more.
func curve(h *result.Histogram) ([]int64, error) {
	full, err := h.Decode()
	if err != nil {
		return nil, err
	}
	n := float64(h.Count)
	var percents []float64
	for k := 0; k == 0 || gridX(k-1) < n; k++ {
		// Nearest rank, as the percentiles of the report; the library takes
		// int(percent/100*n + 0.5) as rank, so aim at its middle.
		rank := max(1, math.Ceil(n*(1-1/gridX(k))-1e-6))
		percents = append(percents, 100*(rank-0.25)/n)
	}
	ns := full.ValueAtPercentilesSlice(percents)
	for k, v := range ns {
		ns[k] = min(v, h.MaxNS)
	}
	ns[len(ns)-1] = h.MaxNS
	return ns, nil
}

// tickRates are what was received per second in the points of the timeline of c: over the
// time of the iterations in each, else until the next tick. nil is a gap.
func tickRates(c result.Case) (rates []*float64) {
	its := measuredByRun(c.Iterations)
	for i, tick := range c.Timeline {
		end := tickEnd(c.Timeline, i)
		length := busy(its[tick.Run], tick.TNS, end)
		if length == 0 && end < math.MaxInt64 {
			length = end - tick.TNS
		}
		if length <= 0 {
			rates = append(rates, nil)
			continue
		}
		v := float64(tick.Received) * 1e9 / float64(length)
		rates = append(rates, &v)
	}
	return rates
}

// measuredByRun are the measured iterations of each run, by their start. Ticks without a
// run belong to the whole case: "" has all iterations.
func measuredByRun(its []result.Iteration) map[string][]result.Iteration {
	byRun := map[string][]result.Iteration{}
	for _, it := range its {
		if it.Stage != result.StageActual {
			continue
		}
		byRun[""] = append(byRun[""], it)
		if it.Run != "" {
			byRun[it.Run] = append(byRun[it.Run], it)
		}
	}
	for _, list := range byRun {
		slices.SortStableFunc(list, func(a, b result.Iteration) int { return cmp.Compare(a.StartNS, b.StartNS) })
	}
	return byRun
}

// tickEnd is when the next tick of the same run begins, or the largest time.
func tickEnd(ticks []result.Tick, i int) int64 {
	for _, next := range ticks[i+1:] {
		if next.Run == ticks[i].Run {
			return next.TNS
		}
	}
	return math.MaxInt64
}

// busy is for how long the iterations of one run, by their start, ran between start and end.
func busy(its []result.Iteration, start, end int64) (ns int64) {
	first := sort.Search(len(its), func(i int) bool { return its[i].StartNS+its[i].ElapsedNS > start })
	for _, it := range its[first:] {
		if it.StartNS >= end {
			break
		}
		ns += max(min(it.StartNS+it.ElapsedNS, end)-max(it.StartNS, start), 0)
	}
	return ns
}
