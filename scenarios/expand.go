package scenarios

import (
	"fmt"
	"strconv"
	"strings"
)

// Vars are the values of the variables in topics, client ids, user names and other
// texts of clients.
type Vars struct {
	I int    // %i: number of the client, or of the pair in a topic, from 1
	C string // %c: client id
	U string // %u: user name
	S int64  // %s: number of the message
	R string // %r: run id
}

// Expand replaces %i, %c, %u, %s, %r and %% in pattern; anything else stays.
func Expand(pattern string, v Vars) string {
	i := strings.IndexByte(pattern, '%')
	if i < 0 {
		return pattern
	}
	var b strings.Builder
	for ; i >= 0 && i+1 < len(pattern); i = strings.IndexByte(pattern, '%') {
		b.WriteString(pattern[:i])
		switch pattern[i+1] {
		case 'i':
			b.WriteString(strconv.Itoa(v.I))
		case 'c':
			b.WriteString(v.C)
		case 'u':
			b.WriteString(v.U)
		case 's':
			b.WriteString(strconv.FormatInt(v.S, 10))
		case 'r':
			b.WriteString(v.R)
		case '%':
			b.WriteByte('%')
		default:
			b.WriteString(pattern[i : i+2])
		}
		pattern = pattern[i+2:]
	}
	return b.String() + pattern
}

// checkVars rejects unknown variables, and those that the text of key cannot use.
// allowed lists the letters of those it can.
func checkVars(key, pattern, allowed string) error {
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			continue
		}
		i++
		switch {
		case i == len(pattern):
			return fmt.Errorf("%s ends with a single %%: write %%%% for a percent sign", key)
		case strings.IndexByte(allowed+"%", pattern[i]) >= 0:
		case strings.IndexByte("icusr", pattern[i]) >= 0:
			return fmt.Errorf("%s cannot use %%%c: it can use %s", key, pattern[i], variables(allowed))
		default:
			letter := []rune(pattern[i:])[0]
			return fmt.Errorf("%s has the unknown variable %%%s: known are %s; write %%%% for a percent sign",
				key, strings.Trim(strconv.QuoteRune(letter), "'"), variables(allowed))
		}
	}
	return nil
}

func variables(letters string) string {
	var names []string
	for _, r := range letters {
		names = append(names, "%"+string(r))
	}
	return strings.Join(names, ", ")
}

// uses reports whether pattern has the variable %letter.
func uses(pattern string, letter byte) bool {
	for i := 0; i+1 < len(pattern); i++ {
		if pattern[i] == '%' {
			i++
			if pattern[i] == letter {
				return true
			}
		}
	}
	return false
}
