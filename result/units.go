package result

import (
	"math"

	"github.com/mqttload/mqttload/internal/text"
)

// TimeUnit is a unit in which times are printed.
type TimeUnit struct {
	Name string // "ns", "μs" (with U+03BC), "ms", "s"
	NS   float64
}

// TimeUnits from small to large.
var TimeUnits = []TimeUnit{{"ns", 1}, {"μs", 1e3}, {"ms", 1e6}, {"s", 1e9}}

// UnitFor returns the largest unit in which ns is at least 1, as BenchmarkDotNet
// chooses the unit of a table by its smallest mean; ns for less than that.
func UnitFor(ns float64) TimeUnit {
	unit := TimeUnits[0]
	for _, u := range TimeUnits[1:] {
		if math.Abs(ns) >= u.NS {
			unit = u
		}
	}
	return unit
}

// Decimals is how many decimals BenchmarkDotNet gives a column whose smallest
// absolute value is v: 4 below 1, 3 below 10, 2 below 100, else 1.
func Decimals(v float64) int {
	switch v = math.Abs(v); {
	case v < 1:
		return 4
	case v < 10:
		return 3
	case v < 100:
		return 2
	}
	return 1
}

// FormatNS prints a time in nanoseconds in its own best unit by UnitFor and
// Decimals: "34.91 μs".
func FormatNS(ns float64) string {
	u := UnitFor(ns)
	return FormatFloat(ns/u.NS, Decimals(ns/u.NS)) + " " + u.Name
}

// FormatFloat prints v with thousands separators and fixed decimals: "12,345.68".
func FormatFloat(v float64, decimals int) string { return text.Float(v, decimals) }

// FormatInt prints n with thousands separators: "1,234,567".
func FormatInt(n int64) string { return text.Int(n) }
