package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/mqtt/packet"
)

func TestParsePayloadSizes(t *testing.T) {
	for in, want := range map[string]int{
		"0": 0, "10": 10, "8B": 8, "1k": 1024, "1K": 1024, "1KiB": 1024, "8 KiB": 8192, "8kB": 8000, "1Ki": 1024,
		"1m": 1 << 20, "1M": 1 << 20, "2MiB": 2 << 20, "2MB": 2_000_000, "255MiB": 255 << 20, "268435452": 268435452, "268MB": 268_000_000,
	} {
		p, err := ParsePayload(in)
		if err != nil || p.Size != want || p.Kind != PayloadSize || p.Data != nil {
			t.Errorf("%s: %+v, %v", in, p, err)
		}
		if again, err := ParsePayload(p.Name); err != nil || again.Size != want || again.Name != p.Name {
			t.Errorf("%s: name %s parses to %+v, %v", in, p.Name, again, err)
		}
	}
	if p, _ := ParsePayload("8KiB"); p.Name != "8192" {
		t.Errorf("name %q", p.Name)
	}
}

func TestParsePayloadErrors(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxPayload+1); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ in, want string }{
		{"", "payload is empty: write a size such as 10, 1KiB or 8192"},
		{"-1", "payload must not be negative"},
		{"-1k", "payload must not be negative"},
		{"hello", "hello is not a payload size: write a whole number of bytes such as 10, 1KiB or 8kB, @FILE for a file, text:WORD for the word itself, or one of template:, uniform:, normal:, mix: and trace:FILE"},
		{"1.5k", "1.5k is not a payload size"},
		{"1e3", "1e3 is not a payload size"},
		{"k", "k is not a payload size"},
		{"8KB", "KB means 1000 to some and 1024 to others: write 8kB or 8KiB"},
		{"8kiloBytes", "8kiloBytes is not a payload size"},
		{"268435453", "a payload of 268435453 is over the limit: MQTT packets carry at most 268,435,455 bytes"},
		{"268435456", "268,435,455"},
		{"300MB", "a payload of 300MB is over the limit"},
		{"1G", "a payload of 1G is over the limit"},
		{"99999999999999999999999", "is over the limit"},
		{"@", `payload file "": the name is missing: write @FILE`},
		{"@" + dir + "/none", "payload file " + dir + "/none: no such file or directory"},
		{"@" + dir, "payload file " + dir + ": is a directory, not a file"},
		{"@/dev/null", "payload file /dev/null: is a device or a socket, not a file"},
		{"@" + large, "/large: is over MQTT's limit of 268,435,455 bytes"},
		{"@" + large + "/x", "/large/x: not a directory"},
	}
	for _, tt := range tests {
		if _, err := ParsePayload(tt.in); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %s", tt.in, err, tt.want)
		}
	}
}

func TestPayloadUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := ParsePayload("@" + path); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Error(err)
	}
}

func TestParsePayloadData(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("bytes\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := ParsePayload("@" + path)
	if err != nil || p.Kind != PayloadFile || string(p.Data) != "bytes\x00" || p.Size != 6 || p.Name != "@"+path {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = ParsePayload("text:hi, there")
	if err != nil || p.Kind != PayloadText || string(p.Data) != "hi, there" || p.Size != 9 || p.Name != "text:hi, there" {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = ParsePayload("text:" + strings.Repeat("long ", 100))
	if err != nil || p.Size != 500 || len(p.Name) > 40 {
		t.Errorf("%q, %v", p.Name, err)
	}
	a, _ := ParsePayload("text:\x1b[2J")
	b, _ := ParsePayload("text:\x1b[3J")
	if a.Name == b.Name || strings.Contains(a.Name, "\x1b") {
		t.Errorf("%q and %q", a.Name, b.Name)
	}
}

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{"250ms": 250 * time.Millisecond, "1m30s": 90 * time.Second, "0s": 0, "1.5s": 1500 * time.Millisecond} {
		if d, err := parseDuration(in); err != nil || d != want {
			t.Errorf("%s: %v, %v", in, d, err)
		}
	}
	for in, want := range map[string]string{
		"":       "is empty: write a duration such as 30s, 250ms or 1m30s",
		"30":     "30 has no unit: write 30s",
		"0":      "0 has no unit: write 0s",
		"1.5":    "1.5 has no unit: write 1.5s",
		"-5":     "must not be negative",
		"-5s":    "must not be negative",
		"1d":     "1d is not a duration: write days as hours, 24h",
		"2 days": `"2 days" is not a duration: write days as hours, 24h`,
		"soon":   "soon is not a duration: write one such as 30s, 250ms or 1m30s",
		"5 s":    `"5 s" is not a duration`,
	} {
		if _, err := parseDuration(in); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Minute: "1m", time.Hour: "1h", 90 * time.Second: "1m30s", 250 * time.Millisecond: "250ms", 10 * time.Minute: "10m", 10 * time.Hour: "10h",
	} {
		if got := text.Duration(d); got != want {
			t.Errorf("%v: %s", d, got)
		}
		if again, err := parseDuration(want); err != nil || again != d {
			t.Errorf("%s: %v, %v", want, again, err)
		}
	}
}

func TestParseQoS(t *testing.T) {
	for i, in := range []string{"0", "1", "2"} {
		if q, err := parseQoS(in); err != nil || int(q) != i {
			t.Errorf("%s: %d, %v", in, q, err)
		}
	}
	for _, in := range []string{"3", "-1", "one", "", "00", "1.0", " 1", "0x1"} {
		if _, err := parseQoS(in); err == nil || err.Error() != "qos must be 0, 1 or 2" {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestParseProtocol(t *testing.T) {
	for in, want := range map[string]packet.Version{"3.1": packet.V31, "3.1.1": packet.V311, "5": packet.V5} {
		if v, err := parseProtocol(in); err != nil || v != want {
			t.Errorf("%s: %v, %v", in, v, err)
		}
	}
	for in, want := range map[string]string{
		"3":        "protocol must be 3.1, 3.1.1 or 5: 3 means 3.1 to some tools and 3.1.1 to others: write 3.1 or 3.1.1",
		"4":        "protocol must be 3.1, 3.1.1 or 5: 4 is the protocol level of 3.1.1: write 3.1.1",
		"5.0":      "protocol must be 3.1, 3.1.1 or 5: write 5",
		"v5":       "protocol must be 3.1, 3.1.1 or 5: write 5",
		"MQTT5":    "protocol must be 3.1, 3.1.1 or 5: write 5",
		"mqttv311": "protocol must be 3.1, 3.1.1 or 5: write 3.1.1",
		"":         "protocol must be 3.1, 3.1.1 or 5",
		"6":        "protocol must be 3.1, 3.1.1 or 5",
	} {
		if _, err := parseProtocol(in); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

func TestExpand(t *testing.T) {
	v := Vars{I: 7, C: "client", U: "user", S: 42, R: "r1"}
	for in, want := range map[string]string{
		"":         "",
		"plain":    "plain",
		"a/%i/b":   "a/7/b",
		"%c%u%s%r": "clientuser42r1",
		"100%%i":   "100%i",
		"%%%i%%":   "%7%",
		"%x":       "%x",
		"end%":     "end%",
		"%i/%i":    "7/7",
		"ml%r%i":   "mlr17",
		"ü%iü":     "ü7ü",
	} {
		if got := Expand(in, v); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
