package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cellRunes is the longest param value a table shows whole.
const cellRunes = 64

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

// shorten cuts the middle out of a value that would tear a table apart.
func shorten(s string) string { return shortenTo(s, cellRunes) }

func shortenTo(s string, longest int) string {
	r := []rune(s)
	if len(r) <= longest {
		return s
	}
	return fmt.Sprintf("%s…%s (%d characters)", string(r[:longest/2]), string(r[len(r)-longest/4:]), len(r))
}

// markdownCell escapes what would end a cell, start markup or hide text in
// GitHub's markdown.
func markdownCell(s string) string {
	return markdownEscapes.Replace(Plain(s))
}

var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "`", "\\`", "&", "&amp;", "<", "&lt;", ">", "&gt;",
	"*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "~", `\~`, "@", "&#64;", "#", `\#`, "$", `\$`,
)
