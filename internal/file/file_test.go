package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 1<<40); err != nil {
		t.Fatal(err)
	}
	if data, err := Read(path, 5); err != nil || string(data) != "12345" {
		t.Errorf("5 of 5 bytes: %q, %v", data, err)
	}
	for _, c := range []struct {
		path  string
		limit int64
		want  string
		is    error
	}{
		{path, 4, "is larger than 4 bytes", ErrTooLarge},
		{large, 16 << 20, "is larger than 16 MiB", ErrTooLarge},
		{dir, 5, "is a directory, not a file", nil},
		{"/dev/null", 5, "is a device or a socket, not a file", nil},
		{filepath.Join(dir, "none"), 5, "no such file or directory", fs.ErrNotExist},
		{filepath.Join(path, "none"), 5, "not a directory", nil},
	} {
		data, err := Read(c.path, c.limit)
		if err == nil || err.Error() != c.want || c.is != nil && !errors.Is(err, c.is) || data != nil {
			t.Errorf("%s: %q, %v, want %s", c.path, data, err, c.want)
		}
	}
}
