package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain makes s safe to print on a terminal on one line: control characters, ESC
// among them, bidirectional and other invisible characters and invalid UTF-8
// become escapes as \n, \x1b, \u202e.
func Plain(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(escapeRune(r))
		}
		s = s[size:]
	}
	return b.String()
}

func escapeRune(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// IsASCII reports whether s is not empty and of printable ASCII characters only.
func IsASCII(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// Short is at most the first 60 characters of s, for messages.
func Short(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) > most {
		return string([]rune(s)[:most]) + "..."
	}
	return s
}

// Quote is a value as a message repeats it: [Short], and in Go's quotes unless it
// is one printable word.
func Quote(s string) string {
	s = Short(s)
	odd := func(r rune) bool { return r == '"' || r == ' ' || r == utf8.RuneError || !unicode.IsPrint(r) }
	if s == "" || strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}
