package result

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// unitsOf are the units that limits of a dimension take, "" being a bare number.
var unitsOf = map[Dimension]map[string]float64{
	DimTime: {"ns": 1, "μs": 1e3, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "min": 60e9},
	DimBytes: {
		"": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9,
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
	},
	DimCount: {"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9},
}

// shownUnits are those that messages offer.
var shownUnits = map[Dimension]string{DimTime: "ns, us, ms or s", DimBytes: "B, KiB, MiB, kB or MB, or none", DimCount: "k or M, or none"}

var limitText = regexp.MustCompile(`^([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S*)$`)

// parseLimit reads the value of a gate on m, in ns, bytes or as a count.
func parseLimit(text string, m metric) (limit float64, percent bool, err error) {
	if strings.ContainsAny(text, ",_") {
		return 0, false, fmt.Errorf("%q is not a number: write it without separators, or as 30k", text)
	}
	parts := limitText.FindStringSubmatch(text)
	if parts == nil {
		return 0, false, fmt.Errorf("%q is not a number with a unit", text)
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
			return 0, false, fmt.Errorf("%s has no whole that %% could be of: give a number", m.path)
		}
		return v, true, nil
	}
	factor, ok := unitsOf[m.dim][unit]
	switch {
	case ok && math.IsInf(v*factor, 0):
		return 0, false, fmt.Errorf("%q is out of range", text)
	case ok:
		return v * factor, false, nil
	case unit == "" && v == 0:
		return 0, false, nil
	case unit == "":
		return 0, false, fmt.Errorf("%s is a %s and needs a unit: write %sms, or ns, us, s", m.path, m.dim, parts[1])
	}
	return 0, false, fmt.Errorf("%q is no unit of %s, a %s: use %s", unit, m.path, dimensionName(m.dim), shownUnits[m.dim])
}

func dimensionName(d Dimension) string {
	if d == DimBytes {
		return "number of bytes"
	}
	return string(d)
}

// parseSize reads a number with an optional unit of bytes: "8192", "8KiB".
func parseSize(text string) (float64, error) {
	parts := limitText.FindStringSubmatch(text)
	if parts == nil {
		return 0, errors.New("no size")
	}
	factor, ok := unitsOf[DimBytes][parts[2]]
	if !ok {
		return 0, errors.New("no unit of bytes")
	}
	v, err := strconv.ParseFloat(parts[1], 64)
	return v * factor, err
}
