package result

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
)

// timeUnits are the units of times, in ns.
var timeUnits = map[string]float64{"ns": 1, "μs": 1e3, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "min": 60e9}

// shownUnits are those that messages offer.
var shownUnits = map[dimension]string{dimTime: "ns, us, ms or s", dimBytes: "B, KiB, MiB, kB or MB, or none", dimCount: "k or M, or none"}

// factorOf returns the factor of a unit, 0 if it is unknown; unit "" is none. The error
// is about a unit with two meanings.
func factorOf(dim dimension, number, unit string) (float64, error) {
	switch dim {
	case dimTime:
		return timeUnits[unit], nil
	case dimCount:
		return text.CountUnit(unit), nil
	}
	n, err := text.SizeUnit(number, unit)
	if errors.Is(err, text.ErrNotSize) {
		err = nil
	}
	return float64(n), err
}

var limitText = regexp.MustCompile(`^([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S*)$`)

// parseLimit reads the value of a gate on m, in ns, bytes or as a count.
func parseLimit(s string, m metric) (limit float64, percent bool, err error) {
	if strings.ContainsAny(s, ",_") {
		return 0, false, fmt.Errorf("%q is not a number: write it without separators, or as 30k", s)
	}
	parts := limitText.FindStringSubmatch(s)
	if parts == nil {
		return 0, false, fmt.Errorf("%q is not a number with a unit", s)
	}
	v, err := strconv.ParseFloat(parts[1], 64)
	if err != nil {
		return 0, false, fmt.Errorf("%q is out of range", parts[1])
	}
	unit := parts[2]
	if strings.HasSuffix(m.path, "_per_sec") {
		unit = strings.TrimSuffix(unit, "/s")
	}
	if unit == "%" {
		if m.whole == "" {
			return 0, false, fmt.Errorf("%s cannot be a percentage: give a number", m.path)
		}
		return v, true, nil
	}
	factor, err := factorOf(m.dim, parts[1], unit)
	switch {
	case err != nil:
		return 0, false, err
	case math.IsInf(v*factor, 0):
		return 0, false, fmt.Errorf("%q is out of range", s)
	case factor > 0:
		return v * factor, false, nil
	case unit == "" && v == 0:
		return 0, false, nil
	case unit == "":
		return 0, false, fmt.Errorf("%s is a %s and needs a unit: write %sms, or ns, us, s", m.path, m.dim, parts[1])
	}
	return 0, false, fmt.Errorf("%q is not a unit of %s, a %s: use %s", unit, m.path, dimensionName(m.dim), shownUnits[m.dim])
}

func dimensionName(d dimension) string {
	if d == dimBytes {
		return "number of bytes"
	}
	return string(d)
}

// sameValue reports whether two values of a parameter mean the same, as payload=8KiB
// and payload=8192 do, or rate=8k and rate=8000.
func sameValue(key, a, b string) bool {
	x, errX := paramValue(key, a)
	y, errY := paramValue(key, b)
	return a == b || errX == nil && errY == nil && x == y
}

// paramValue reads the value of a parameter: a rate, or else a size in bytes.
func paramValue(key, s string) (float64, error) {
	if !strings.Contains(strings.ToLower(key), "rate") {
		n, err := text.ParseSize(s)
		return float64(n), err
	}
	parts := limitText.FindStringSubmatch(s)
	if parts == nil || text.CountUnit(parts[2]) == 0 {
		return 0, errors.New("is not a rate")
	}
	v, err := strconv.ParseFloat(parts[1], 64)
	return v * text.CountUnit(parts[2]), err
}
