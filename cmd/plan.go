package cmd

import (
	"fmt"
	"slices"
	"time"

	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// spareDescriptors is what the process needs besides its connections: standard
// files, report files, listeners, the poller.
const spareDescriptors = 64

// descriptors is how many files the hungriest case keeps open. Towards the
// embedded broker both ends of a connection are in this process.
func descriptors(cases []scenarios.Case, embedded bool) uint64 {
	most := 0
	for _, c := range cases {
		most = max(most, connections(c))
	}
	if embedded {
		most *= 2
	}
	return uint64(most) + spareDescriptors
}

func connections(c scenarios.Case) int {
	if c.Load.Shape == scenarios.Loopback {
		return c.Load.Pairs
	}
	return 2 * c.Load.Pairs
}

// checkDescriptors refuses a run that would end in "too many open files".
func checkDescriptors(cases []scenarios.Case, embedded bool, limit uint64, bad *faults) {
	if need := descriptors(cases, embedded); limit > 0 && need > limit {
		bad.usage("raise the limit with ulimit -n, or ask for fewer --pairs", "this needs %s open files and the limit is %s",
			result.FormatInt(int64(need)), result.FormatInt(int64(limit)))
	}
}

// planLine says what is going to happen: "18 cases x 1 launch x (3 warm-up + 15)
// iterations, 1 publisher + 1 subscriber per case, window 100, about 1m15s".
func planLine(cases []scenarios.Case) string {
	load := func(f func(scenarios.Load) int) string {
		return span(cases, func(c scenarios.Case) int { return f(c.Load) })
	}
	launches := load(func(l scenarios.Load) int { return l.Launches })
	word := "launches"
	if launches == "1" {
		word = "launch"
	}
	line := fmt.Sprintf("plan: %s x %s %s x (%s warm-up + %s) iterations, %s, window %s",
		plural(len(cases), "case"), launches, word,
		load(func(l scenarios.Load) int { return l.Warmup }), load(func(l scenarios.Load) int { return l.Iterations }),
		who(cases), load(func(l scenarios.Load) int { return l.Inflight }))
	if d := estimate(cases); d > 0 {
		line += ", about " + d.String()
	}
	return line
}

// span is a figure over the cases: "100", or "10-1000" where they differ.
func span(cases []scenarios.Case, f func(scenarios.Case) int) string {
	low, high := f(cases[0]), f(cases[0])
	for _, c := range cases {
		low, high = min(low, f(c)), max(high, f(c))
	}
	if low == high {
		return result.FormatInt(int64(low))
	}
	return result.FormatInt(int64(low)) + "-" + result.FormatInt(int64(high))
}

func who(cases []scenarios.Case) string {
	n := span(cases, func(c scenarios.Case) int { return c.Load.Pairs })
	s := "s"
	if n == "1" {
		s = ""
	}
	if cases[0].Load.Shape == scenarios.Loopback {
		return fmt.Sprintf("%s client%s that publish and subscribe per case", n, s)
	}
	return fmt.Sprintf("%[1]s publisher%[2]s + %[1]s subscriber%[2]s per case", n, s)
}

// warmupShare is the part of an iteration's time that the engine gives to a
// warm-up one.
const warmupShare = 0.4

// estimate is how long the iterations take that are sized by time, 0 where any
// is sized by a number of messages: how long those take is to be found out.
func estimate(cases []scenarios.Case) time.Duration {
	var sum time.Duration
	for _, c := range cases {
		if c.Load.Messages > 0 {
			return 0
		}
		iterations := warmupShare*float64(c.Load.Warmup) + float64(c.Load.Iterations)
		sum += time.Duration(float64(c.Load.Launches) * iterations * float64(c.Load.MinTime))
	}
	return max(sum.Round(time.Second), time.Second)
}

// firstURL is the report's target until a connection tells more.
func firstURL(cases []scenarios.Case) string {
	if i := slices.IndexFunc(cases, func(c scenarios.Case) bool { return len(c.Target.URLs) > 0 }); i >= 0 {
		return cases[i].Target.URLs[0].String()
	}
	return ""
}
