package result

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf16"
)

// errTooLarge says that a file holds more than maxFileSize bytes, unpacked, or
// more than maxElements.
var errTooLarge = errors.New("too large to be a report")

// ErrNoCells says that a file was read and has no measured case, which never means that
// nothing changed.
var ErrNoCells = errors.New("it has no measured case")

// formatError says why a file is not a report in any format that is read here.
type formatError struct {
	Reason string
	Err    error // the cause, or nil
}

func (e *formatError) Error() string { return "not a report: " + e.Reason }
func (e *formatError) Unwrap() error { return e.Err }

func notReport(format string, args ...any) error {
	return &formatError{Reason: fmt.Sprintf(format, args...)}
}

// jsonFault says what is wrong with JSON, without the terms of package json.
func jsonFault(b []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	reason := err.Error()
	switch {
	case len(bytes.TrimSpace(b)) == 0:
		reason = "it is empty"
	case errors.As(err, &kind) && kind.Field == "":
		reason = "JSON of another tool: " + kind.Value + " where a report is an object"
	case errors.As(err, &kind):
		reason = fmt.Sprintf("%s: %s is not allowed there", kind.Field, kind.Value)
	case !errors.As(err, &syntax):
	case syntax.Offset >= int64(len(b)):
		reason = "the JSON is truncated: it ends in the middle"
	case strings.Contains(syntax.Error(), "after top-level value"):
		reason = fmt.Sprintf("more than one JSON value: the second begins at byte %d", syntax.Offset)
	case isNotANumber(b, syntax.Offset):
		reason = fmt.Sprintf("NaN or Infinity at byte %d: a value that does not exist is null in JSON", syntax.Offset)
	default:
		reason = fmt.Sprintf("%s at byte %d", syntax, syntax.Offset)
	}
	return &formatError{Reason: reason, Err: err}
}

// isNotANumber reports whether the byte that JSON refused belongs to NaN or Infinity.
func isNotANumber(b []byte, offset int64) bool {
	around := b[max(0, offset-3):min(int64(len(b)), offset+8)]
	return bytes.Contains(around, []byte("NaN")) || bytes.Contains(around, []byte("Inf"))
}

// readFile returns the content of path, gunzipped if it starts as a gzip file does, at
// most limit bytes. It finds out the size first, so that a file which unpacks to more is
// refused before it takes memory.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("is a directory")
	case !info.Mode().IsRegular():
		return readPipe(f, limit)
	case info.Size() > limit:
		return nil, tooLarge(limit)
	}
	size, err := unpackedSize(f, limit)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	plain, err := unpacked(f)
	if err != nil {
		return nil, gzipFault(err)
	}
	b := make([]byte, size)
	n, err := io.ReadFull(plain, b)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // the file has shrunk: use what is left
	}
	return b[:n], err
}

// unpackedSize counts the bytes that f unpacks to, and keeps none.
func unpackedSize(f *os.File, limit int64) (int64, error) {
	plain, err := unpacked(f)
	if err != nil {
		return 0, gzipFault(err)
	}
	n, err := io.Copy(io.Discard, io.LimitReader(plain, limit+1))
	if err != nil {
		return 0, gzipFault(err)
	}
	if n > limit {
		return 0, tooLarge(limit)
	}
	return n, nil
}

// readPipe reads a pipe or a device, whose size is not known in advance.
func readPipe(f *os.File, limit int64) ([]byte, error) {
	plain, err := unpacked(bufio.NewReader(f))
	if err != nil {
		return nil, gzipFault(err)
	}
	b, err := readAll(plain, limit)
	return b, gzipFault(err)
}

func readAll(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, tooLarge(limit)
	}
	return b, nil
}

func tooLarge(limit int64) error {
	return fmt.Errorf("%w: larger than %s bytes", errTooLarge, FormatInt(limit))
}

// gzipFault turns errors of gzip into a *formatError and returns others unchanged.
func gzipFault(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &formatError{Reason: "the gzip file is truncated", Err: err}
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return &formatError{Reason: "the gzip file is damaged", Err: err}
	}
	return err
}

// plainText returns b as UTF-8 without a byte order mark: shells of Windows redirect to UTF-16.
func plainText(b []byte) []byte {
	little, big := bytes.HasPrefix(b, []byte{0xff, 0xfe}), bytes.HasPrefix(b, []byte{0xfe, 0xff})
	if !little && !big {
		return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	}
	var units []uint16
	for i := 2; i+1 < len(b); i += 2 {
		low, high := b[i], b[i+1]
		if big {
			low, high = high, low
		}
		units = append(units, uint16(high)<<8|uint16(low))
	}
	return []byte(string(utf16.Decode(units)))
}
