package text

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sizeUnits are the units of sizes in bytes: k, K and KiB are 1024, as for dd
// and most load generators; kB and MB are decimal, as SI has it. KB is left out
// because it is both.
var sizeUnits = map[string]int64{
	"": 1, "B": 1,
	"k": 1 << 10, "K": 1 << 10, "KiB": 1 << 10, "Ki": 1 << 10, "kB": 1e3,
	"m": 1 << 20, "M": 1 << 20, "MiB": 1 << 20, "Mi": 1 << 20, "MB": 1e6,
	"g": 1 << 30, "G": 1 << 30, "GiB": 1 << 30, "Gi": 1 << 30, "GB": 1e9,
}

// The errors of sizes.
var (
	ErrNotSize   = errors.New("is not a size: write a whole number of bytes such as 10, 1KiB or 8kB")
	ErrSizeRange = errors.New("is out of range")
	ErrAmbiguous = errors.New("KB means 1000 to some and 1024 to others")
)

// ParseSize reads a size in bytes, from 0: "8192", "8KiB", "8k", "8 kB". The
// error is [ErrNotSize] or [ErrSizeRange], or wraps [ErrAmbiguous].
func ParseSize(s string) (int64, error) {
	number := strings.TrimRightFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if !digits(number) {
		return 0, ErrNotSize
	}
	factor, err := SizeUnit(number, strings.TrimSpace(s[len(number):]))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > math.MaxInt64/factor {
		return 0, ErrSizeRange
	}
	return n * factor, nil
}

// SizeUnit returns how many bytes a unit of sizes stands for, "" being bytes.
// The error is [ErrNotSize], or wraps [ErrAmbiguous] and says how to write number
// with a clear unit.
func SizeUnit(number, unit string) (int64, error) {
	factor, known := sizeUnits[unit]
	switch {
	case unit == "KB":
		return 0, fmt.Errorf("%w: write %skB or %sKiB", ErrAmbiguous, number, number)
	case !known:
		return 0, ErrNotSize
	}
	return factor, nil
}

// countUnits are the units of numbers of things, which are always decimal.
var countUnits = map[string]float64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}

// CountUnit returns what a unit of counts and of rates stands for, 0 where it is
// unknown: k is 1000, "" is 1.
func CountUnit(unit string) float64 { return countUnits[unit] }

func digits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}
