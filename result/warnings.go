package result

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/result/stats"
)

const (
	// minIterationNS is the mean time of an iteration below which the clock and
	// the scheduler weigh too much, as BenchmarkDotNet's MinIterationTime.
	minIterationNS = 100e6

	// outlierMinSamples is the fewest samples whose quartiles say anything.
	outlierMinSamples = 5

	// An iteration is called stalled if it is beyond the upper fence, at least
	// stallFactor medians long, and stallExcessNS longer than the median explains: then
	// something waited, rather than worked slowly.
	stallFactor   = 3
	stallExcessNS = 100e6

	// steadyShare is how far from the median a window of a kept rate may be and still count
	// as like the others: a few messages on one side or the other of its end.
	steadyShare = 0.01

	// outliersListed is how many outliers a message names.
	outliersListed = 5
)

// Analyze returns the warnings that follow from c alone: from its iterations, latencies
// and account. Their order is that of the codes; nil is none.
func Analyze(c Case) []Warning {
	xs := samples(c.Iterations)
	if len(xs) == 0 {
		return slices.Concat(zeroMeasurement(c), ledger(c), clientsMissing(c))
	}
	sorted := slices.Sorted(slices.Values(xs))
	var ws []Warning
	ws = append(ws, zeroMeasurement(c)...)
	ws = append(ws, minIterationTime(c)...)
	stalls := stalled(c, sorted)
	ws = append(ws, stalls...)
	ws = append(ws, outliers(c, sorted)...)
	ws = append(ws, multimodal(sorted)...)
	ws = append(ws, generatorLimited(c)...)
	ws = append(ws, closedLoopStall(c)...)
	ws = append(ws, latencyClamped(c)...)
	ws = append(ws, ledger(c)...)
	return append(ws, clientsMissing(c)...)
}

func actual(its []Iteration) []Iteration {
	var as []Iteration
	for _, it := range its {
		if it.Stage == StageActual {
			as = append(as, it)
		}
	}
	return as
}

func zeroMeasurement(c Case) []Warning {
	as := actual(c.Iterations)
	zero := 0
	for _, it := range as {
		if it.Operations <= 0 || it.ElapsedNS <= 0 {
			zero++
		}
	}
	w := Warning{Code: CodeZeroMeasurement, Hint: "look at the errors and the delivery account before the times"}
	switch {
	case len(as) == 0:
		w.Message = "nothing was measured: no iteration ran"
	case zero > 0:
		w.Message = fmt.Sprintf("%d of %d iterations completed no operation and are not in the statistics", zero, len(as))
	default:
		return nil
	}
	return []Warning{w}
}

func minIterationTime(c Case) []Warning {
	as := actual(c.Iterations)
	total := 0.0
	for _, it := range as {
		total += float64(it.ElapsedNS)
	}
	mean := total / float64(len(as))
	if mean >= minIterationNS {
		return nil
	}
	hint := "raise --messages, or leave it out so that iterations are sized by time"
	if c.Delivery.Scheduled == 0 && c.Delivery.Received == 0 {
		hint = "raise --idle: an iteration is the time that the connections take"
	}
	return []Warning{{
		Code: CodeMinIterationTime,
		Message: fmt.Sprintf("iterations take %s on average: below %s the numbers are not steady",
			FormatNS(mean), FormatNS(minIterationNS)),
		Hint: hint,
	}}
}

// stalled finds iterations that take a multiple of the usual time, and says what the mean
// is without them.
func stalled(c Case, sorted []float64) []Warning {
	var found []Iteration
	var others, all []float64
	for _, it := range actual(c.Iterations) {
		if it.Operations <= 0 || it.ElapsedNS <= 0 {
			if it.Stalled {
				found = append(found, it)
			}
			continue
		}
		x := float64(it.ElapsedNS) / float64(it.Operations)
		all = append(all, x)
		if it.Stalled || isStall(it, x, sorted) {
			found = append(found, it)
		} else {
			others = append(others, x)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return []Warning{{
		Code:    CodeStalled,
		Message: stallMessage(found, others, all, len(actual(c.Iterations))),
		Hint:    "a stall is a lost packet, a retry timer or a pause of the host: look at the timeline, and read the median",
	}}
}

func isStall(it Iteration, x float64, sorted []float64) bool {
	if len(sorted) < outlierMinSamples {
		return false
	}
	f := stats.TukeyFences(sorted)
	excess := (x - f.Median) * float64(it.Operations)
	return x > f.Upper && x >= stallFactor*f.Median && excess >= stallExcessNS
}

func stallMessage(found []Iteration, others, all []float64, n int) string {
	longest := slices.MaxFunc(found, func(a, b Iteration) int { return int(min(max(a.ElapsedNS-b.ElapsedNS, -1), 1)) })
	m := fmt.Sprintf("%d of %d iterations stalled: iteration %d of launch %d took %s for %s operations",
		len(found), n, longest.Index, longest.Launch, FormatNS(float64(longest.ElapsedNS)), FormatInt(longest.Operations))
	if len(others) == 0 || len(others) == len(all) {
		return m
	}
	return m + fmt.Sprintf("; the mean is %s, without it %s", FormatNS(stats.Mean(all)), FormatNS(stats.Mean(others)))
}

// outliers names the iterations beyond Tukey's fences. At a kept rate every window takes
// almost the same time, so those near the median are left out.
func outliers(c Case, sorted []float64) []Warning {
	if len(sorted) < outlierMinSamples {
		return nil
	}
	low, _, high := stats.Outliers(sorted)
	far := slices.Concat(low, high)
	if c.Offered != nil && c.RateKept() {
		median := stats.TukeyFences(sorted).Median
		far = slices.DeleteFunc(far, func(x float64) bool { return math.Abs(x-median) <= steadyShare*median })
	}
	n := len(far)
	if n == 0 {
		return nil
	}
	verb := "outliers were"
	if n == 1 {
		verb = "outlier was"
	}
	return []Warning{{
		Code:    CodeOutliers,
		Message: fmt.Sprintf("%d %s detected (%s)", n, verb, listNS(far)),
		Hint:    "outliers are kept in all statistics: if there are many, the median says more than the mean",
	}}
}

func listNS(xs []float64) string {
	var parts []string
	for _, x := range xs[:min(len(xs), outliersListed)] {
		parts = append(parts, FormatNS(x))
	}
	if more := len(xs) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

func multimodal(sorted []float64) []Warning {
	if len(sorted) < stats.MValueMinSamples {
		return nil
	}
	m := stats.MValue(sorted)
	var kind string
	switch {
	case m > stats.MValueMultimodal:
		kind = "is multimodal"
	case m > stats.MValueBimodal:
		kind = "is bimodal"
	case m > stats.MValueSeveralModes:
		kind = "may have several modes"
	default:
		return nil
	}
	return []Warning{{
		Code:    CodeMultimodal,
		Message: fmt.Sprintf("the distribution of the iterations %s (mValue = %.2f)", kind, m),
		Hint:    "one mean of several modes describes none of them: look for launches, cores or broker states that differ",
	}}
}

func generatorLimited(c Case) []Warning {
	if c.Bottleneck == nil || c.Bottleneck.Kind != "generator" {
		return nil
	}
	return []Warning{{
		Code:    CodeGeneratorLimited,
		Message: "the load generator was the limit, not the broker: " + c.Bottleneck.Detail,
		Hint:    "give the generator more cores, or run it on another machine than the broker",
	}}
}

func latencyClamped(c Case) []Warning {
	clamped := int64(0)
	for _, h := range c.Latency.All() {
		if h.Histogram != nil {
			clamped += h.Histogram.Clamped
		}
	}
	if clamped == 0 {
		return nil
	}
	return []Warning{{
		Code: CodeLatencyClamped,
		Message: fmt.Sprintf("%s latencies were outside of %s to %s and count at the edge",
			FormatInt(clamped), FormatNS(minLatencyNS), FormatNS(MaxLatencyNS)),
		Hint: "percentiles at the edge are bounds, not measurements",
	}}
}

func ledger(c Case) []Warning {
	if err := c.Delivery.Check(); err != nil {
		return []Warning{{Code: CodeLedger, Message: err.Error(), Hint: "this is a fault of the tool: please report it with the report file"}}
	}
	return nil
}

// clientsMissing finds a case that was measured with fewer clients than planned.
func clientsMissing(c Case) []Warning {
	never, lost := c.Clients.Planned-c.Clients.Connected, c.Clients.Lost-c.Clients.Reconnects
	var parts []string
	if never > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s clients did not connect", FormatInt(never), FormatInt(c.Clients.Planned)))
	}
	if lost > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s clients were lost", FormatInt(lost), FormatInt(c.Clients.Connected)))
	}
	if parts == nil {
		return nil
	}
	message := strings.Join(parts, ", ")
	if c.Clients.Connected > lost {
		message += ": the row was measured without them"
	}
	return []Warning{{
		Code:    CodeClientsMissing,
		Message: message,
		Hint:    "the errors say why; do not compare this row with a complete one",
	}}
}
