package stats

import (
	"math"
	"slices"
	"sort"
)

// ExactLimit is the largest sample for which the Mann-Whitney distribution is
// computed exactly. Beyond it the normal approximation is accurate enough.
const ExactLimit = 50

// RankTest is the result of a two-sided Mann-Whitney U test.
type RankTest struct {
	U     float64 // number of pairs with y > x; a pair of equal values counts as a half
	P     float64 // two-sided: twice the smaller tail, at most 1
	Exact bool    // false: P is the normal approximation
	// LeastP is the smallest P that two samples of these sizes can have.
	LeastP float64
}

// MannWhitney is RankTests.MannWhitney for a single test.
func MannWhitney(x, y []float64) RankTest { return new(RankTests).MannWhitney(x, y) }

// RankTests runs rank tests. It keeps the distributions that it has computed, by
// the sizes of the samples, because most cells of a table share them. The zero
// value is ready to use, by one goroutine at a time.
type RankTests struct{ bySizes map[[2]int][]float64 }

// distribution is P(U = u) for u = 0..m*n of samples of m and n values without
// ties, by Mann and Whitney's recurrence. It only adds positive terms, so no digits
// are lost.
func (t *RankTests) distribution(m, n int) []float64 {
	if d, ok := t.bySizes[[2]int{m, n}]; ok {
		return d
	}
	// row[j] is the distribution for i and j; i counts up.
	row := make([][]float64, n+1)
	for j := range row {
		row[j] = []float64{1}
	}
	for i := 1; i <= m; i++ {
		row[0] = []float64{1}
		for j := 1; j <= n; j++ {
			p := make([]float64, i*j+1)
			first, second := float64(i)/float64(i+j), float64(j)/float64(i+j)
			for u, v := range row[j] { // i-1, j: the largest value is in the first sample
				p[u+j] += first * v
			}
			for u, v := range row[j-1] { // i, j-1: it is in the second
				p[u] += second * v
			}
			row[j] = p
		}
	}
	if t.bySizes == nil {
		t.bySizes = map[[2]int][]float64{}
	}
	t.bySizes[[2]int{m, n}] = row[n]
	return row[n]
}

// MannWhitney tests whether values of y tend to be larger or smaller than values
// of x. Neither may be empty. Up to ExactLimit values a side P is exact, with or
// without ties; beyond, it is the normal approximation with corrections for ties
// and continuity. Mann and Whitney, On a Test of Whether one of Two Random Variables
// is Stochastically Larger than the Other, 1947.
func (t *RankTests) MannWhitney(x, y []float64) RankTest {
	m, n := len(x), len(y)
	ranks, ties := doubledRanks(x, y)
	sum := 0
	for _, r := range ranks[m:] {
		sum += r
	}
	test := RankTest{U: float64(sum)/2 - float64(n)*float64(n+1)/2}
	test.LeastP = min(1, 2/binomial(m+n, n))
	if m > ExactLimit || n > ExactLimit {
		test.P = normalRankP(test.U, m, n, ties)
		return test
	}
	test.Exact = true
	if len(ties) == 0 {
		test.P = twoTails(t.distribution(m, n), int(test.U))
	} else {
		test.P = tiedP(ranks, n, sum)
	}
	return test
}

// doubledRanks returns twice the midranks of the values of x, then of y, and the
// sizes of the groups of equal values. Doubled midranks are whole numbers.
func doubledRanks(x, y []float64) (ranks []int, ties []int) {
	all := slices.Concat(x, y)
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(a, b int) bool { return all[order[a]] < all[order[b]] })
	ranks = make([]int, len(all))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && all[order[j]] == all[order[i]] {
			j++
		}
		if j-i > 1 {
			ties = append(ties, j-i)
		}
		for _, k := range order[i:j] {
			ranks[k] = i + 1 + j // (i+1) + j, twice the mean of ranks i+1..j
		}
		i = j
	}
	return ranks, ties
}

// twoTails doubles the smaller tail of the distribution p at u.
func twoTails(p []float64, u int) float64 {
	low, high := 0.0, 0.0
	for i, v := range p {
		if i <= u {
			low += v
		}
		if i >= u {
			high += v
		}
	}
	return min(1, 2*min(low, high))
}

// tiedP is the exact two-sided P of the sum of n of the doubled ranks if every
// choice of n is equally likely. It counts the choices by their size and sum.
func tiedP(ranks []int, n, sum int) float64 {
	sorted := slices.Sorted(slices.Values(ranks))
	top := 0
	for _, r := range sorted[len(sorted)-n:] {
		top += r
	}
	ways := make([][]float64, n+1) // ways[k][s]: choices of k ranks with the sum s
	for k := range ways {
		ways[k] = make([]float64, top+1)
	}
	ways[0][0] = 1
	for i, r := range ranks {
		for k := min(n, i+1); k >= 1; k-- {
			from, to := ways[k-1], ways[k]
			for s := top; s >= r; s-- {
				to[s] += from[s-r]
			}
		}
	}
	total := binomial(len(ranks), n)
	for s := range ways[n] {
		ways[n][s] /= total
	}
	return twoTails(ways[n], sum)
}

// binomial is n over k.
func binomial(n, k int) float64 {
	b := 1.0
	for i := 1; i <= min(k, n-k); i++ {
		b = b * float64(n-min(k, n-k)+i) / float64(i)
	}
	return b
}

// normalRankP is the normal approximation of P, corrected for ties and continuity.
func normalRankP(u float64, m, n int, ties []int) float64 {
	sd := rankSD(m, n, ties)
	if sd == 0 {
		return 1 // all values are equal
	}
	mean := float64(m) * float64(n) / 2
	z := max(0, math.Abs(u-mean)-0.5) / sd
	return math.Erfc(z / math.Sqrt2)
}

// rankSD is the standard deviation of U.
func rankSD(m, n int, ties []int) float64 {
	size := float64(m + n)
	tied := 0.0
	for _, t := range ties {
		f := float64(t)
		tied += f*f*f - f
	}
	v := float64(m) * float64(n) / 12 * (size + 1 - tied/(size*(size-1)))
	return math.Sqrt(max(v, 0))
}
