package result

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// notice adds warnings about the files that are not a reason to refuse them.
func (c *comparer) notice(base, head []*Input) {
	for _, b := range base {
		for _, h := range head {
			c.noticeSame(b, h)
			if !b.Started.IsZero() && h.Started.Before(b.Started) && !h.Started.IsZero() {
				c.warn(CodeSwapped, fmt.Sprintf("the head %s is older than the base %s", h.Source, b.Source),
					"give the older run first, otherwise faster and slower are swapped")
			}
		}
	}
	files := slices.Concat(base, head)
	var unknown []string
	for _, in := range files {
		if in.Status != "" && in.Status != StatusComplete {
			c.warn(CodePartialRun, fmt.Sprintf("the run of %s is %s", in.Source, in.Status), "run it again to the end")
		}
		if in.Environment.CPU == "" {
			unknown = append(unknown, in.Source)
		}
	}
	if len(unknown) > 0 && c.acrossKey == "" {
		c.warn(CodeUnknownHost, "no machine is named in "+strings.Join(unknown, ", ")+": it is unknown whether the conditions were the same",
			"compare JSON reports, which name the machine")
	}
	c.noticeMinor(files)
}

func (c *comparer) warn(code, message, hint string) {
	c.out.Warnings = append(c.out.Warnings, Warning{code, message, hint})
}

func (c *comparer) noticeSame(b, h *Input) {
	if sameFile(b, h) {
		c.warn(CodeSameFile, fmt.Sprintf("%s and %s are the same run", b.Source, h.Source), "compare two runs")
	}
}

func sameFile(a, b *Input) bool {
	return a.RunID != "" && a.RunID == b.RunID || a.Digest != "" && a.Digest == b.Digest
}

// noticeOneLaunch warns of significant differences that are based on one launch per side.
// The iterations of a launch share its luck, so variation from run to run cannot be told
// from the effect of a change.
func (c *comparer) noticeOneLaunch() {
	n := 0
	for _, cell := range c.out.Cells {
		if cell.Significant && cell.Base.Launches == 1 && cell.Head.Launches == 1 {
			n++
		}
	}
	if n > 0 && c.acrossKey == "" {
		c.warn(CodeOneLaunch, fmt.Sprintf("%d significant cells are based on one launch per side: the variation from launch to launch is unknown", n),
			"measure with --launches 5 or more, or pool several files per side, measured in turns")
	}
}

// noticeMinor warns of versions that may matter and mostly do not.
func (c *comparer) noticeMinor(files []*Input) {
	for _, k := range []struct {
		name string
		of   func(*Report) string
	}{
		{"kernel", func(r *Report) string { return r.Environment.Kernel }},
		{"Go version", func(r *Report) string { return r.Tool.Go }},
	} {
		var seen []string
		for _, in := range files {
			if in.Report != nil && k.of(in.Report) != "" && !slices.Contains(seen, k.of(in.Report)) {
				seen = append(seen, k.of(in.Report))
			}
		}
		if len(seen) > 1 {
			c.warn(CodeUnlike, fmt.Sprintf("the %s differs: %s", k.name, strings.Join(seen, ", ")), "it may be the cause of a change")
		}
	}
}

// latencyDeltas compares the percentiles of every histogram that both sides have.
func latencyDeltas(b, h *side) ([]LatencyDelta, error) {
	base, err := mergedLatency(b.latency)
	if err != nil {
		return nil, err
	}
	head, err := mergedLatency(h.latency)
	if err != nil {
		return nil, err
	}
	var deltas []LatencyDelta
	heads := head.All()
	for i, leg := range base.All() {
		if leg.Histogram == nil || heads[i].Histogram == nil {
			continue
		}
		x, y := leg.Histogram, heads[i].Histogram
		for _, q := range []struct {
			name string
			b, h int64
		}{{"p50", x.P50NS, y.P50NS}, {"p90", x.P90NS, y.P90NS}, {"p99", x.P99NS, y.P99NS}, {"p99.9", x.P999NS, y.P999NS}} {
			d := LatencyDelta{Leg: leg.Name, Quantile: q.name, BaseNS: q.b, HeadNS: q.h}
			// A histogram holds nothing below 1 ns.
			d.Ratio = float64(max(q.h, 1)) / float64(max(q.b, 1))
			deltas = append(deltas, d)
		}
	}
	return deltas, nil
}

// moreThanBefore is the factor by which a share that was not 0 must grow to be worse:
// a lossy link never loses the same share twice.
const moreThanBefore = 2

// deliveryChanges lists the counts of the delivery account that changed.
func deliveryChanges(b, h *side) []DeliveryChange {
	changes := []DeliveryChange{}
	if b.delivery == nil || h.delivery == nil {
		return changes
	}
	x, y := b.delivery, h.delivery
	for _, k := range []struct {
		name           string
		b, bOf, h, hOf int64
		contract       bool // MQTT, or the run itself, promised the head that there is none
	}{
		{"lost", x.Lost, x.Expected, y.Lost, y.Expected, h.broke(BreachLost)},
		{"duplicated", x.Duplicated, x.Received, y.Duplicated, y.Received, h.broke(BreachDuplicated)},
		{"corrupted", x.Corrupted, x.Delivered, y.Corrupted, y.Delivered, true},
		{"rejected", x.Nacked, x.Sent, y.Nacked, y.Sent, true},
		{"unsent", x.Unsent, x.Scheduled, y.Unsent, y.Scheduled, true},
		{"reordered", x.Reordered, x.Delivered, y.Reordered, y.Delivered, false},
		{"late", x.Late, x.Expected, y.Late, y.Expected, false},
		{"clients lost", b.clients.Lost, b.clients.Planned, h.clients.Lost, h.clients.Planned, false},
	} {
		if k.b == 0 && k.h == 0 {
			continue
		}
		d := DeliveryChange{Name: k.name, Base: k.b, BaseOf: k.bOf, Head: k.h, HeadOf: k.hOf}
		d.Regression = k.contract && worse(k.b, k.bOf, k.h, k.hOf)
		d.Message = d.text(h.qos)
		changes = append(changes, d)
	}
	return changes
}

// broke reports whether a file of s broke the contract in that way.
func (s *side) broke(kind BreachKind) bool {
	return slices.ContainsFunc(s.broken, func(b Breach) bool { return b.Kind == kind })
}

// worse reports whether h of hOf is a new fault, or at least twice the share.
func worse(b, bOf, h, hOf int64) bool {
	switch {
	case h == 0:
		return false
	case b == 0:
		return true
	}
	return share(h, hOf) >= moreThanBefore*share(b, bOf)
}

func share(n, of int64) float64 { return float64(n) / float64(max(of, 1)) }

func (d *DeliveryChange) text(qos *byte) string {
	what := ""
	switch {
	case d.Base == 0:
		what = "new: "
	case d.Head == 0:
		what = "gone: "
	}
	at := ""
	if qos != nil {
		at = fmt.Sprintf(" at QoS %d", *qos)
	}
	return fmt.Sprintf("%s%s%s %s of %s (%s), was %s (%s)", what, d.Name, at, FormatInt(d.Head), FormatInt(d.HeadOf),
		Percent(d.Head, d.HeadOf), FormatInt(d.Base), Percent(d.Base, d.BaseOf))
}

func sqrtOver(x float64, n int) float64 {
	if n < 1 {
		return 0
	}
	return math.Sqrt(x / float64(n))
}
