package result

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/result/stats"
)

// Defaults of CompareOptions.
const (
	defaultThreshold = 0.05
	defaultAlpha     = 0.05
)

// CompareOptions say how to compare. The zero value is the usual comparison.
type CompareOptions struct {
	// Threshold is the smallest change that matters: a regression is significant
	// and beyond it. 0 means 0.05, which is 5 %; for no threshold, use a tiny number.
	Threshold float64
	// Alpha is the chance of any false finding over all cells; 0 means 0.05.
	Alpha float64
	// Ignore names parameters that are left out when cells are matched.
	Ignore []string
	// Across compares the values of one parameter within the base files, without
	// head files: "transport" takes its first value as the base, "transport=tcp" takes tcp.
	Across string
	// Allow names differences between the runs to tolerate, by keys of UnlikeKeys.
	Allow []string
}

// OptionError says which option of a comparison is invalid: a usage error.
type OptionError struct {
	Option string // "ignore", "across", "allow", "threshold", "alpha", "files"
	Reason string
}

// Error names the option and says what is wrong with it.
func (e *OptionError) Error() string { return fmt.Sprintf("compare: %s: %s", e.Option, e.Reason) }

func optionError(option, format string, args ...any) error {
	return &OptionError{option, fmt.Sprintf(format, args...)}
}

// Compare compares head with base, cell by cell. Several inputs on one side pool
// their iterations. Cells are matched by their parameters, in any order and under the
// names of any known tool. The error is an *OptionError, an *UnlikeError if the runs
// were made under different conditions, or names the histogram that cannot be merged.
// Missing cells are not an error: see Complete.
func Compare(base, head []*Input, o CompareOptions) (*Comparison, error) {
	c := &comparer{o: o}
	if err := c.options(base, head); err != nil {
		return nil, err
	}
	c.out = &Comparison{
		Base: comparedFiles(base), Head: comparedFiles(head), Across: c.acrossKey, Threshold: c.o.Threshold, Alpha: c.o.Alpha,
		Cells: []CellComparison{}, Missing: []MissingCell{}, Warnings: []Warning{}, Allowed: []Difference{},
	}
	sides, err := c.collect(base, head)
	if err != nil {
		return nil, err
	}
	pairs := c.join(sides)
	if err := c.alike(base, head, pairs); err != nil {
		return nil, err
	}
	c.notice(base, head)
	for _, p := range pairs {
		cell, err := c.compare(p)
		if err != nil {
			return nil, fmt.Errorf("compare %s: %w", p.base.id, err)
		}
		c.out.Cells = append(c.out.Cells, cell)
	}
	c.judge()
	c.noticeOneLaunch()
	c.noticeGenerator()
	c.summarize()
	return c.out, nil
}

type comparer struct {
	o           CompareOptions
	acrossKey   string
	acrossValue string
	ranks       stats.RankTests
	out         *Comparison
}

func (c *comparer) options(base, head []*Input) error {
	if c.o.Threshold == 0 {
		c.o.Threshold = defaultThreshold
	}
	if c.o.Alpha == 0 {
		c.o.Alpha = defaultAlpha
	}
	c.acrossKey, c.acrossValue, _ = strings.Cut(c.o.Across, "=")
	switch {
	case !positive(c.o.Threshold):
		return optionError("threshold", "%g is not a change: give one above 0, such as 5%%", c.o.Threshold)
	case !(c.o.Alpha > 0 && c.o.Alpha < 1):
		return optionError("alpha", "%g is not a probability between 0 and 1", c.o.Alpha)
	case len(base) == 0:
		return optionError("files", "no base file: name one")
	case c.o.Across != "" && len(head) > 0:
		return optionError("across", "it compares within the base files: leave out the head files")
	case c.o.Across == "" && len(head) == 0:
		return optionError("files", "no head file: name one, or compare within the base with across")
	}
	for _, key := range c.o.Allow {
		if !slices.Contains(UnlikeKeys, key) {
			return optionError("allow", "unknown difference %q%s", key, hint(key, UnlikeKeys))
		}
	}
	for _, files := range [][]*Input{base, head} {
		for i, in := range files {
			for _, other := range files[:i] {
				if sameFile(in, other) {
					return optionError("files", "%s and %s are the same run, which would count twice", other.Source, in.Source)
				}
			}
		}
	}
	return c.params(slices.Concat(base, head))
}

// params refuses names of parameters that no cell has: a typo would compare something
// else than was asked for.
func (c *comparer) params(inputs []*Input) error {
	known := map[string]bool{}
	for _, in := range inputs {
		for i := range in.Cells {
			for _, p := range in.Cells[i].Params {
				known[p.Key] = true
				known[canonicalParam(p).Key] = true
			}
		}
	}
	names := slices.Sorted(maps.Keys(known))
	for _, key := range c.o.Ignore {
		if !known[key] {
			return optionError("ignore", "no case has a parameter %q%s", key, hint(key, names))
		}
	}
	if c.acrossKey != "" && !known[c.acrossKey] {
		return optionError("across", "no case has a parameter %q%s", c.acrossKey, hint(c.acrossKey, names))
	}
	return nil
}

func comparedFiles(inputs []*Input) []ComparedFile {
	files := []ComparedFile{}
	for _, in := range inputs {
		files = append(files, ComparedFile{in.Source, in.Format, in.RunID, in.Started})
	}
	return files
}

// compare computes the parts of a cell that do not depend on other cells.
func (c *comparer) compare(p pair) (CellComparison, error) {
	b, h := p.base, p.head
	cell := CellComparison{
		ID: b.id, Params: p.params, Base: b.stats(), Head: h.stats(),
		Unstable: append(b.unstable("base"), h.unstable("head")...), Latency: []LatencyDelta{},
		Delivery: deliveryChanges(b, h),
	}
	if cell.Unstable == nil {
		cell.Unstable = []string{}
	}
	cell.MedianOver, cell.MeanOver = over(cell.Head.MedianNS, cell.Base.MedianNS), over(cell.Head.MeanNS, cell.Base.MeanNS)
	if len(b.samples) > 0 && len(h.samples) > 0 {
		c.rankTest(&cell, b.samples, h.samples)
		cell.overlap = c.launchesOverlap(b.medians, h.medians)
	} else {
		c.welch(&cell, b.moments(), h.moments())
	}
	cell.noteGenerator(b.generator, h.generator)
	deltas, err := latencyDeltas(b, h)
	if err != nil {
		return cell, err
	}
	cell.Latency = append(cell.Latency, deltas...)
	return cell, nil
}

func over(a, b *float64) *float64 {
	if a == nil || b == nil || *b == 0 {
		return nil
	}
	r := *a / *b
	return &r
}

func (c *comparer) rankTest(cell *CellComparison, base, head []float64) {
	t := c.ranks.MannWhitney(base, head)
	cell.Test, cell.P = MethodMannWhitney, &t.P
	cell.setRatio(c.ranks.Ratio(base, head, 1-c.o.Alpha))
	s := c.ranks.HodgesLehmann(base, head, 1-c.o.Alpha)
	cell.ShiftNS, cell.ShiftLowNS, cell.ShiftHighNS = &s.Estimate, finite(s.Low), finite(s.High)
	cell.leastP = t.LeastP
}

func (c *comparer) welch(cell *CellComparison, base, head stats.Moments) {
	cell.Test = MethodWelch
	if t, ok := stats.Welch(base, head); ok {
		cell.P = &t.P
	}
	if base.Mean > 0 && head.Mean > 0 {
		cell.setRatio(stats.MeanRatio(base, head, 1-c.o.Alpha))
	}
}

func (cell *CellComparison) setRatio(i stats.Interval) {
	cell.Ratio, cell.RatioHigh = &i.Estimate, finite(i.High)
	if i.Low > 0 {
		cell.RatioLow = &i.Low
	}
}

// finite is v, or nil if it is infinite or not a number.
func finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}

// summarize computes the numbers over all cells.
func (c *comparer) summarize() {
	var medians, means, steady []float64
	for _, cell := range c.out.Cells {
		if cell.MedianOver != nil {
			medians = append(medians, *cell.MedianOver)
		}
		if cell.MeanOver != nil {
			means = append(means, *cell.MeanOver)
			if len(cell.Unstable) == 0 {
				steady = append(steady, *cell.MeanOver)
			}
		}
	}
	c.out.GeoMeanMedian, c.out.GeoMeanMean, c.out.GeoMeanSteady = geoMean(medians), geoMean(means), geoMean(steady)
}

func geoMean(ratios []float64) *float64 {
	if len(ratios) == 0 {
		return nil
	}
	sum := 0.0
	for _, r := range ratios {
		sum += math.Log(r)
	}
	g := math.Exp(sum / float64(len(ratios)))
	return &g
}
