package result

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CaseID is the id of a case: key=value of every parameter, joined by '/'. In keys
// and values the characters '/', '=', '%', white space, and characters that do not
// print (control and bidirectional characters, invalid UTF-8) are written as %XX of
// their bytes, so that an id is one word and ParseCaseID inverts it.
func CaseID(params []Param) string {
	var b strings.Builder
	for i, p := range params {
		if i > 0 {
			b.WriteByte('/')
		}
		escapeID(&b, p.Key)
		b.WriteByte('=')
		escapeID(&b, p.Value)
	}
	return b.String()
}

func escapeID(b *strings.Builder, s string) {
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if needsEscape(r, size) {
			for _, c := range []byte(s[:size]) {
				fmt.Fprintf(b, "%%%02X", c)
			}
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
}

func needsEscape(r rune, size int) bool {
	invalid := r == utf8.RuneError && size == 1
	return invalid || r == '/' || r == '=' || r == '%' || unicode.IsSpace(r) || !unicode.IsPrint(r)
}

// ParseCaseID returns the parameters of an id made by CaseID.
func ParseCaseID(id string) ([]Param, error) {
	if id == "" {
		return nil, nil
	}
	var params []Param
	for part := range strings.SplitSeq(id, "/") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("parse case id %q: %q is not key=value", id, part)
		}
		k, err := unescapeID(key)
		if err != nil {
			return nil, fmt.Errorf("parse case id %q: %w", id, err)
		}
		v, err := unescapeID(value)
		if err != nil {
			return nil, fmt.Errorf("parse case id %q: %w", id, err)
		}
		params = append(params, Param{Key: k, Value: v})
	}
	return params, nil
}

func unescapeID(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		c, err := hex.DecodeString(s[i+1 : min(i+3, len(s))])
		if err != nil || len(c) != 1 {
			return "", fmt.Errorf("%q holds an escape that is not %%XX", s)
		}
		b.Write(c)
		i += 2
	}
	return b.String(), nil
}
