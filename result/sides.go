package result

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/result/stats"
)

// side is one cell with the inputs of a side pooled.
type side struct {
	id       string
	params   []Param
	value    string // of the parameter compared across
	sources  []string
	samples  []float64
	launches int
	medians  []float64       // of each launch's samples
	parts    []stats.Moments // of inputs without samples
	printed  []Summary
	latency  []Latency
	delivery *Delivery
	stripped bool // a report of this program has no delivery account here
	clients  *Clients
	qos      *byte
	broken   []Breach
	windows  []int
	perOp    []int
	stalls   []Warning
	// generator says how the load generator was the limit, in the first file that says so.
	generator string
}

// pair is a cell with its counterpart.
type pair struct {
	params     []Param
	base, head *side
}

// sideSet is the cells of a side in the order they came.
type sideSet struct {
	keys  []string
	cells map[string]*side
}

func (s *sideSet) at(key string) *side {
	if s.cells == nil {
		s.cells = map[string]*side{}
	}
	if s.cells[key] == nil {
		s.cells[key] = &side{}
		s.keys = append(s.keys, key)
	}
	return s.cells[key]
}

// collect pools the cells of base and head; with a parameter to compare
// across, the base files are both sides.
func (c *comparer) collect(base, head []*Input) (sides [2]map[string]*sideSet, err error) {
	for i, inputs := range [2][]*Input{base, head} {
		sides[i] = map[string]*sideSet{}
		for _, in := range inputs {
			if err := c.pool(sides[i], in); err != nil {
				return sides, err
			}
		}
	}
	return sides, nil
}

// pool adds the cells of one file to sets, which are by value of the parameter
// compared across, "" without one.
func (c *comparer) pool(sets map[string]*sideSet, in *Input) error {
	seen := map[string]string{}
	for i := range in.Cells {
		cell := &in.Cells[i]
		value, has := c.valueAcross(cell.Params)
		if c.acrossKey != "" && !has {
			continue
		}
		key := joinKey(cell.Params, c.ignored)
		if other, twice := seen[value+"\n"+key]; twice {
			return optionError("ignore", "without %s the cases %q and %q of %s are the same: compare them with across instead",
				strings.Join(c.o.Ignore, ", "), other, cell.ID, in.Source)
		}
		seen[value+"\n"+key] = cell.ID
		if sets[value] == nil {
			sets[value] = &sideSet{}
			c.order(value)
		}
		sets[value].at(key).add(cell, in, value)
	}
	return nil
}

// order makes the first value the base if none was named.
func (c *comparer) order(value string) {
	if c.acrossKey != "" && c.acrossValue == "" {
		c.acrossValue = value
	}
}

func (c *comparer) ignored(p Param) bool {
	return slices.Contains(c.o.Ignore, p.Key) || c.acrossKey != "" && p.Key == c.acrossKey
}

func (c *comparer) valueAcross(params []Param) (string, bool) {
	for _, p := range params {
		if c.acrossKey != "" && (p.Key == c.acrossKey || canonicalParam(p).Key == c.acrossKey) {
			return p.Value, true
		}
	}
	return "", false
}

func (s *side) add(cell *Cell, in *Input, value string) {
	if s.id == "" {
		s.id, s.params, s.qos, s.value = cell.ID, cell.Params, cell.QoS, value
	}
	s.sources = append(s.sources, in.Source)
	s.samples = append(s.samples, cell.Samples...)
	if len(cell.Samples) == 0 && cell.Summary.MeanNS != nil {
		s.parts, s.printed = append(s.parts, cellMoments(cell)), append(s.printed, cell.Summary)
	}
	medians := launchMedians(cell)
	s.launches += len(medians)
	s.medians = append(s.medians, medians...)
	s.latency = append(s.latency, cell.Latency)
	s.stripped = s.stripped || cell.Delivery == nil && in.Report != nil
	if cell.Delivery != nil {
		if s.delivery == nil {
			s.delivery, s.clients = &Delivery{}, &Clients{}
		}
		s.delivery.Add(*cell.Delivery)
		s.broken = append(s.broken, cell.Broken...)
		s.clients.add(cell.Clients)
	}
	s.windows, s.perOp = append(s.windows, cell.Window), append(s.perOp, cell.OperationsPerMessage)
	s.generator = cmp.Or(s.generator, cell.Generator)
	if cell.Stalled != nil {
		s.stalls = append(s.stalls, *cell.Stalled)
	}
}

// launchMedians are the medians of the samples of each launch; nil if it is unknown which
// launch a sample is from.
func launchMedians(cell *Cell) []float64 {
	if len(cell.Launches) != len(cell.Samples) {
		return nil
	}
	by := map[int][]float64{}
	for i, l := range cell.Launches {
		by[l] = append(by[l], cell.Samples[i])
	}
	var out []float64
	for _, xs := range by {
		slices.Sort(xs)
		out = append(out, stats.Quantile(xs, 0.5))
	}
	return out
}

func (c *Clients) add(o *Clients) {
	if o == nil {
		return
	}
	c.Planned += o.Planned
	c.Connected += o.Connected
	c.Lost += o.Lost
	c.Reconnects += o.Reconnects
}

// cellMoments are those of a summary.
func cellMoments(cell *Cell) stats.Moments {
	m := stats.Moments{N: cell.Summary.N, Mean: *cell.Summary.MeanNS}
	if cell.Summary.StdDevNS != nil {
		m.StdDev = *cell.Summary.StdDevNS
	} else {
		m.N = min(m.N, 1) // no spread, no test
	}
	return m
}

// measured reports whether any file has a number.
func (s *side) measured() bool { return len(s.samples) > 0 || len(s.parts) > 0 }

// moments pools samples and summaries exactly: sums and squares add.
func (s *side) moments() stats.Moments {
	parts := slices.Clone(s.parts)
	if len(s.samples) > 0 {
		m := stats.Moments{N: len(s.samples), Mean: stats.Mean(s.samples)}
		if sd := stats.StdDev(s.samples); sd != nil {
			m.StdDev = *sd
		}
		parts = append(parts, m)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	n, sum, squares := 0, 0.0, 0.0
	for _, p := range parts {
		n += p.N
		sum += float64(p.N) * p.Mean
	}
	if n == 0 {
		return stats.Moments{}
	}
	mean := sum / float64(n)
	for _, p := range parts {
		d := p.Mean - mean
		squares += float64(max(p.N-1, 0))*p.StdDev*p.StdDev + float64(p.N)*d*d
	}
	return stats.Moments{N: n, Mean: mean, StdDev: sqrtOver(squares, n-1)}
}

func (s *side) stats() SideStats {
	if len(s.parts) == 0 {
		sorted := slices.Sorted(slices.Values(s.samples))
		mean, median := stats.Mean(sorted), stats.Quantile(sorted, 0.5)
		rate := 1e9 / mean
		return SideStats{s.value, len(sorted), s.launches, &mean, stats.StdDev(sorted), &median, &rate}
	}
	m := s.moments()
	st := SideStats{Value: s.value, N: m.N, Launches: s.launches, MeanNS: &m.Mean}
	rate := 1e9 / m.Mean
	st.Req = &rate
	if m.N >= 2 {
		st.StdDevNS = &m.StdDev
	}
	if len(s.parts) == 1 && len(s.samples) == 0 {
		// Medians cannot be pooled; one stays what it was.
		st.MedianNS = s.printed[0].MedianNS
	}
	return st
}

// unstableCV is the coefficient of variation above which a few iterations dominate the
// mean. Short iterations of a garbage-collected runtime have 0.4 to 0.6.
const unstableCV = 1

// unstable says why the numbers of s depend on a few iterations; nil if they do not.
func (s *side) unstable(name string) []string {
	var why []string
	for _, w := range s.stalls {
		why = append(why, name+": "+w.Message)
	}
	m := s.moments()
	if m.N >= 2 && m.Mean > 0 && m.StdDev > unstableCV*m.Mean && len(why) == 0 {
		why = append(why, fmt.Sprintf("%s: StdDev is %.0f %% of Mean", name, 100*m.StdDev/m.Mean))
	}
	return why
}

// join finds the counterpart of every cell, and notes those without.
func (c *comparer) join(sides [2]map[string]*sideSet) []pair {
	if c.acrossKey == "" {
		return c.joinSets(sides[0][""], sides[1][""], "")
	}
	base := sides[0][c.acrossValue]
	var pairs []pair
	for _, value := range sortedKeys(sides[0]) {
		if value != c.acrossValue {
			pairs = append(pairs, c.joinSets(base, sides[0][value], value)...)
		}
	}
	if len(pairs) == 0 && len(c.out.Missing) == 0 {
		c.out.Warnings = append(c.out.Warnings, Warning{
			Code: CodeNoMatch, Message: fmt.Sprintf("%s has fewer than two values to compare", c.acrossKey),
			Hint: "run the cases with both values",
		})
	}
	return pairs
}

func (c *comparer) joinSets(base, head *sideSet, value string) []pair {
	if base == nil {
		base = &sideSet{}
	}
	if head == nil {
		head = &sideSet{}
	}
	var pairs []pair
	for _, key := range base.keys {
		b, h := base.cells[key], head.cells[key]
		switch {
		case h == nil:
			c.missing(b, "head", value)
		case !b.measured():
			c.unmeasured(b, "base")
		case !h.measured():
			c.unmeasured(h, "head")
		default:
			pairs = append(pairs, pair{c.shown(b.params), b, h})
			c.accounted(b, h)
		}
	}
	for _, key := range head.keys {
		if base.cells[key] == nil {
			c.missing(head.cells[key], "base", value)
		}
	}
	if len(pairs) == 0 {
		c.noMatch(base, head)
	}
	return pairs
}

// shown are the parameters of a compared cell, without those left out of the match.
func (c *comparer) shown(params []Param) []Param {
	return slices.DeleteFunc(slices.Clone(params), func(p Param) bool {
		return c.ignored(p) || c.ignored(canonicalParam(p))
	})
}

func (c *comparer) missing(s *side, where, value string) {
	reason := "not in " + where
	if value != "" {
		reason = fmt.Sprintf("no counterpart for %s=%s", c.acrossKey, value)
	}
	c.out.Missing = append(c.out.Missing, MissingCell{s.id, where, reason})
}

func (c *comparer) unmeasured(s *side, where string) {
	c.out.Missing = append(c.out.Missing, MissingCell{s.id, where, "nothing was measured in " + where})
}

// accounted handles a cell of which only one side has a delivery account: loss on the
// other side would not show. A report of this program always has an account, so without
// one the cell is missing. A table never has one, which gives a warning.
func (c *comparer) accounted(b, h *side) {
	switch {
	case b.delivery != nil && h.stripped:
		c.unaccounted(h, "head")
	case h.delivery != nil && b.stripped:
		c.unaccounted(b, "base")
	case b.delivery != nil && h.delivery == nil:
		c.noAccount(h, "head")
	case h.delivery != nil && b.delivery == nil:
		c.noAccount(b, "base")
	}
}

func (c *comparer) unaccounted(s *side, where string) {
	c.out.Missing = append(c.out.Missing, MissingCell{s.id, where, "no delivery account in " + where})
}

// noAccount warns once.
func (c *comparer) noAccount(s *side, where string) {
	if slices.ContainsFunc(c.out.Warnings, func(w Warning) bool { return w.Code == CodeNoAccount }) {
		return
	}
	c.warn(CodeNoAccount, fmt.Sprintf("%s has no delivery account, but the other side has one: it is unknown whether the %s lost messages",
		strings.Join(s.sources, ", "), where), "compare JSON reports, which have one")
}

// noMatch explains why no cell has a counterpart, mostly a parameter of one side only.
func (c *comparer) noMatch(base, head *sideSet) {
	w := Warning{Code: CodeNoMatch, Message: "the two sides have no case in common", Hint: "compare runs of the same cases"}
	b, h := base.paramKeys(), head.paramKeys()
	var only []string
	for _, k := range sortedKeys(b) {
		if !h[k] {
			only = append(only, k+" (base)")
		}
	}
	for _, k := range sortedKeys(h) {
		if !b[k] {
			only = append(only, k+" (head)")
		}
	}
	if len(only) > 0 {
		w.Message += ": only one has " + strings.Join(only, ", ")
		w.Hint = "leave out parameters of one side with --ignore"
	}
	c.out.Warnings = append(c.out.Warnings, w)
}

func (s *sideSet) paramKeys() map[string]bool {
	keys := map[string]bool{}
	for _, cell := range s.cells {
		for _, p := range cell.params {
			keys[canonicalParam(p).Key] = true
		}
	}
	return keys
}
