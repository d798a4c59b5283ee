package result

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
)

// hint is what to append to "unknown word": the nearest of the known words, or all of
// them if they are few.
func hint(word string, known []string) string {
	if near := text.Nearest(word, known); near != "" {
		return fmt.Sprintf(": did you mean %s?", near)
	}
	const few = 20
	if len(known) > 0 && len(known) <= few {
		return ": use one of " + strings.Join(known, ", ")
	}
	return ""
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
