package result

import (
	"math"
	"sort"
)

// Thresholds of MValue and the fewest samples for which it is judged, as in
// BenchmarkDotNet's multimodality analyser.
const (
	MValueMinSamples   = 15
	MValueSeveralModes = 2.8
	MValueBimodal      = 3.2
	MValueMultimodal   = 4.2
)

const (
	// slack is how much wider than asked a bin may be before it is cut.
	slack = 1.2
	// sliver is the share of the asked width that is not cut off beside a bin.
	sliver = 0.1
	// slim is the share of the asked width below which a bin joins a neighbour.
	slim = 0.5
	// finest times s / n^(1/3) is the narrowest bin.
	finest = 4
)

// MValue measures how many modes the sorted (ascending) samples have: 2 for one
// mode, 4 for two equal ones, 2 per mode beyond; 0 for no samples. It is the sum
// of the steps of a histogram over its highest bin (Brendan Gregg, Frequency
// Trails: Modes and Modality), without Tukey outliers, and the largest over bin
// widths doubling up to the range, as in BenchmarkDotNet. As there, bins are laid
// over the densest stretches first, because the edges of a fixed grid would cut
// modes or bridge gaps by accident.
//
// BenchmarkDotNet's narrowest bin is 1.75 s / n^(1/3); with it more than half of all
// normal samples would be flagged here. From 4 s / n^(1/3) on, 0, 0, 1, 3 and 4 % of normal
// samples of 15, 30, 60, 100 and 150 exceed MValueSeveralModes, and of two modes
// ten deviations apart 0, 47, 100, 100 and 100 % do.
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

// bins lays bins of about the given width over xs.
func bins(xs []float64, width float64) []bin {
	return joinSlim(cover(nil, xs, xs[0]-width/2, xs[len(xs)-1]+width/2, width), width*slim)
}

// cover appends the bins from low to high, which hold xs, to bs: one over the
// densest window, and what is left on both sides in turn.
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
	if from == to { // rounding put the edges beside a lone value
		return append(bs, bin{low, high, len(xs)})
	}
	bs = cover(bs, xs[:from], low, left, width)
	bs = append(bs, bin{left, right, to - from})
	return cover(bs, xs[to:], right, high, width)
}

// densest returns the middle of the window narrower than width that holds the
// most values, of equal ones the tightest.
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

// joinSlim joins every bin narrower than least to its narrower neighbour.
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

// steps is the sum of absolute differences between neighbouring bins, with an
// empty one at either end, over the count of the fullest.
func steps(bs []bin) float64 {
	sum, highest, before := 0, 0, 0
	for _, b := range bs {
		sum += max(b.count-before, before-b.count)
		highest, before = max(highest, b.count), b.count
	}
	return float64(sum+before) / float64(highest)
}
