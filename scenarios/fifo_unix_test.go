//go:build unix

package scenarios

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Opening a FIFO that nobody writes to would hang.
func TestFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "is a named pipe (FIFO): write its content to a file first"
	if _, err := ParsePayload("@" + path); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("payload: %v", err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("scenario: %v", err)
	}
}
