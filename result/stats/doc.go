// Package stats holds the statistics that reports and comparisons are made of.
// It knows nothing of messages or brokers: samples are []float64 in any unit,
// and nothing is rounded.
//
// The package is opinionated. Times of a load test are not normal: they have a
// floor, a long tail on the right, and often more than one mode. So the
// functions here look at ranks and quantiles where they can, and take a mean
// only where a table must show one.
//
// To describe one sample, sort it once and ask for quantiles, for the values
// outside of Tukey's fences, and for signs of a second mode:
//
//	sorted := slices.Sorted(slices.Values(times))
//	median := stats.Quantile(sorted, 0.5)
//	_, _, stalls := stats.Outliers(sorted)
//	if len(sorted) >= stats.MValueMinSamples && stats.MValue(sorted) > stats.MValueBimodal {
//		// The median describes neither of the two modes.
//	}
//
// To compare two samples, use MannWhitney for the decision and a confidence
// interval of the same ranks for the size of the difference. RankTests keeps
// the exact distributions, which many cells of a table share:
//
//	var tests stats.RankTests
//	test := tests.MannWhitney(before, after)
//	ratio := tests.Ratio(before, after, 0.95)
//	fmt.Printf("%.3fx (%.3f to %.3f), p=%.3g\n", ratio.Estimate, ratio.Low, ratio.High, test.P)
//
// Where only a mean and a standard deviation survived, as in a published table,
// use Welch and MeanRatio. Several comparisons at once need Holm: of twenty
// equal pairs, one differs at 5 % by chance.
//
// The package does not choose between tests, decide whether a difference is large
// enough to matter, or discard outliers: those decisions are the caller's. It has
// no test for normality, which small samples always pass and large ones never.
package stats
