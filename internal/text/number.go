package text

import (
	"strconv"
	"strings"
	"time"
)

// Count is a number of things: "1 case", "1,200 messages", "2 launches".
func Count[N int | int64](n N, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "ch"):
		noun += "es"
	default:
		noun += "s"
	}
	return Int(int64(n)) + " " + noun
}

// Int prints n with thousands separators: "1,234,567".
func Int(n int64) string { return grouped(strconv.FormatInt(n, 10)) }

// Float prints v with thousands separators and fixed decimals: "12,345.68".
func Float(v float64, decimals int) string {
	return grouped(strconv.FormatFloat(v, 'f', decimals, 64))
}

func grouped(number string) string {
	whole, fraction, found := strings.Cut(number, ".")
	digits, negative := strings.CutPrefix(whole, "-")
	var b strings.Builder
	if negative {
		b.WriteByte('-')
	}
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	if found {
		b.WriteString("." + fraction)
	}
	return b.String()
}

// Duration is [time.Duration.String] without trailing zero parts: "1m", "1h".
func Duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
