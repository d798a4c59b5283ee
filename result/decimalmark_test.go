package result

import (
	"strings"
	"testing"
)

// TestDecimalCommas: a table of a culture with decimal commas means what it says.
func TestDecimalCommas(t *testing.T) {
	head := "| Method | Mean | Error | StdDev |\n|---|---|---|---|\n"
	for name, tt := range map[string]struct {
		row              string
		mean, err, stdev float64
	}{
		"zero before":  {"| A | 0,501 us | 0,100 us | 0,295 us |\n", 501, 100, 295},
		"by neighbour": {"| A | 4,453 us | 0,673 us | 1,985 us |\n", 4453, 673, 1985},
		"one decimal":  {"| A | 1.234,5 us | 100,1 us | 295,0 us |\n", 1234500, 100100, 295000},
		"spaces":       {"| A | 1\u202f234,5 us | 100,1 us | 295,0 us |\n", 1234500, 100100, 295000},
		"points":       {"| A | 1,234.5 us | 100.1 us | 295.0 us |\n", 1234500, 100100, 295000},
		"thousands":    {"| A | 4,453 us | 673.5 us | 1,985.0 us |\n", 4453000, 673500, 1985000},
	} {
		s := parseInput(t, head+tt.row).Cells[0].Summary
		near(t, name+": mean", *s.MeanNS, tt.mean, 1e-6)
		near(t, name+": error", *s.ErrorNS, tt.err, 1e-6)
		near(t, name+": stddev", *s.StdDevNS, tt.stdev, 1e-6)
	}
}

// TestUnclearCommas: a comma that may be either is refused with its line.
func TestUnclearCommas(t *testing.T) {
	for rows, want := range map[string]string{
		"1\t4,453 us\t1,234 us\n":                  `line 2: the comma of Mean "4,453 us" may be a decimal comma or group thousands`,
		"1\t4.5 us\t1.2 us\n2\t0,501 us\t0.1 us\n": `line 3: Mean "0,501 us" has a decimal comma, but line 2: Mean "4.5 us" has a decimal point`,
	} {
		_, err := ParseInput("x", []byte("qos\tMean\tError\n"+rows))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
