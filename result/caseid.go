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
// their bytes, so that an id is one word, and different parameters have different ids.
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

// unescapeID decodes the escapes of a key or a value of an id.
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
