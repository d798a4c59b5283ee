package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/report"
)

// formatSet are the formats that a command writes, by the names of package report.
type formatSet []string

var (
	reportFormats     = formatSet(report.Formats())
	comparisonFormats = formatSet(report.ComparisonFormats())
)

// name is the format that s names, directly or by an alias.
func (known formatSet) name(s string) (string, error) {
	full, err := report.FormatName(s)
	if err == nil && slices.Contains(known, full) {
		return full, nil
	}
	if near := text.Nearest(s, known); near != "" {
		return "", fmt.Errorf("unknown format %q, did you mean %q?", s, near)
	}
	return "", fmt.Errorf("unknown format %q: known are %s", s, strings.Join(known, ", "))
}
