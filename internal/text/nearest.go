package text

import "strings"

// Nearest returns the candidate that a misspelled word probably stands for, ""
// where none is close. Case, hyphens and underscores do not count. Close is one
// typing error in three letters, or else the only candidate that word begins or
// ends: "time" for min-time.
func Nearest(word string, candidates []string) string {
	plain := letters(word)
	best, least := "", max(1, len(plain)/3)+1
	for _, c := range candidates {
		if d := distance(plain, letters(c)); d < least {
			best, least = c, d
		}
	}
	if best != "" || len(plain) < 3 {
		return best
	}
	word = words.Replace(strings.ToLower(word))
	for _, c := range candidates {
		name := words.Replace(strings.ToLower(c))
		if strings.HasPrefix(name, word) || strings.HasSuffix(name, "-"+word) || strings.HasPrefix(word, name+"-") {
			if best != "" {
				return ""
			}
			best = c
		}
	}
	return best
}

var (
	joined = strings.NewReplacer("-", "", "_", "")
	words  = strings.NewReplacer("_", "-")
)

// letters makes connect-timeout, connectTimeout and connect_timeout the same word.
func letters(s string) string { return joined.Replace(strings.ToLower(s)) }

// distance counts the insertions, deletions, substitutions and swaps of
// neighbouring bytes that lead from a to b (optimal string alignment). Texts of
// more than 64 bytes are as far apart as they are long.
func distance(a, b string) int {
	const most = 64
	if len(a) > most || len(b) > most {
		return max(len(a), len(b))
	}
	var rows [3][most + 1]int
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, above, twoAbove := &rows[i%3], &rows[(i+2)%3], &rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := above[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(above[j]+1, row[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], twoAbove[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
