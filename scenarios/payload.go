package scenarios

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/mqttload/mqttload/internal/file"
	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// maxPayload is the largest payload in bytes: the largest Remaining Length
// without a topic of one character. Longer topics, packet ids and properties
// leave less. [MQTT5 1.5.5]
const maxPayload = packet.MaxRemainingLength - 3

// ParsePayload reads one payload: a size in bytes ("10", "8KiB"; k, K and KiB
// are 1024, kB is 1000, and so with M), "@file" for a file's bytes, or
// "text:..." for the text itself; "template:..." for text with fields;
// "uniform:10-1KiB", "normal:1KiB+-200" or "mix:10*9,8KiB*1" for sizes that are
// drawn; "trace:FILE" for those of a recording. Name is canonical: "8192" for "8KiB".
func ParsePayload(s string) (Payload, error) { return parsePayload(s, "") }

// parsePayload looks for files in dir unless their path is absolute.
func parsePayload(s, dir string) (Payload, error) {
	if text, ok := strings.CutPrefix(s, "text:"); ok {
		if len(text) > maxPayload {
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
			return Payload{}, fmt.Errorf("payload file %s: %w", text.Quote(path), err)
		}
		return Payload{Kind: PayloadFile, Size: len(data), Data: data, Name: s, path: path}, nil
	}
	n, err := parseSize(s)
	return Payload{Kind: PayloadSize, Size: n, Name: strconv.Itoa(n)}, err
}

// payloadForms parse the text after their name and a colon.
var payloadForms = map[string]func(text string) (Payload, error){
	"template": parseTemplate, "uniform": parseUniform, "normal": parseNormal, "mix": parseMix,
}

// resolve makes a relative path of a scenario file relative to its directory.
func resolve(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// parseSize is [text.ParseSize] for payloads.
func parseSize(s string) (int, error) {
	n, err := text.ParseSize(s)
	switch {
	case s == "":
		return 0, errors.New("payload is empty: write a size such as 10, 1KiB or 8192")
	case len(s) > 1 && s[0] == '-' && isDigits(s[1:2]):
		return 0, errors.New("payload must not be negative")
	case errors.Is(err, text.ErrNotSize):
		return 0, fmt.Errorf("%s is not a payload size: write a whole number of bytes such as 10, 1KiB or 8kB, @FILE for a file, text:WORD for the word itself, or one of template:, uniform:, normal:, mix: and trace:FILE", text.Quote(s))
	case errors.Is(err, text.ErrSizeRange) || n > maxPayload:
		return 0, overLimit(s)
	}
	return int(n), err
}

func overLimit(size string) error {
	return fmt.Errorf("a payload of %s is over the limit: MQTT packets carry at most 268,435,455 bytes of topic, properties and payload", text.Quote(size))
}

func isDigits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

func readPayload(path string) ([]byte, error) {
	if path == "" {
		return nil, errors.New("the name is missing: write @FILE")
	}
	return readAtMost(path, maxPayload, "268,435,455")
}

// readAtMost is [file.Read] for content of one packet. shown is the limit that the
// standard names, which may include other parts of the packet.
func readAtMost(path string, limit int64, shown string) ([]byte, error) {
	data, err := file.Read(path, limit)
	if errors.Is(err, file.ErrTooLarge) {
		err = fmt.Errorf("is over MQTT's limit of %s bytes", shown)
	}
	return data, err
}

// textName keeps ids short and printable. A part of the SHA-256 distinguishes texts
// that are long or not printable.
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
