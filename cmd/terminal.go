package cmd

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/mqttload/mqttload/internal/text"
	"golang.org/x/term"
)

// terminal is standard error: a terminal, or what it is redirected to.
type terminal struct {
	mu   sync.Mutex // guards w
	w    io.Writer
	dumb bool // it cannot rewrite a line
}

// warn prints one line to stderr, with control characters escaped: they may come
// from an input or a broker. A failure to write is ignored.
func (t *terminal) warn(format string, args ...any) {
	t.print(text.Plain(fmt.Sprintf(format, args...)) + "\n")
}

// print writes to stderr, one goroutine at a time.
func (t *terminal) print(s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = io.WriteString(t.w, s)
}

// wipe empties the line of a terminal.
const wipe = "\r\x1b[K"

// isTerminal reports whether a line can be rewritten.
func (t *terminal) isTerminal() bool {
	f, ok := t.w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && !t.dumb
}

// width is the width of a line, in characters.
func (t *terminal) width() int {
	if f, ok := t.w.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 80
}
