//go:build unix

package file

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestReadPipe: a pipe without a writer is refused, and not waited for.
func TestReadPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := Read(path, 1); err == nil || err.Error() != "is a named pipe (FIFO): write its content to a file first" {
		t.Error(err)
	}
}
