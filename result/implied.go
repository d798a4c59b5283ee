package result

import (
	"math"
	"sort"

	"github.com/mqttload/mqttload/result/stats"
)

// maxImpliedN bounds the search: beyond, Error over StdDev changes by less than
// any table prints.
const maxImpliedN = 1_000_000

// impliedN is the number of iterations behind a row. It follows from Error over StdDev,
// which is t(0.9995, n-1)/sqrt(n) and differs for every n. Rounding makes it a range
// Low..High, in which Best fits best; if Low is above High, no n fits. The zero value
// is unknown.
type impliedN struct{ Best, Low, High int }

func (n impliedN) known() bool { return n.Best != 0 }

// holds reports whether n fits.
func (n impliedN) holds(m int) bool { return n.known() && n.Low <= m && m <= n.High }

// impliedN derives n from the rounded Error and StdDev of c.
func (c *Cell) impliedN() impliedN {
	s := &c.Summary
	if s.ErrorNS == nil || s.StdDevNS == nil || *s.ErrorNS <= 0 || *s.StdDevNS <= 0 {
		return impliedN{}
	}
	e, sd := *s.ErrorNS, *s.StdDevNS
	// Numbers that were not printed are exact but for the last bits.
	he, hs := e*1e-12, sd*1e-12
	if p, ok := c.Printed["Error"]; ok {
		he = p.Half
	}
	if p, ok := c.Printed["StdDev"]; ok {
		hs = p.Half
	}
	low := nBelow((e + he) / math.Max(sd-hs, math.SmallestNonzeroFloat64))
	high := nBelow((e-he)/(sd+hs)) - 1
	if marginPerDeviation(high+1) == (e-he)/(sd+hs) {
		high++
	}
	best := nBelow(e / sd)
	if best > 2 && marginPerDeviation(best-1)-e/sd < e/sd-marginPerDeviation(best) {
		best--
	}
	return impliedN{Best: best, Low: low, High: high}
}

// nBelow is the smallest n whose Error over StdDev is at most r.
func nBelow(r float64) int {
	return 2 + sort.Search(maxImpliedN, func(i int) bool { return marginPerDeviation(i+2) <= r })
}

// marginPerDeviation is Error over StdDev of n values.
func marginPerDeviation(n int) float64 {
	if e := stats.MarginOfError(1, n); e != nil {
		return *e
	}
	return math.Inf(1)
}

// usualN is how many iterations the header states, or else the number that fits
// the most rows; 0 if none does.
func (in *Input) usualN() int {
	if in.StatedN > 0 {
		return in.StatedN
	}
	var all []impliedN
	for i := range in.Cells {
		if n := in.Cells[i].impliedN(); n.known() {
			all = append(all, n)
		}
	}
	usual, most := 0, 0
	for _, candidate := range all {
		fits := 0
		for _, n := range all {
			if n.holds(candidate.Best) {
				fits++
			}
		}
		if fits > most {
			usual, most = candidate.Best, fits
		}
	}
	return usual
}

// statedHolds reports whether a row of n iterations fits the header. Outliers that the job
// removed are fewer than half of them.
func (in *Input) statedHolds(n impliedN) bool {
	if in.VariableN {
		return n.Low <= in.StatedN && 2*n.High >= in.StatedN
	}
	return n.holds(in.StatedN)
}

// mostRest reports whether n fits more than half of the rows.
func (in *Input) mostRest(n int) bool {
	fits, known := 0, 0
	for i := range in.Cells {
		implied := in.Cells[i].impliedN()
		if implied.known() {
			known++
		}
		if implied.holds(n) {
			fits++
		}
	}
	return 2*fits > known
}

// stall is what a mean would hide if all of its spread came from a few iterations.
type stall struct {
	Count  int     // stalled iterations
	OpNS   float64 // time per operation of each
	MeanNS float64 // mean of the others, ns per operation
}

const (
	// stallMedianMatch is how close the mean of the others must be to the median.
	stallMedianMatch = 0.10
	// stallShare bounds the stalled iterations: more of them are a mode, not a stall.
	stallShare = 10
)

// hiddenStall decomposes a mean over n iterations with the standard deviation sd
// into k equally long stalls and the rest: mean = m + k d/n and sd^2 = k (1 -
// k/n) d^2 / (n-1), with the spread of the rest left out. The smallest k for which
// m agrees with the median is the answer; ok is false if there is none, or
// if sd is not above the mean, which no stall is needed to explain.
func hiddenStall(n int, mean, sd, median float64) (s stall, ok bool) {
	if n < outlierMinSamples || !(sd > unstableCV*mean) || !positive(median) {
		return stall{}, false
	}
	for k := 1; k <= max(1, n/stallShare); k++ {
		share := float64(k) / float64(n)
		d := sd * math.Sqrt(float64(n-1)/(float64(k)*(1-share)))
		m := mean - d*share
		if m > 0 && math.Abs(m-median) <= stallMedianMatch*median {
			return stall{Count: k, OpNS: m + d, MeanNS: m}, true
		}
	}
	return stall{}, false
}
