package stats

import (
	"math"
	"sort"
)

// MValueMinSamples is the smallest sample for which MValue means anything. The
// other constants are its thresholds, all as in BenchmarkDotNet's multimodality
// analyser.
const (
	MValueMinSamples   = 15
	MValueSeveralModes = 2.8
	MValueBimodal      = 3.2
	MValueMultimodal   = 4.2
)

const (
	// slack times the bin width is the widest stretch that is left as one bin.
	slack = 1.2
	// sliver times the bin width is the narrowest rest that becomes a bin of its
	// own; a narrower one joins the bin next to it.
	sliver = 0.1
	// slim times the bin width is the narrowest bin that is not joined to another.
	slim = 0.5
	// finest times s / n^(1/3) is the smallest bin width tried.
	finest = 4
)

// MValue tells how many modes the sample sorted (ascending) has: 2 means one mode,
// 4 two equal modes, 6 three. It is 0 for an empty sample.
//
// The m-value of a histogram is the sum of its steps up and down, divided by its
// highest bin: Brendan Gregg, Frequency Trails: Modes and Modality. As in
// BenchmarkDotNet, Tukey outliers are left out, and the result is the largest
// m-value over bin widths that double up to the range of the sample. Also as
// there, bins cover the densest stretches first: the edges of a fixed grid would
// split modes or bridge gaps by accident.
//
// BenchmarkDotNet starts with a width of 1.75 s / n^(1/3), which would flag more
// than half of all normal samples here. A start at 4 s / n^(1/3) flags few of them,
// and finds two modes ten standard deviations apart. Shares of samples above
// MValueSeveralModes, by the size of the sample:
//
//	n           15    30    60   100   150
//	normal     0 %   0 %   1 %   3 %   4 %
//	two modes  0 %  47 % 100 % 100 % 100 %
func MValue(sorted []float64) float64 {
	_, xs, _ := Outliers(sorted)
	if len(xs) == 0 {
		return 0
	}
	sd, spread := StdDev(xs), xs[len(xs)-1]-xs[0]
	if sd == nil || *sd == 0 || spread == 0 {
		return 2
	}
	largest := 2.0
	for width := finest * *sd / math.Cbrt(float64(len(xs))); width < spread; width *= 2 {
		largest = max(largest, steps(bins(xs, width)))
	}
	return largest
}

// bin is one bar of a histogram, low edge included.
type bin struct {
	low, high float64
	count     int
}

// bins covers xs with bins of about the given width.
func bins(xs []float64, width float64) []bin {
	return joinSlim(cover(nil, xs, xs[0]-width/2, xs[len(xs)-1]+width/2, width), width*slim)
}

// cover appends to bs the bins from low to high, which hold xs: one over the
// densest window, and those of the stretches on both sides of it.
func cover(bs []bin, xs []float64, low, high, width float64) []bin {
	if high <= low {
		return bs
	}
	if len(xs) == 0 || high-low <= width*slack {
		return append(bs, bin{low, high, len(xs)})
	}
	center := densest(xs, width)
	left, right := center-width/2, center+width/2
	if left <= low+width*sliver {
		left = low
	}
	if right >= high-width*sliver {
		right = high
	}
	from, to := sort.SearchFloat64s(xs, left), sort.SearchFloat64s(xs, right)
	if from == to { // rounding moved the edges past a single value
		return append(bs, bin{low, high, len(xs)})
	}
	bs = cover(bs, xs[:from], low, left, width)
	bs = append(bs, bin{left, right, to - from})
	return cover(bs, xs[to:], right, high, width)
}

// densest returns the middle of the window narrower than width that holds the
// most values. Of several such windows it chooses the narrowest.
func densest(xs []float64, width float64) float64 {
	center, most, tightest := xs[0], 0, math.Inf(1)
	j := 0
	for i := range xs {
		for j < len(xs) && xs[j]-xs[i] < width {
			j++
		}
		if n, size := j-i, xs[j-1]-xs[i]; n > most || n == most && size < tightest {
			center, most, tightest = (xs[i]+xs[j-1])/2, n, size
		}
	}
	return center
}

// joinSlim joins every bin narrower than least to the narrower of its neighbours.
func joinSlim(bs []bin, least float64) []bin {
	for i := 0; i < len(bs) && len(bs) > 1; {
		if bs[i].high-bs[i].low >= least {
			i++
			continue
		}
		at := i // joins bs[at] and bs[at+1]
		if i == len(bs)-1 || i > 0 && bs[i-1].high-bs[i-1].low < bs[i+1].high-bs[i+1].low {
			at = i - 1
		}
		bs[at] = bin{bs[at].low, bs[at+1].high, bs[at].count + bs[at+1].count}
		bs = append(bs[:at+1], bs[at+2:]...)
		i = at
	}
	return bs
}

// steps is the m-value of bs: the sum of the absolute differences between
// neighbouring bins, with an empty bin at either end, over the count of the fullest.
func steps(bs []bin) float64 {
	sum, highest, before := 0, 0, 0
	for _, b := range bs {
		sum += max(b.count-before, before-b.count)
		highest, before = max(highest, b.count), b.count
	}
	return float64(sum+before) / float64(highest)
}
