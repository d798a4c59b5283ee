// Package file reads files that users name. A name may be that of a directory, a
// device or a pipe, whose content never begins or never ends, and of a file of
// any length: only regular files up to a limit are read. Files that are read
// in parts, as reports are, are not for this package.
package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrTooLarge is wrapped by the error of a file that is over the limit.
var ErrTooLarge = errors.New("is too large")

// Read returns the content of a regular file of at most limit bytes. Errors
// leave out the path, which the caller has, and read on after it: "is a
// directory, not a file".
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// The size is checked first so that a huge file is not read up to the limit.
	info, err := f.Stat()
	if err != nil {
		return nil, Cause(err)
	}
	var data []byte
	if info.Size() <= limit {
		data, err = io.ReadAll(io.LimitReader(f, limit+1))
	}
	switch {
	case err != nil:
		return nil, Cause(err)
	case info.Size() > limit, int64(len(data)) > limit:
		return nil, tooLarge{limit}
	}
	return data, nil
}

// Open opens a regular file for reading. Its errors are as those of [Read].
func Open(path string) (*os.File, error) {
	// Opening a pipe would wait for its writer.
	if err := Check(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	return f, Cause(err)
}

// Check returns an error where path is not a regular file.
func Check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return Cause(err)
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return errors.New("is a directory, not a file")
	case mode&fs.ModeNamedPipe != 0:
		return errors.New("is a named pipe (FIFO): write its content to a file first")
	case !mode.IsRegular():
		return errors.New("is a device or a socket, not a file")
	}
	return nil
}

// Cause is the operating system's error without the path, which the caller names.
func Cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

type tooLarge struct{ limit int64 }

func (e tooLarge) Error() string {
	if e.limit%(1<<20) == 0 {
		return fmt.Sprintf("is larger than %d MiB", e.limit>>20)
	}
	return fmt.Sprintf("is larger than %d bytes", e.limit)
}

func (tooLarge) Is(target error) bool { return target == ErrTooLarge }
