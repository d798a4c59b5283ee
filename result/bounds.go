package result

import "fmt"

const (
	// maxFileSize is how many bytes Read, ReadAny and Decode accept, unpacked: one
	// case of 24 hours in iterations of a second is a report of 35 MB.
	maxFileSize = 64 << 20
	// maxElements is how many elements all lists of a JSON file may have, or how many
	// fields and lines a text: two cases of 24 hours have 345,600. Two bytes of JSON
	// may be an element that takes hundreds in memory, so the size alone bounds nothing.
	maxElements = 500_000
	// MaxCases is how many elements a list at the top of a JSON file may have: cases
	// and results of gates, which are the largest.
	MaxCases = 10_000
)

// checkElements refuses JSON whose lists would take memory out of all proportion
// to a report, before anything is decoded; It does not check the syntax.
func checkElements(b []byte) error {
	var s elementScanner
	for i := 0; i < len(b); i++ {
		if b[i] == '"' {
			i = stringEnd(b, i)
			continue
		}
		if err := s.next(b[i]); err != nil {
			return err
		}
	}
	return nil
}

// stringEnd is the index of the quote that ends the string which begins at i.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b) && b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i
}

// elementScanner counts elements by brackets and commas outside of strings.
type elementScanner struct {
	open     []byte // brackets
	elements int    // of all lists
	top      int    // of the lists in the outermost object
}

// listDepth is how deep the lists of the outermost object lie.
const listDepth = 2

func (s *elementScanner) next(c byte) error {
	switch c {
	case '{', '[':
		s.open = append(s.open, c)
	case '}', ']':
		s.open = s.open[:max(0, len(s.open)-1)]
		return nil
	}
	// A list has one element more than commas: its bracket stands for the first.
	if c != ',' && c != '[' || len(s.open) == 0 || s.open[len(s.open)-1] != '[' {
		return nil
	}
	s.elements++
	if len(s.open) <= listDepth {
		s.top++
	}
	switch {
	case s.top > MaxCases:
		return fmt.Errorf("%w: more than %s cases", errTooLarge, FormatInt(MaxCases))
	case s.elements > maxElements:
		return fmt.Errorf("%w: more than %s elements in its lists", errTooLarge, FormatInt(maxElements))
	}
	return nil
}

// checkFields refuses text of more fields and lines than maxElements.
func checkFields(b []byte) error {
	n, blank := 0, true
	for _, c := range b {
		was := blank
		blank = c == ' ' || c == '\r'
		if c == '\n' || c == '\t' || c == '|' || was && !blank {
			n++
		}
	}
	if n > maxElements {
		return fmt.Errorf("%w: more than %s fields", errTooLarge, FormatInt(maxElements))
	}
	return nil
}
