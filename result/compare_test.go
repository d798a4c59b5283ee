package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/racing"
	"github.com/mqttload/mqttload/result/stats"
)

func readAny(t *testing.T, path string) *Input {
	t.Helper()
	in, err := ReadAny(path)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func compareFiles(t *testing.T, base, head *Input, o CompareOptions) *Comparison {
	t.Helper()
	c, err := Compare([]*Input{base}, []*Input{head}, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(c); err != nil {
		t.Errorf("the comparison is not JSON: %v", err)
	}
	return c
}

// TestCompareSeed compares the two published tables of TurboMqtt, the second of
// which was thought to be the better one.
func TestCompareSeed(t *testing.T) {
	c := compareFiles(t, readAny(t, "testdata/table-1.tsv"), readAny(t, "testdata/table-2.tsv"), CompareOptions{})
	if len(c.Cells) != 12 || !c.Complete() || c.Regressions() != 0 {
		t.Fatalf("%d cells, complete %t, %d regressions", len(c.Cells), c.Complete(), c.Regressions())
	}
	percent := []float64{-2.6, -5.3, 6.4, -0.1, 1.5, -4.9, 4.6, 88.5, 0.5, 10.4, 3.1, 3.4}
	for i, cell := range c.Cells {
		if cell.Significant || cell.Verdict == Slower || cell.Verdict == Faster || cell.Test != MethodWelch {
			t.Errorf("%s: %s, significant %t, by %s", cell.ID, cell.Verdict, cell.Significant, cell.Test)
		}
		if cell.Base.N != 100 || cell.Head.N != 100 {
			t.Errorf("%s: n = %d and %d, want 100", cell.ID, cell.Base.N, cell.Head.N)
		}
		near(t, cell.ID, 100*(*cell.Ratio-1), percent[i], 0.06)
	}
	near(t, "smallest p", *c.SmallestP, 0.00478, 5e-6)
	near(t, "Holm limit", *c.HolmLimit, 0.00417, 5e-6)
	near(t, "geomean of medians", *c.GeoMeanMedian, 1.005, 5e-4)
	near(t, "geomean of means", *c.GeoMeanMean, 1.068, 5e-4)
	near(t, "geomean without the stalled row", *c.GeoMeanSteady, 1.015, 5e-4)
	var unstable []string
	for _, cell := range c.Cells {
		if len(cell.Unstable) > 0 {
			unstable = append(unstable, cell.ID)
		}
	}
	if len(unstable) != 1 || !strings.Contains(unstable[0], "AtLeastOnce/PayloadSizeBytes=8192") {
		t.Errorf("unstable: %q, want AtLeastOnce/8192", unstable)
	}
	want := "no significant change in any of 12 cells (smallest p 0.00478, limit 0.00417); 12 inconclusive; 1 unstable; geometric mean of the ratios of medians 1.005"
	if s := c.Sentence(); s != want {
		t.Errorf("sentence\n%s\nwant\n%s", s, want)
	}
}

// sampled is an input of cells with the given samples, in ns per operation.
func sampled(name string, cells map[string][]float64) *Input {
	r := &Report{
		Schema: Schema, Tool: Tool{Version: "v1.2.3", Go: "go1.26"}, ScenarioHash: "same",
		Run:         Run{ID: name, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Status: StatusComplete},
		Environment: Environment{OS: "linux", Arch: "amd64", CPU: "Example", Cores: 2, GOMAXPROCS: 2},
		Target:      Target{URL: "mqtt://127.0.0.1:1", Embedded: true},
	}
	for _, id := range sortedKeys(cells) {
		params, err := parseCaseID(id)
		if err != nil {
			panic(err)
		}
		c := Case{ID: id, Params: params, Window: 100, OperationsPerMessage: 1}
		for i, x := range cells[id] {
			c.Iterations = append(c.Iterations, Iteration{
				Launch: 1, Stage: StageActual, Index: i + 1, Operations: 100_000, ElapsedNS: int64(x * 100_000), Sent: 100_000, Received: 100_000,
			})
		}
		r.Cases = append(r.Cases, c)
	}
	return InputOf(name, r)
}

func noisy(rng *rand.Rand, mean, noise float64, n int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = mean * max(0.1, 1+noise*rng.NormFloat64())
	}
	return xs
}

// matrixOf draws 12 cells of 15 iterations with 3 % noise, the first of them
// slower by the given factor.
func matrixOf(rng *rand.Rand, name string, first float64) *Input {
	cells := map[string][]float64{}
	for q := range 3 {
		for p := range 4 {
			mean := 3000 * float64(1+q) * float64(1+p)
			if q == 0 && p == 0 {
				mean *= first
			}
			cells[fmt.Sprintf("qos=%d/payload=%d", q, p)] = noisy(rng, mean, 0.03, 15)
		}
	}
	return sampled(name, cells)
}

// TestFalseAlarms: of a thousand pairs of runs between which nothing changed, at
// most 5 % may have any regression or any improvement.
func TestFalseAlarms(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	regressions, findings, significant := 0, 0, 0
	pairs := drawn(1000)
	for range pairs {
		c, err := Compare([]*Input{matrixOf(rng, "a", 1)}, []*Input{matrixOf(rng, "b", 1)}, CompareOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if c.Regressions() > 0 {
			regressions++
		}
		if c.Verdicts(Faster)+c.Verdicts(Slower) > 0 {
			findings++
		}
		if *c.SmallestP < *c.HolmLimit {
			significant++
		}
	}
	t.Logf("of %d null pairs %d have a regression, %d any finding, %d any significant cell", pairs, regressions, findings, significant)
	if regressions > pairs/20 || findings > pairs/20 {
		t.Errorf("%d regressions and %d findings in %d null pairs", regressions, findings, pairs)
	}
	// The tests themselves keep their level: 5 %, give or take three deviations.
	share := float64(significant) / float64(pairs)
	near(t, "share of null pairs with a significant cell", share, 0.05, 3*math.Sqrt(0.05*0.95/float64(pairs)))
}

// drawn is how many pairs to draw: the race detector makes arithmetic ten times
// as slow and has nothing to find in it.
func drawn(n int) int {
	if racing.Enabled {
		return n / 10
	}
	return n
}

// TestPower: a shift of 10 % in one of twelve cells is found at least 95 % of the
// time, in both directions, and in no other cell.
func TestPower(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	pairs := drawn(300)
	slower, faster := 0, 0
	for range pairs {
		base := matrixOf(rng, "a", 1)
		for factor, found := range map[float64]*int{1.1: &slower, 1 / 1.1: &faster} {
			c := compareFiles(t, base, matrixOf(rng, "b", factor), CompareOptions{})
			i := slices.IndexFunc(c.Cells, func(x CellComparison) bool { return x.ID == "qos=0/payload=0" })
			if v := c.Cells[i].Verdict; factor > 1 && v == Slower && c.Cells[i].Regression || factor < 1 && v == Faster {
				*found++
			}
		}
	}
	t.Logf("of %d shifts each, %d were found slower and %d faster", pairs, slower, faster)
	if slower < pairs*95/100 || faster < pairs*95/100 {
		t.Errorf("found %d and %d of %d", slower, faster, pairs)
	}
}

func TestSameRunTwice(t *testing.T) {
	in := matrixOf(rand.New(rand.NewPCG(1, 1)), "a", 1)
	c := compareFiles(t, in, in, CompareOptions{})
	if c.Regressions() != 0 || c.Verdicts(Same) != 12 || *c.GeoMeanMedian != 1 {
		t.Errorf("%s", c.Sentence())
	}
	if len(c.Warnings) != 1 || c.Warnings[0].Code != CodeSameFile {
		t.Errorf("warnings %v, want that it is the same run", c.Warnings)
	}
	_, err := Compare([]*Input{in, in}, []*Input{in}, CompareOptions{})
	var oe *OptionError
	if !errors.As(err, &oe) || oe.Option != "files" {
		t.Errorf("a file pooled with itself: %v", err)
	}
}

func TestVerdicts(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	base := noisy(rng, 1000, 0.01, 15)
	times := func(f float64) []float64 {
		out := slices.Clone(base)
		for i := range out {
			out[i] *= f
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		head   []float64
		want   Verdict
		reason string
	}{
		{"equal", times(1), Same, ""},
		{"small", times(1.02), Same, "within 5 %"},
		{"near", times(1.045), Inconclusive, "which may be within"},
		{"slower", times(1.07), Slower, ""},
		{"faster", times(0.9), Faster, ""},
		{"noisy", noisy(rng, 1000, 0.4, 15), Inconclusive, "wider"},
		{"few", times(1.5)[:1], Inconclusive, "too few iterations"},
	} {
		c := compareFiles(t, sampled("a", map[string][]float64{"qos=1": base}), sampled("b", map[string][]float64{"qos=1": tt.head}), CompareOptions{})
		cell := c.Cells[0]
		if cell.Verdict != tt.want || !strings.Contains(cell.Reason, tt.reason) {
			t.Errorf("%s: %s (%s), want %s (%s)", tt.name, cell.Verdict, cell.Reason, tt.want, tt.reason)
		}
		if cell.Regression != (tt.want == Slower) || cell.Test != MethodMannWhitney {
			t.Errorf("%s: regression %t by %s", tt.name, cell.Regression, cell.Test)
		}
	}
}

func TestThresholdDecides(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	base := noisy(rng, 1000, 0.01, 15)
	head := slices.Clone(base)
	for i := range head {
		head[i] *= 1.07
	}
	for threshold, want := range map[float64]Verdict{0.05: Slower, 0.1: Same, 1e-9: Slower} {
		c := compareFiles(t, sampled("a", map[string][]float64{"qos=1": base}), sampled("b", map[string][]float64{"qos=1": head}), CompareOptions{Threshold: threshold})
		if c.Cells[0].Verdict != want {
			t.Errorf("threshold %g: %s, want %s", threshold, c.Cells[0].Verdict, want)
		}
	}
}

func TestJoin(t *testing.T) {
	xs := []float64{10, 11, 12, 13, 14, 15}
	base := sampled("a", map[string][]float64{"qos=1/payload=10": xs, "qos=2/payload=10": xs})
	head := sampled("b", map[string][]float64{"payload=10/qos=1": xs, "payload=10/qos=0": xs})
	c := compareFiles(t, base, head, CompareOptions{})
	if len(c.Cells) != 1 || c.Cells[0].ID != "qos=1/payload=10" || c.Complete() {
		t.Errorf("joined %d cells, complete %t", len(c.Cells), c.Complete())
	}
	want := []MissingCell{{"qos=2/payload=10", "head", "not in head"}, {"payload=10/qos=0", "base", "not in base"}}
	if !slices.Equal(c.Missing, want) {
		t.Errorf("missing %v, want %v", c.Missing, want)
	}
	// Names of another tool.
	tsv := readAny(t, "testdata/table-1.tsv")
	ours := sampled("c", map[string][]float64{"qos=1/payload=8192/protocol=3.1.1": xs})
	c = compareFiles(t, tsv, ours, CompareOptions{Ignore: []string{"Method"}})
	if len(c.Cells) != 1 || len(c.Missing) != 11 || c.Cells[0].Test != MethodWelch {
		t.Errorf("%d joined, %d missing", len(c.Cells), len(c.Missing))
	}
	// Nothing in common is not a pass, and says why.
	c = compareFiles(t, tsv, ours, CompareOptions{})
	if c.Complete() || len(c.Cells) != 0 || !slices.ContainsFunc(c.Warnings, func(w Warning) bool {
		return w.Code == CodeNoMatch && strings.Contains(w.Message, "Method") || strings.Contains(w.Message, "method (base)")
	}) {
		t.Errorf("nothing in common: %v", c.Warnings)
	}
	if s := c.Sentence(); !strings.HasPrefix(s, "nothing was compared") {
		t.Error(s)
	}
}

func TestNotMeasuredIsMissing(t *testing.T) {
	xs := []float64{10, 11, 12}
	base := sampled("a", map[string][]float64{"qos=1": xs, "qos=2": xs})
	head := sampled("b", map[string][]float64{"qos=1": xs, "qos=2": nil})
	c := compareFiles(t, base, head, CompareOptions{})
	if c.Complete() || len(c.Missing) != 1 || c.Missing[0] != (MissingCell{"qos=2", "head", "nothing was measured in head"}) {
		t.Errorf("missing %v", c.Missing)
	}
}

func TestPool(t *testing.T) {
	a := sampled("a", map[string][]float64{"qos=1": {1, 2, 3}})
	b := sampled("b", map[string][]float64{"qos=1": {4, 5}})
	h := sampled("h", map[string][]float64{"qos=1": {1, 2, 3, 4, 5}})
	c, err := Compare([]*Input{a, b}, []*Input{h}, CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Cells[0].Base; s.N != 5 || *s.MeanNS != 3 || *s.MedianNS != 3 || s.Launches != 2 || *c.Cells[0].P != 1 {
		t.Errorf("pooled %+v, P %g", s, *c.Cells[0].P)
	}
	// Summaries pool exactly too: as if all samples were there.
	xs, ys := []float64{1, 2, 3, 7}, []float64{4, 9, 11}
	s := side{}
	for _, part := range [][]float64{xs, ys} {
		s.parts = append(s.parts, stats.Moments{N: len(part), Mean: stats.Mean(part), StdDev: *stats.StdDev(part)})
	}
	all := slices.Concat(xs, ys)
	near(t, "pooled mean", s.moments().Mean, stats.Mean(all), 1e-12)
	near(t, "pooled stddev", s.moments().StdDev, *stats.StdDev(all), 1e-12)
}

func TestAcross(t *testing.T) {
	fast, slow := []float64{100, 101, 102, 103, 104, 105, 106}, []float64{120, 121, 122, 123, 124, 125, 126}
	in := sampled("a", map[string][]float64{
		"qos=0/transport=tcp": fast, "qos=0/transport=tls": slow,
		"qos=1/transport=tcp": fast, "qos=1/transport=tls": slow, "qos=1/transport=wss": slow, "qos=2/transport=wss": slow,
	})
	c, err := Compare([]*Input{in}, nil, CompareOptions{Across: "transport=tcp"})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Cells) != 3 || c.Verdicts(Slower) != 3 || c.Cells[0].Base.Value != "tcp" || c.Cells[0].Head.Value != "tls" {
		t.Errorf("%d cells, %s; first %+v", len(c.Cells), c.Sentence(), c.Cells[0].Base)
	}
	if !slices.Equal(c.Cells[0].Params, []Param{{"qos", "0"}}) {
		t.Errorf("params %v, want qos alone", c.Cells[0].Params)
	}
	if len(c.Missing) != 2 { // qos=0 over wss, qos=2 over tcp
		t.Errorf("missing %v", c.Missing)
	}
	back, err := Compare([]*Input{in}, nil, CompareOptions{Across: "transport=tls"})
	if err != nil || back.Verdicts(Faster) != 2 || back.Verdicts(Same)+back.Verdicts(Inconclusive) != 1 {
		t.Errorf("the other way: %v %v", back, err)
	}
}

// TestAcrossFirst: without a value the first one that comes is the base, and one
// value alone is nothing to compare.
func TestAcrossFirst(t *testing.T) {
	xs := []float64{100, 101, 102, 103, 104, 105, 106}
	c, err := Compare([]*Input{sampled("a", map[string][]float64{"qos=0": xs, "qos=1": xs, "qos=2": xs})}, nil, CompareOptions{Across: "qos"})
	if err != nil || len(c.Cells) != 2 || c.Cells[0].Base.Value != "0" || c.Cells[1].Head.Value != "2" {
		t.Errorf("%+v %v", c, err)
	}
	c, err = Compare([]*Input{sampled("a", map[string][]float64{"qos=0": xs})}, nil, CompareOptions{Across: "qos"})
	if err != nil || c.Complete() || len(c.Warnings) == 0 || c.Warnings[0].Code != CodeNoMatch {
		t.Errorf("one value: %+v %v", c, err)
	}
}

func TestCompareOptions(t *testing.T) {
	in := sampled("a", map[string][]float64{"qos=0/transport=tcp": {1, 2}, "qos=0/transport=tls": {1, 2}})
	other := sampled("b", map[string][]float64{"qos=0/transport=tcp": {1, 2}})
	both := []*Input{other}
	for _, tt := range []struct {
		base, head []*Input
		o          CompareOptions
		want       string
	}{
		{nil, both, CompareOptions{}, "compare: files: no base file"},
		{both, nil, CompareOptions{}, "compare: files: no head file"},
		{both, both, CompareOptions{Across: "qos"}, "compare: across: it compares within the base files"},
		{both, nil, CompareOptions{Across: "qso"}, `compare: across: no case has a parameter "qso": did you mean qos?`},
		{both, []*Input{in}, CompareOptions{Ignore: []string{"tranport"}}, `compare: ignore: no case has a parameter "tranport": did you mean transport?`},
		{both, []*Input{in}, CompareOptions{Ignore: []string{"transport"}}, "compare: ignore: without transport the cases"},
		{both, []*Input{in}, CompareOptions{Allow: []string{"cpus"}}, `compare: allow: unknown difference "cpus": did you mean cpu?`},
		{both, []*Input{in}, CompareOptions{Threshold: -1}, "compare: threshold: -1 is not a change"},
		{both, []*Input{in}, CompareOptions{Alpha: 2}, "compare: alpha: 2 is not a probability"},
	} {
		_, err := Compare(tt.base, tt.head, tt.o)
		var oe *OptionError
		if !errors.As(err, &oe) || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}

// TestCompareOneLaunch: one launch a side is warned of where it decides.
func TestCompareOneLaunch(t *testing.T) {
	side := func(launches int, scale float64) *Input {
		in := &Input{Source: fmt.Sprint("s", launches, scale), Cells: []Cell{{Params: []Param{{"qos", "1"}}}}}
		for i := range 15 {
			in.Cells[0].Samples = append(in.Cells[0].Samples, scale*float64(100+i%5))
			in.Cells[0].Launches = append(in.Cells[0].Launches, 1+i%launches)
		}
		return in
	}
	for _, tt := range []struct {
		launches int
		scale    float64
		want     bool
	}{{1, 2, true}, {1, 1.0001, false}, {5, 2, false}} {
		c, err := Compare([]*Input{side(tt.launches, 1)}, []*Input{side(tt.launches, tt.scale)}, CompareOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := slices.ContainsFunc(c.Warnings, func(w Warning) bool { return w.Code == CodeOneLaunch })
		if got != tt.want {
			t.Errorf("%d launches, factor %g: warned %v", tt.launches, tt.scale, got)
		}
	}
}

// TestCompareLaunches: a difference between the sides that is not larger than
// that between launches of one side is not called one, however many iterations
// each launch has.
func TestCompareLaunches(t *testing.T) {
	side := func(medians ...float64) *Input {
		in := &Input{Source: fmt.Sprint(medians), Cells: []Cell{{Params: []Param{{"qos", "1"}}}}}
		for l, m := range medians {
			for i := range 15 {
				in.Cells[0].Samples = append(in.Cells[0].Samples, m*(1+0.001*float64(i)))
				in.Cells[0].Launches = append(in.Cells[0].Launches, l+1)
			}
		}
		return in
	}
	for _, tt := range []struct {
		base, head *Input
		want       Verdict
	}{
		{side(100), side(120), Slower}, // of one launch nothing is known
		{side(100, 102), side(120, 121), Slower},
		{side(100, 125), side(120, 160), Inconclusive},
		{side(100, 101, 102, 103), side(120, 121, 122, 123), Slower},
		{side(120, 121, 122, 123), side(100, 101, 102, 103), Faster},
		{side(100, 130, 101, 131), side(115, 145, 116, 146), Inconclusive},
	} {
		c, err := Compare([]*Input{tt.base}, []*Input{tt.head}, CompareOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if cell := c.Cells[0]; cell.Verdict != tt.want || cell.Regression != (tt.want == Slower) {
			t.Errorf("%s to %s: %s (%s), want %s", tt.base.Source, tt.head.Source, cell.Verdict, cell.Reason, tt.want)
		}
	}
}
