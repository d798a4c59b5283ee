package report

import (
	"math"
	"slices"

	"github.com/mqttload/mqttload/result"
)

// values reads one value of each case or cell; a number that does not exist is nil.
func values[T, V any](items []T, of func(*T) V) []V {
	vs := make([]V, len(items))
	for i := range items {
		vs[i] = of(&items[i])
	}
	return vs
}

// smallest is the least absolute value, false if there is none.
func smallest(vs []*float64) (float64, bool) {
	least, found := math.Inf(1), false
	for _, v := range vs {
		if v != nil {
			least, found = min(least, math.Abs(*v)), true
		}
	}
	return least, found
}

// precision is the number of decimals of a column, which follows from its smallest value
// in the unit shown, as in BenchmarkDotNet; 1 for an empty column.
func precision(vs []*float64, scale float64) int {
	least, found := smallest(vs)
	if !found {
		return 1
	}
	return result.Decimals(least / scale)
}

func format(vs []*float64, scale float64, decimals int, suffix string) []string {
	cells := make([]string, len(vs))
	for i, v := range vs {
		cells[i] = nA
		if v != nil {
			cells[i] = result.FormatFloat(*v/scale, decimals) + suffix
		}
	}
	return cells
}

// unitOf is the one unit of a group of columns: that of its smallest leading value.
func unitOf(vs []*float64) result.TimeUnit {
	least, found := smallest(vs)
	if !found {
		return result.TimeUnits[0]
	}
	return result.UnitFor(least)
}

func timeColumn(name string, vs []*float64, unit result.TimeUnit, decimals int, legend string) column {
	return column{Name: name, Number: true, Cells: format(vs, unit.NS, decimals, " "+unit.Name), Legend: legend, Unit: unit}
}

func (t *table) addSummary(cases []result.Case) {
	mean := values(cases, func(c *result.Case) *float64 { return c.Summary.MeanNS })
	unit := unitOf(mean)
	own := precision(mean, unit.NS)
	add := func(name, legend string, decimals func(int) int, of func(*result.Summary) *float64) {
		vs := values(cases, func(c *result.Case) *float64 { return of(&c.Summary) })
		t.Columns = append(t.Columns, timeColumn(name, vs, unit, decimals(precision(vs, unit.NS)), legend))
	}
	as := func(d int) int { return d }
	// Error and StdDev keep to the mean's precision or one decimal more.
	near := func(d int) int { return min(max(d, own), own+1) }
	add("Mean", "Mean over iterations of elapsed time / requests", as, func(s *result.Summary) *float64 { return s.MeanNS })
	add("Error", "Half of the 99.9% confidence interval of Mean", near, func(s *result.Summary) *float64 { return s.ErrorNS })
	add("StdDev", "Standard deviation over iterations", near, func(s *result.Summary) *float64 { return s.StdDevNS })
	add("Median", "Value that half of the iterations did not exceed", as, func(s *result.Summary) *float64 { return s.MedianNS })
	rps := values(cases, func(c *result.Case) *float64 { return c.Summary.ReqPerSec })
	t.Columns = append(t.Columns, column{
		Name: "Req/sec", Number: true, Cells: format(rps, 1, 2, ""), Legend: "Requests per second (1 s / Mean)",
	})
}

// addThroughput shows messages in addition to requests if they are not the same.
func (t *table) addThroughput(cases []result.Case) {
	differ := false
	for _, c := range cases {
		differ = differ || c.OperationsPerMessage > 1
	}
	if !differ {
		return
	}
	t.addOptional("Msg/s", "Messages delivered per second, over all iterations", 1,
		values(cases, func(c *result.Case) *float64 { return c.Summary.MessagesPerSec }), 2)
	t.addOptional("MB/s", "Payload delivered per second, in 10^6 bytes", 1e6,
		values(cases, func(c *result.Case) *float64 { return c.Summary.BytesPerSec }), 3)
}

// addOptional adds a column of plain numbers unless it would be empty.
func (t *table) addOptional(name, legend string, scale float64, vs []*float64, decimals int) {
	if _, found := smallest(vs); found {
		t.Columns = append(t.Columns, column{Name: name, Number: true, Cells: format(vs, scale, decimals, ""), Legend: legend})
	}
}

func (t *table) addLatency(cases []result.Case) {
	of := func(get func(*result.Histogram) int64) []*float64 {
		return values(cases, func(c *result.Case) *float64 {
			if c.Latency.EndToEnd == nil {
				return nil
			}
			v := float64(get(c.Latency.EndToEnd))
			return &v
		})
	}
	p50 := of(func(h *result.Histogram) int64 { return h.P50NS })
	if _, found := smallest(p50); !found {
		return
	}
	unit := unitOf(p50)
	what, many, one := "End-to-end latency", "messages", "message"
	if cycles(cases) {
		what, many, one = "Time to connect, subscribe and disconnect", "cycles", "cycle"
	}
	for _, l := range []struct {
		name, legend string
		vs           []*float64
	}{
		{"P50", what + " that 50% of the " + many + " did not exceed", p50},
		{"P99", "... that 99% of the " + many + " did not exceed", of(func(h *result.Histogram) int64 { return h.P99NS })},
		{"P99.9", "... that 99.9% of the " + many + " did not exceed", of(func(h *result.Histogram) int64 { return h.P999NS })},
		{"Max", "... of the slowest " + one, of(func(h *result.Histogram) int64 { return h.MaxNS })},
	} {
		t.Columns = append(t.Columns, timeColumn(l.name, l.vs, unit, precision(l.vs, unit.NS), l.legend))
	}
}

// cycles reports whether the requests of every case are cycles.
func cycles(cases []result.Case) bool {
	return len(cases) > 0 && !slices.ContainsFunc(cases, func(c result.Case) bool { return c.Kind != result.KindCycles })
}

// counter is a column of the delivery account. One that is not always
// shown appears if it is not zero in some row.
type counter struct {
	name, legend string
	always       bool
	of           func(result.Delivery) (n int64, exists bool)
}

var counters = []counter{
	{"Lost", "Deliveries that never arrived", true, func(d result.Delivery) (int64, bool) { return d.Lost, d.Lost != 0 || d.Expected > 0 }},
	{"Dup", "Deliveries that arrived more than once", true, func(d result.Delivery) (int64, bool) {
		return d.Duplicated, d.Duplicated != 0 || d.Expected > 0 && !d.CountsOnly
	}},
	{"Reordered", "Deliveries that arrived before an earlier message", false, func(d result.Delivery) (int64, bool) { return d.Reordered, true }},
	{"Corrupted", "Deliveries whose payload differs from the one sent", false, func(d result.Delivery) (int64, bool) { return d.Corrupted, true }},
	{"Unexpected", "Messages received that this run did not send", false, func(d result.Delivery) (int64, bool) { return d.Foreign, true }},
	{"Late", "Deliveries that arrived after being counted as lost", false, func(d result.Delivery) (int64, bool) { return d.Late, true }},
	{"Rejected", "Messages that the broker rejected", false, func(d result.Delivery) (int64, bool) { return d.Nacked, true }},
	{"Unsent", "Messages scheduled and not sent", false, func(d result.Delivery) (int64, bool) { return d.Unsent, true }},
}

func (t *table) addDelivery(cases []result.Case) {
	nothing := cycles(cases) // is delivered
	for _, k := range counters {
		cells, shown, legend := make([]string, len(cases)), k.always && !nothing, k.legend
		if nothing && k.name == "Unsent" {
			legend = "Cycles scheduled and not started"
		}
		for i, c := range cases {
			n, exists := k.of(c.Delivery)
			cells[i] = nA
			if exists {
				cells[i] = result.FormatInt(n)
			}
			shown = shown || n != 0
		}
		if shown {
			t.Columns = append(t.Columns, column{Name: k.name, Number: true, Cells: cells, Legend: legend})
		}
	}
}

// addCPU shows the generator's CPU time per message or cycle: what one costs here, and so
// how far the generator is from being the limit. The time of an embedded broker is
// included, since it runs in the same process.
func (t *table) addCPU(cases []result.Case, embedded bool) {
	process, per, name := "the load generator", "message", "CPU/msg"
	if embedded {
		process = "generator and embedded broker"
	}
	if cycles(cases) {
		per, name = "cycle", "CPU/cycle"
	}
	legend := "CPU time of " + process + ", user and system, per " + per
	vs := values(cases, func(c *result.Case) *float64 {
		messages, cpu := messagesOf(c), c.CPU.UserNS+c.CPU.SystemNS
		if messages <= 0 || cpu <= 0 {
			return nil
		}
		v := float64(cpu) / messages
		return &v
	})
	if _, found := smallest(vs); found {
		unit := unitOf(vs)
		t.Columns = append(t.Columns, timeColumn(name, vs, unit, precision(vs, unit.NS), legend))
	}
}

// messagesOf is how many messages the actual iterations of c completed.
func messagesOf(c *result.Case) float64 {
	ops := int64(0)
	for _, it := range c.Iterations {
		if it.Stage == result.StageActual {
			ops += it.Operations
		}
	}
	return float64(ops) / float64(max(c.OperationsPerMessage, 1))
}

func (t *table) addLimit(cases []result.Case) {
	cells, shown := make([]string, len(cases)), false
	for i, c := range cases {
		cells[i] = nA
		if c.Bottleneck != nil {
			cells[i], shown = c.Bottleneck.Kind, true
		}
	}
	if shown {
		t.Columns = append(t.Columns, column{Name: "Limit", Cells: cells, Legend: "What limited the rate"})
	}
}
