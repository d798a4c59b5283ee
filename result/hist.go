package result

import (
	"errors"
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The one histogram geometry of the program: with a single geometry a merge can
// drop nothing. A dense histogram of it takes 270,404 bytes, so keep one per
// core or connection group, not one per client.
const (
	minLatencyNS      = 1
	MaxLatencyNS      = 3_600_000_000_000 // one hour
	significantDigits = 3
)

// errGeometry says that a histogram was recorded with another range or
// precision than NewHDR's, so that merging could lose values.
var errGeometry = errors.New("other histogram geometry")

// errNoHistogram says that a summary carries no histogram.
var errNoHistogram = errors.New("no histogram")

// NewHDR returns an empty histogram of the program's geometry: 1 ns to 1 h with
// 3 significant digits, 270 KB. It is not safe for concurrent use.
func NewHDR() *hdrhistogram.Histogram {
	return hdrhistogram.New(minLatencyNS, MaxLatencyNS, significantDigits)
}

// Record counts the value v, in nanoseconds, n times in h, a histogram made by
// NewHDR. A value outside of 1 ns to 1 h is recorded at the nearer edge and
// true is returned: the caller counts these in Histogram.Clamped, because a
// percentile at the edge is then a bound and not a measurement. n <= 0 does nothing.
func Record(h *hdrhistogram.Histogram, v, n int64) (clamped bool) {
	if n <= 0 {
		return false
	}
	in := min(max(v, minLatencyNS), MaxLatencyNS)
	// The only error left is a total beyond MaxInt64, 292 years at 1e9 per second.
	return h.RecordValues(in, n) != nil || in != v
}

// NewHistogram summarises h and encodes it whole; nil if h is nil or empty.
// The percentiles are the smallest recorded value that at least that share of
// the values does not exceed (nearest rank, as HdrHistogram for Java), to 3 digits.
func NewHistogram(h *hdrhistogram.Histogram) *Histogram {
	if h == nil || h.TotalCount() == 0 {
		return nil
	}
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		// Encoding writes to memory and cannot fail for a valid histogram; an
		// empty HDR is refused by Decode, never read as "no values".
		encoded = nil
	}
	n := h.TotalCount()
	at := func(perTenThousand int64) int64 { return valueAtRank(h, rankOf(n, perTenThousand)) }
	return &Histogram{
		Count: n, MinNS: h.Min(), MeanNS: h.Mean(),
		P50NS: at(5000), P90NS: at(9000), P99NS: at(9900), P999NS: at(9990), P9999NS: at(9999),
		MaxNS: at(10000), HDR: string(encoded),
	}
}

// rankOf is ceil(n * share / 10000) without overflow, at least 1.
func rankOf(n, share int64) int64 {
	const whole = 10_000
	return max(1, n/whole*share+(n%whole*share+whole-1)/whole)
}

// valueAtRank returns the value of rank r in 1..count, capped at the range's end.
func valueAtRank(h *hdrhistogram.Histogram, r int64) int64 {
	// The library takes int(p/100*n + 0.5) as rank; aim at the middle of r.
	p := 100 * (float64(r) - 0.25) / float64(h.TotalCount())
	return min(h.ValueAtPercentile(p), MaxLatencyNS)
}

// Decode returns the full histogram that h carries. The error says that there is
// none, that it has another geometry, that its encoding is damaged, or that its count
// differs.
func (h *Histogram) Decode() (*hdrhistogram.Histogram, error) {
	if h == nil || h.HDR == "" {
		return nil, fmt.Errorf("decode histogram: %w", errNoHistogram)
	}
	full, err := hdrhistogram.Decode([]byte(h.HDR))
	if err != nil {
		return nil, fmt.Errorf("decode histogram: %w", err)
	}
	if full.LowestTrackableValue() != minLatencyNS || full.HighestTrackableValue() != MaxLatencyNS ||
		full.SignificantFigures() != significantDigits {
		return nil, fmt.Errorf("decode histogram: %w: %d..%d ns with %d digits, want %d..%d ns with %d", errGeometry,
			full.LowestTrackableValue(), full.HighestTrackableValue(), full.SignificantFigures(),
			minLatencyNS, MaxLatencyNS, significantDigits)
	}
	if full.TotalCount() != h.Count {
		return nil, fmt.Errorf("decode histogram: it holds %d values but its summary says %d", full.TotalCount(), h.Count)
	}
	return full, nil
}

// mergeHistograms adds the buckets of all hs that are not nil; nil for none.
// It fails where one cannot be decoded or a single value would be dropped.
func mergeHistograms(hs ...*Histogram) (*Histogram, error) {
	sum, clamped := NewHDR(), int64(0)
	for _, h := range hs {
		if h == nil {
			continue
		}
		full, err := h.Decode()
		if err != nil {
			return nil, fmt.Errorf("merge histograms: %w", err)
		}
		if dropped := sum.Merge(full); dropped != 0 {
			return nil, fmt.Errorf("merge histograms: %d of %d values do not fit", dropped, h.Count)
		}
		clamped += h.Clamped
	}
	merged := NewHistogram(sum)
	if merged != nil {
		merged.Clamped = clamped
	}
	return merged, nil
}

// NamedHistogram is one histogram of Latency under its JSON name.
type NamedHistogram struct {
	Name      string // "end_to_end"
	Histogram *Histogram
}

// All returns the histograms of l, nil ones included, in the order of the file format.
func (l Latency) All() []NamedHistogram {
	fields := l.fields()
	all := make([]NamedHistogram, len(fields))
	for i, f := range fields {
		all[i] = NamedHistogram{f.name, *f.at}
	}
	return all
}

type latencyField struct {
	name string
	at   **Histogram
}

func (l *Latency) fields() []latencyField {
	return []latencyField{
		{"end_to_end", &l.EndToEnd}, {"service", &l.Service}, {"send_lag", &l.SendLag}, {"ack", &l.Ack},
		{"pubrec", &l.Pubrec}, {"connect", &l.Connect}, {"tls_handshake", &l.TLSHandshake},
		{"connack", &l.Connack}, {"subscribe", &l.Subscribe},
		{"dns", &l.DNS}, {"tls_resumed", &l.TLSResumed}, {"reconnect", &l.Reconnect}, {"reauth", &l.Reauth},
	}
}

// mergedLatency adds the histograms of several files; those of one stay as they are.
func mergedLatency(parts []Latency) (sum Latency, err error) {
	if len(parts) == 1 {
		return parts[0], nil
	}
	for i, f := range sum.fields() {
		var all []*Histogram
		for _, p := range parts {
			all = append(all, *p.fields()[i].at)
		}
		if *f.at, err = mergeHistograms(all...); err != nil {
			return sum, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return sum, nil
}
