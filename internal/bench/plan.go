package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// Plan describes the run without running it: the target, the plan, and for each
// case its load and the resources it needs.
func (c *Config) Plan(ctx context.Context) string {
	var b strings.Builder
	embedded := onEmbedded(c.Cases)
	if embedded {
		b.WriteString("target: the embedded broker on loopback\n")
	} else {
		fmt.Fprintln(&b, targetLine(ctx, c.Cases, false))
	}
	fmt.Fprintln(&b, planLine(c.Cases))
	fmt.Fprintf(&b, "needs %s open files of %s\n", result.FormatInt(int64(descriptors(c.Cases, embedded))), result.FormatInt(int64(c.Report.Environment.NoFile)))
	for i, one := range c.Cases {
		width := len(strconv.Itoa(len(c.Cases)))
		fmt.Fprintf(&b, "%*d  %s\n%*s  %s\n", width, i+1, text.Plain(one.ID), width, "", text.Plain(caseLine(one, embedded)))
	}
	return b.String()
}

// planLine describes the run in one line: "18 cases x 1 launch x (3 warm-up + 15)
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
	line := fmt.Sprintf("plan: %s x %s %s x ", text.Count(len(cases), "case"), launches, word)
	if slices.ContainsFunc(cases, func(c scenarios.Case) bool { return unbounded(c.Load) }) {
		line += "until stopped"
	} else {
		line += fmt.Sprintf("(%s warm-up + %s) iterations", load(func(l scenarios.Load) int { return l.Warmup }), load(func(l scenarios.Load) int { return l.Iterations }))
	}
	line += ", " + clients(cases) + " per case"
	if slices.ContainsFunc(cases, func(c scenarios.Case) bool { return c.Load.PublisherClients() > 0 }) {
		line += ", window " + load(func(l scenarios.Load) int { return l.Inflight })
	}
	if d := estimate(cases); d > 0 {
		line += ", about " + d.String()
	}
	return line
}

// unbounded reports whether a load ends only when the user stops it.
func unbounded(l scenarios.Load) bool {
	return l.Duration == 0 && l.Shape.Listens || caseTime(l) >= scenarios.MaxDuration
}

// caseTime is how long a launch takes if it does not end by a number of messages.
func caseTime(l scenarios.Load) time.Duration {
	if l.Duration > 0 {
		return l.Duration
	}
	return time.Duration((scenarios.WarmupShare*float64(l.Warmup) + float64(l.Iterations)) * float64(l.MinTime))
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

// clients counts the clients of the cases, and says at which rate they send.
func clients(cases []scenarios.Case) string {
	offered, shape := offers(cases), cases[0].Load.Shape
	senders := count(cases, shape.Noun, (*scenarios.Load).RateClients)
	if shape.Doing != "" {
		senders += " " + shape.Doing
	}
	switch closed := slices.ContainsFunc(cases, func(c scenarios.Case) bool { return len(c.Load.Stages) == 0 }); {
	case offered != "" && !closed:
		senders = offered
		if shape.Combined {
			senders += ", " + shape.Doing
		}
	case offered != "":
		senders += " (" + offered + ")"
	}
	parts := []string{senders}
	if shape.Doing == "" {
		parts = append(parts, count(cases, "subscriber", (*scenarios.Load).SubscriberClients))
	}
	parts = append(parts, count(cases, "idle client", func(l *scenarios.Load) int { return l.Idle }))
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " + ")
}

// count is "1 publisher", "10-100 publishers", or "" for none.
func count(cases []scenarios.Case, noun string, number func(*scenarios.Load) int) string {
	switch n := span(cases, func(c scenarios.Case) int { return number(&c.Load) }); n {
	case "0":
		return ""
	case "1":
		return "1 " + noun
	default:
		return n + " " + noun + "s"
	}
}

// offers lists the rates of the open loops among the cases, "" if there is none.
func offers(cases []scenarios.Case) string {
	var list []string
	for _, c := range cases {
		if s := offer(c.Load); s != "" && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	if len(list) > 3 {
		list = append(list[:2], "...", list[len(list)-1])
	}
	return strings.Join(list, "; ")
}

// offer says what an open loop sends, in total and per client: "200 publishers x
// 50 msg/s = 10,000 msg/s offered".
func offer(l scenarios.Load) string {
	if len(l.Stages) == 0 {
		return ""
	}
	last := l.Stages[len(l.Stages)-1]
	clients, noun, unit := l.RateClients(), l.Shape.Noun, l.Shape.Unit
	if len(l.Stages) == 1 && last.From == last.To {
		return fmt.Sprintf("%s x %s %s = %s %s offered", text.Count(clients, noun), rate(last.To/float64(clients)), unit, rate(last.To), unit)
	}
	if len(l.Stages) > maxStagesTold {
		return text.Count(clients, noun) + " with a total of " + stagesInBrief(l.Stages, unit)
	}
	parts := make([]string, len(l.Stages))
	for i, st := range l.Stages {
		parts[i] = fmt.Sprintf("%s to %s %s in %s", rate(st.From), rate(st.To), unit, text.Duration(st.Duration))
		if st.From == st.To {
			parts[i] = fmt.Sprintf("%s %s for %s", rate(st.To), unit, text.Duration(st.Duration))
		}
	}
	return text.Count(clients, noun) + " with a total of " + strings.Join(parts, ", ")
}

// maxStagesTold is how many stages a plan lists; it sums up more than that.
const maxStagesTold = 10

// stagesInBrief is "0 to 950 msg/s, mean 120, in 1,000 stages over 10 s".
func stagesInBrief(stages []scenarios.Stage, unit string) string {
	low, high := stages[0].From, stages[0].From
	var sum float64
	var span time.Duration
	for _, st := range stages {
		low, high = min(low, st.From, st.To), max(high, st.From, st.To)
		sum += (st.From + st.To) / 2 * st.Duration.Seconds()
		span += st.Duration
	}
	return fmt.Sprintf("%s to %s %s, mean %s, in %s stages over %s", rate(low), rate(high), unit, rate(sum/span.Seconds()),
		result.FormatInt(int64(len(stages))), text.Duration(span))
}

// rate prints a number per second, with up to three significant digits.
func rate(v float64) string {
	if v == float64(int64(v)) {
		return result.FormatInt(int64(v))
	}
	return strconv.FormatFloat(v, 'g', max(3, len(strconv.Itoa(int(v)))), 64)
}

// estimate is how long the cases take; 0 if any ends by a number of messages, or
// never, because its time is unknown.
func estimate(cases []scenarios.Case) time.Duration {
	var sum time.Duration
	for _, c := range cases {
		if c.Load.Messages > 0 || unbounded(c.Load) {
			return 0
		}
		sum += time.Duration(c.Load.Launches) * caseTime(c.Load)
	}
	return max(sum.Round(time.Second), time.Second)
}

// caseLine is the plan of one case: its clients, what they send, and what the case
// needs.
func caseLine(c scenarios.Case, embedded bool) string {
	n := needsOf(c, embedded)
	line := clients([]scenarios.Case{c})
	if c.Load.PublisherClients() > 0 {
		line += fmt.Sprintf(", %s payload", payloadSize(c.Payload))
		if len(c.Load.Stages) == 0 {
			line += ", window " + result.FormatInt(int64(c.Load.Inflight))
		}
	}
	if keys := c.MQTT5Keys(); keys != nil {
		line += map[bool]string{true: ", with ", false: ", without "}[c.Unsupported() == nil] + strings.Join(keys, " ")
	}
	if n.bytesPerSecond > 0 {
		line += fmt.Sprintf(", %s/s published and %s/s delivered", siBytes(n.bytesPerSecond), siBytes(n.delivered))
	}
	return line + fmt.Sprintf(", needs %s descriptors and about %s of memory", result.FormatInt(int64(n.descriptors)), siBytes(n.memory))
}

func payloadSize(p scenarios.Payload) string {
	if p.Mean() != float64(p.Max()) {
		return fmt.Sprintf("%s (mean %s, at most %s)", p.Name, siBytes(p.Mean()), siBytes(float64(p.Max())))
	}
	return result.FormatInt(int64(p.Size)) + " B"
}
