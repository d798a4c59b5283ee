package result

import (
	"regexp"
	"strings"
)

// Marks of a printed number. Either is unclear where "4,453" may be both.
const (
	markNone   = ' '
	markPoint  = '.'
	markComma  = ','
	markEither = '?'
)

// figures are the digits of a number as any culture groups them.
var figures = regexp.MustCompile(`^-?\d(?:[\d.,'’ \x{a0}\x{202f}]*\d)?`)

// decimalMark is the mark before the decimals that text can only be read with.
func decimalMark(text string) rune {
	digits := strings.TrimPrefix(figures.FindString(text), "-")
	comma, point := strings.LastIndexByte(digits, ','), strings.LastIndexByte(digits, '.')
	switch {
	case comma < 0 && point < 0:
		return markNone
	case point > comma:
		return markPoint
	case point >= 0:
		return markComma // 1.234,5
	case strings.Count(digits, ",") > 1:
		return markPoint // 1,234,567
	case len(digits)-comma != 4 || comma > 3 || digits[0] == '0':
		return markComma // 4,45 or 1234,567 or 0,501
	}
	return markEither
}

// pointed rewrites the numbers of a table with decimal commas to decimal points. It
// refuses a table that mixes both, and one whose every comma may be either.
func (t table) pointed() error {
	seen := map[rune]string{}
	at := map[rune]int{}
	for n, row := range t.rows {
		for i, col := range t.columns[:min(len(t.columns), len(row))] {
			m := decimalMark(row[i])
			if _, known := seen[m]; !known && (&Cell{}).summaryField(col.Name) != nil {
				seen[m], at[m] = col.Name+` "`+row[i]+`"`, t.lines[n]
			}
		}
	}
	_, point := seen[markPoint]
	_, comma := seen[markComma]
	_, either := seen[markEither]
	switch {
	case point && comma:
		return notReport("line %d: %s has a decimal comma, but line %d: %s has a decimal point: write all with points",
			at[markComma], seen[markComma], at[markPoint], seen[markPoint])
	case comma:
		t.replaceCommas()
	case either && !point:
		return notReport("line %d: the comma of %s may be a decimal comma or group thousands: write decimals with a point",
			at[markEither], seen[markEither])
	}
	return nil
}

// replaceCommas writes the figures after the parameters without groups and with a point.
func (t table) replaceCommas() {
	points := strings.NewReplacer(".", "", "'", "", "’", "", " ", "", "\u00a0", "", "\u202f", "", ",", ".")
	for _, row := range t.rows {
		for i := t.column("Mean"); i < len(row); i++ {
			digits := figures.FindString(row[i])
			row[i] = points.Replace(digits) + row[i][len(digits):]
		}
	}
}

// column is the place of the column called name, which t has.
func (t table) column(name string) int {
	for i, c := range t.columns {
		if c.Name == name {
			return i
		}
	}
	return len(t.columns)
}
