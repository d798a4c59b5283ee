package report

import (
	"slices"
	"strconv"

	"github.com/mqttload/mqttload/result"
)

// nA stands for a value that does not exist.
const nA = "NA"

// table is the grid behind every tabular format: one row per case. Text is
// unescaped.
type table struct {
	Columns []column
	Rows    int
	// Common are the parameters and counts that are equal in every row; they have no
	// column.
	Common []result.Param
}

// column is one column. Number says that the cells are numbers, with their unit if
// they have one.
type column struct {
	Name   string
	Number bool
	Cells  []string
	Legend string          // what the column is, "" for parameters
	Unit   result.TimeUnit // of a column of times
}

// column returns the column called name, nil if there is none.
func (t *table) column(name string) *column {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i]
		}
	}
	return nil
}

// row returns the cells of row i.
func (t *table) row(i int) []string {
	cells := make([]string, len(t.Columns))
	for j, c := range t.Columns {
		cells[j] = c.Cells[i]
	}
	return cells
}

// header returns the names of the columns.
func (t *table) header() []string {
	names := make([]string, len(t.Columns))
	for j, c := range t.Columns {
		names[j] = c.Name
	}
	return names
}

// newTable lays out the cases of r: the parameters that differ, the statistics over
// iterations, the percentiles over messages, the delivery account, and the limit of each
// case. A column without values is left out, except for the statistics.
func newTable(r *result.Report) *table {
	t := &table{Rows: len(r.Cases)}
	t.addParams(r.Cases)
	t.addRunCounts(r.Cases)
	t.addSummary(r.Cases)
	t.addThroughput(r.Cases)
	t.addLatency(r.Cases)
	t.addDelivery(r.Cases)
	t.addCPU(r.Cases, r.Target.Embedded)
	t.addLimit(r.Cases)
	return t
}

func (t *table) addParams(cases []result.Case) {
	for _, key := range paramKeys(cases) {
		cells := make([]string, len(cases))
		for i, c := range cases {
			cells[i] = paramValue(c, key)
		}
		if allEqual(cells) {
			t.Common = append(t.Common, result.Param{Key: key, Value: cells[0]})
			continue
		}
		t.Columns = append(t.Columns, column{Name: key, Number: allNumbers(cells), Cells: cells})
	}
}

// paramKeys are the keys of all cases in the order in which they first appear.
func paramKeys(cases []result.Case) (keys []string) {
	for _, c := range cases {
		for _, p := range c.Params {
			if !slices.Contains(keys, p.Key) {
				keys = append(keys, p.Key)
			}
		}
	}
	return keys
}

func paramValue(c result.Case, key string) string {
	for _, p := range c.Params {
		if p.Key == key {
			return p.Value
		}
	}
	return nA
}

func allEqual(cells []string) bool {
	return !slices.ContainsFunc(cells, func(s string) bool { return s != cells[0] })
}

func allNumbers(cells []string) bool {
	return !slices.ContainsFunc(cells, func(s string) bool {
		_, err := strconv.ParseFloat(s, 64)
		return err != nil && s != nA
	})
}

// addRunCounts puts the numbers of iterations, launches and warm-ups into the common line
// if they are equal, as BenchmarkDotNet does with its job. The number of iterations is a
// column if it differs.
func (t *table) addRunCounts(cases []result.Case) {
	var launches, warmups, iterations, n []string
	for _, c := range cases {
		l, w, a := runCounts(c.Iterations)
		launches, warmups, iterations = append(launches, itoa(l)), append(warmups, itoa(w)), append(iterations, itoa(a))
		n = append(n, itoa(c.Summary.N))
	}
	for _, count := range []struct {
		key   string
		cells []string
	}{{"IterationCount", iterations}, {"LaunchCount", launches}, {"WarmupCount", warmups}} {
		if len(cases) > 0 && allEqual(count.cells) && count.cells[0] != "0" {
			t.Common = append(t.Common, result.Param{Key: count.key, Value: count.cells[0]})
		}
	}
	if !allEqual(n) {
		t.Columns = append(t.Columns, column{Name: "N", Number: true, Cells: n, Legend: "Iterations behind the statistics"})
	}
}

// runCounts returns the launches, and the warm-up and actual iterations of each.
func runCounts(its []result.Iteration) (launches, warmups, actuals int) {
	for _, it := range its {
		launches = max(launches, it.Launch)
		if it.Stage == result.StageWarmup {
			warmups = max(warmups, it.Index)
		} else {
			actuals = max(actuals, it.Index)
		}
	}
	return launches, warmups, actuals
}

func itoa(n int) string { return strconv.Itoa(n) }
