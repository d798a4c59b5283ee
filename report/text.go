package report

import (
	"fmt"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
)

// cellRunes is the longest parameter value that a table shows completely.
const cellRunes = 64

// shorten cuts the middle out of a value that is too long for a table.
func shorten(s string) string { return shortenTo(s, cellRunes) }

func shortenTo(s string, longest int) string {
	r := []rune(s)
	if len(r) <= longest {
		return s
	}
	return fmt.Sprintf("%s…%s (%d characters)", string(r[:longest/2]), string(r[len(r)-longest/4:]), len(r))
}

// markdownCell escapes characters that would end a cell, start markup or hide text in
// GitHub's markdown.
func markdownCell(s string) string {
	return markdownEscapes.Replace(text.Plain(s))
}

var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "`", "\\`", "&", "&amp;", "<", "&lt;", ">", "&gt;",
	"*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "~", `\~`, "@", "&#64;", "#", `\#`, "$", `\$`,
)
