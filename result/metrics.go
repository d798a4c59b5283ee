package result

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// dimension is what a metric measures, and so which units its limits take.
type dimension string

// Dimensions.
const (
	dimTime  dimension = "time"  // ns, μs, ms, s
	dimBytes dimension = "bytes" // B, KiB, MiB, kB, MB
	dimCount dimension = "count" // k, M
)

// metric is one number of a case, by the names of the report file.
type metric struct {
	path string
	dim  dimension
	of   func(*Case) *float64 // nil if it does not exist
	// whole is the metric that percentages of this one refer to, as in
	// "lost < 0.1 %"; "" for none.
	whole string
}

// shortNames are short names of the metrics that gates mostly use.
var shortNames = map[string]string{
	"p50": "latency.end_to_end.p50_ns", "p90": "latency.end_to_end.p90_ns", "p99": "latency.end_to_end.p99_ns",
	"p999": "latency.end_to_end.p999_ns", "p99.9": "latency.end_to_end.p999_ns",
	"p9999": "latency.end_to_end.p9999_ns", "p99.99": "latency.end_to_end.p9999_ns", "max": "latency.end_to_end.max_ns",
	"mean": "summary.mean_ns", "median": "summary.median_ns", "stddev": "summary.stddev_ns", "error": "summary.error_ns",
	"req_per_sec": "summary.req_per_sec", "messages_per_sec": "summary.messages_per_sec", "bytes_per_sec": "summary.bytes_per_sec",
	"scheduled": "delivery.scheduled", "sent": "delivery.sent", "unsent": "delivery.unsent", "acked": "delivery.acked",
	"nacked": "delivery.nacked", "expected": "delivery.expected", "received": "delivery.received", "delivered": "delivery.delivered",
	"lost": "delivery.lost", "duplicated": "delivery.duplicated", "reordered": "delivery.reordered",
	"corrupted": "delivery.corrupted", "foreign": "delivery.foreign", "late": "delivery.late", "reconnects": "clients.reconnects",
}

// wholes are the metrics that percentages of a metric refer to.
var wholes = map[string]string{
	"delivery.sent": "delivery.scheduled", "delivery.unsent": "delivery.scheduled",
	"delivery.acked": "delivery.sent", "delivery.nacked": "delivery.sent",
	"delivery.delivered": "delivery.expected", "delivery.lost": "delivery.expected", "delivery.late": "delivery.expected",
	"delivery.reordered": "delivery.delivered", "delivery.corrupted": "delivery.delivered", "delivery.duplicated": "delivery.received",
	"clients.connected": "clients.planned", "clients.lost": "clients.planned",
	"summary.stddev_ns": "summary.mean_ns", "summary.error_ns": "summary.mean_ns",
}

// metrics are all numbers of a case by path: those of its structs, as they are
// in JSON, and the sizes of its lists of faults.
var metrics = sync.OnceValue(func() map[string]metric {
	all := map[string]metric{}
	walkNumbers(reflect.TypeFor[Case](), "", nil, func(path string, index []int) {
		all[path] = metric{path: path, dim: dimensionOf(path), whole: wholes[path], of: func(c *Case) *float64 {
			return numberAt(reflect.ValueOf(c).Elem(), index)
		}}
	})
	derived := func(path string, of func(*Case) int64) {
		all[path] = metric{path: path, dim: dimCount, of: func(c *Case) *float64 {
			v := float64(of(c))
			return &v
		}}
	}
	derived("errors", func(c *Case) (n int64) {
		for _, e := range c.Errors {
			n += e.Count
		}
		return n
	})
	derived("warnings", func(c *Case) int64 { return int64(len(c.Warnings)) })
	derived("stalled", func(c *Case) (n int64) {
		for _, it := range actual(c.Iterations) {
			if it.Stalled {
				n++
			}
		}
		return n
	})
	return all
})

// walkNumbers calls found for every number under typ, but not inside lists.
func walkNumbers(typ reflect.Type, prefix string, index []int, found func(string, []int)) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		path, at := strings.TrimPrefix(prefix+"."+name, "."), append(slices.Clone(index), i)
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch inner.Kind() {
		case reflect.Struct:
			walkNumbers(inner, path, at, found)
		case reflect.Int, reflect.Int64, reflect.Float64:
			found(path, at)
		}
	}
}

// numberAt is the number at index in v, nil if a pointer on the way is nil.
func numberAt(v reflect.Value, index []int) *float64 {
	for _, i := range index {
		v = v.Field(i)
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return nil
			}
			v = v.Elem()
		}
	}
	n := numberOf(v)
	return &n
}

func dimensionOf(path string) dimension {
	name := path[strings.LastIndexByte(path, '.')+1:]
	switch {
	case strings.HasSuffix(name, "_ns"):
		return dimTime
	case strings.HasPrefix(name, "bytes"):
		return dimBytes
	}
	return dimCount
}

// metricNames lists what a gate may name: short names first, then every number
// of a case by its place in the report file.
func metricNames() []string { return append(sortedKeys(shortNames), sortedKeys(metrics())...) }

// findMetric resolves a name, a short name, or a leg and a short name: "ack.p99".
func findMetric(name string) (metric, bool) {
	if long, ok := shortNames[name]; ok {
		return metrics()[long], true
	}
	if m, ok := metrics()[name]; ok {
		return m, true
	}
	leg, rest, _ := strings.Cut(name, ".")
	field, ok := strings.CutPrefix(shortNames[rest], "latency.end_to_end.")
	if !ok {
		return metric{}, false
	}
	m, ok := metrics()["latency."+leg+"."+field]
	return m, ok
}
