//go:build unix

package tlsconf

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Opening a FIFO that nobody writes to would hang.
func TestFIFO(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	checkFileError(t, configError(Options{CAFiles: []string{path}}), "is a named pipe (FIFO): write its content to a file first")
	checkFileError(t, configError(Options{CertFile: path}), "is a named pipe")
	checkFileError(t, configError(Options{CAFiles: []string{"/dev/null"}}), "is a device or a socket, not a file")
	// A directory of CAs may hold what is none.
	checkFileError(t, configError(Options{CAPath: dir}), "no certificate found")
	ca := newCA(t, time.Now())
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), certPEM(ca.cert.Raw), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := configError(Options{CAPath: dir}); err != nil {
		t.Error(err)
	}
}

func configError(o Options) error {
	_, err := o.ClientConfig("localhost")
	return err
}
