package scenarios

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// MaxPayload is the largest payload in bytes: the largest Remaining Length
// without a topic of one character. Longer topics, packet ids and properties
// leave less. [MQTT5 1.5.5]
const MaxPayload = packet.MaxRemainingLength - 3

// units of payload sizes: k, K and KiB are 1024 as for dd and most load
// generators, kB and MB are decimal as SI has it. KB is left out as it is both.
var units = map[string]uint64{
	"": 1, "B": 1,
	"k": 1 << 10, "K": 1 << 10, "KiB": 1 << 10, "Ki": 1 << 10, "kB": 1000,
	"m": 1 << 20, "M": 1 << 20, "MiB": 1 << 20, "Mi": 1 << 20, "MB": 1000_000,
	"g": 1 << 30, "G": 1 << 30, "GiB": 1 << 30, "Gi": 1 << 30, "GB": 1000_000_000,
}

// ParsePayload reads one payload: a size in bytes ("10", "8KiB"; k, K and KiB
// are 1024, kB is 1000, and so with M), "@file" for a file's bytes, or
// "text:..." for the text itself; "template:..." for text with fields;
// "uniform:10-1KiB", "normal:1KiB+-200" or "mix:10*9,8KiB*1" for sizes that are
// drawn; "trace:FILE" for those of a recording. Name is canonical: "8192" for "8KiB".
func ParsePayload(s string) (Payload, error) { return parsePayload(s, "") }

// parsePayload looks for files in dir unless their path is absolute.
func parsePayload(s, dir string) (Payload, error) {
	if text, ok := strings.CutPrefix(s, "text:"); ok {
		if len(text) > MaxPayload {
			return Payload{}, overLimit(fmt.Sprint(len(text)))
		}
		return Payload{Kind: PayloadText, Size: len(text), Data: []byte(text), Name: textName(text)}, nil
	}
	if path, ok := strings.CutPrefix(s, "trace:"); ok {
		return parseTrace(path, dir)
	}
	if form, text, ok := strings.Cut(s, ":"); ok && payloadForms[form] != nil {
		return payloadForms[form](text)
	}
	if path, ok := strings.CutPrefix(s, "@"); ok {
		path = resolve(dir, path)
		data, err := readPayload(path)
		if err != nil {
			return Payload{}, fmt.Errorf("payload file %s: %w", shown(path), err)
		}
		return Payload{Kind: PayloadFile, Size: len(data), Data: data, Name: s, path: path}, nil
	}
	n, err := parseSize(s)
	return Payload{Kind: PayloadSize, Size: n, Name: strconv.Itoa(n)}, err
}

// payloadForms read what stands behind their name and a colon.
var payloadForms = map[string]func(text string) (Payload, error){
	"template": parseTemplate, "uniform": parseUniform, "normal": parseNormal, "mix": parseMix,
}

// resolve makes a path of a scenario file relative to that file's directory.
func resolve(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func parseSize(s string) (int, error) {
	digits := strings.TrimRightFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	unit := strings.TrimSpace(s[len(digits):])
	if strings.HasPrefix(s, "-") && isDigits(digits[min(1, len(digits)):]) {
		return 0, errors.New("payload must not be negative")
	}
	if s == "" {
		return 0, errors.New("payload is empty: write a size such as 10, 1KiB or 8192")
	}
	if isDigits(digits) && unit == "KB" {
		return 0, fmt.Errorf("KB means 1000 to some and 1024 to others: write %skB or %sKiB", digits, digits)
	}
	factor, known := units[unit]
	if !isDigits(digits) || !known {
		return 0, fmt.Errorf("%s is not a payload size: write a whole number of bytes such as 10, 1KiB or 8kB, @FILE for a file, text:WORD for the word itself, or one of template:, uniform:, normal:, mix: and trace:FILE", shown(s))
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n > MaxPayload/factor {
		return 0, overLimit(s)
	}
	return int(n * factor), nil
}

func overLimit(size string) error {
	return fmt.Errorf("a payload of %s is over the limit: MQTT packets carry at most 268,435,455 bytes of topic, properties and payload", shown(size))
}

func isDigits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// readPayload reads a regular file: anything else may never end.
func readPayload(path string) ([]byte, error) {
	if path == "" {
		return nil, errors.New("has no name: write @FILE")
	}
	return readRegular(path, MaxPayload, "is over MQTT's limit of 268,435,455 bytes")
}

// readRegular reads a regular file of at most limit bytes. The error is the
// operating system's, without the path.
func readRegular(path string, limit int, tooLarge string) ([]byte, error) {
	if err := regular(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, bareError(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > int64(limit) {
		return nil, errors.New(tooLarge)
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(data) > limit {
		return nil, errors.New(tooLarge)
	}
	return data, bareError(err)
}

// regular refuses what is no regular file: reading it may never end.
func regular(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return bareError(err)
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

func bareError(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// textName keeps ids short and printable: long or odd texts are told apart by
// a part of their SHA-256.
func textName(text string) string {
	const most = 32
	odd := func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }
	if len(text) <= most && !strings.ContainsFunc(text, odd) {
		return "text:" + text
	}
	head := strings.Map(func(r rune) rune {
		if odd(r) {
			return '.'
		}
		return r
	}, text)
	runes := []rune(head)
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("text:%s~%x", string(runes[:min(16, len(runes))]), sum[:4])
}
