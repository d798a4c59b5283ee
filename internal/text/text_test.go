package text

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestNearest(t *testing.T) {
	names := []string{"qos", "payload", "protocol", "password", "password-file", "client-id", "min-time", "iterations", "host", "connect_timeout", "user_properties"}
	for typed, want := range map[string]string{
		"qoss": "qos", "QoS": "qos", "qso": "qos", "client_id": "client-id", "clientid": "client-id", "Client_Id": "client-id",
		"pasword": "password", "iteration": "iterations", "time": "min-time", "proto": "protocol", "iter": "iterations",
		"paylaod": "payload", "connect-timeout": "connect_timeout", "userProperties": "user_properties", "timeout": "connect_timeout",
		"p": "", "pass": "", // two begin with it
		"zzzzzz": "", "x": "", "": "", "rate": "", "entirely": "", strings.Repeat("q", 1000): "",
	} {
		if got := Nearest(typed, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", typed, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	long := strings.Repeat("a", 65)
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"abcd", "acbd", 1}, {"qos", "qoss", 1}, {"ca", "abc", 3},
		{long[:64], long[1:], 0}, {long, long, 65}, {"a", long, 65},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestCount(t *testing.T) {
	for _, c := range []struct {
		n    int
		noun string
		want string
	}{{1, "case", "1 case"}, {0, "case", "0 cases"}, {18, "case", "18 cases"}, {1200, "message", "1,200 messages"}, {2, "launch", "2 launches"}, {-1, "core", "-1 cores"}} {
		if got := Count(c.n, c.noun); got != c.want {
			t.Errorf("%d %s: %q, want %q", c.n, c.noun, got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", -999: "-999", -1234567: "-1,234,567", math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := Int(n); got != want {
			t.Errorf("Int(%d) = %q, want %q", n, got, want)
		}
	}
	for _, c := range []struct {
		v        float64
		decimals int
		want     string
	}{{0, 0, "0"}, {12345.678, 2, "12,345.68"}, {-1234.5, 1, "-1,234.5"}, {0.5, 4, "0.5000"}, {1e6, 0, "1,000,000"}} {
		if got := Float(c.v, c.decimals); got != c.want {
			t.Errorf("Float(%v, %d) = %q, want %q", c.v, c.decimals, got, c.want)
		}
	}
}

func TestDuration(t *testing.T) {
	for in, want := range map[time.Duration]string{
		0: "0s", time.Minute: "1m", time.Hour: "1h", 90 * time.Second: "1m30s", time.Hour + 10*time.Minute: "1h10m", 10 * time.Minute: "10m",
		time.Hour + time.Second: "1h0m1s", 24 * time.Hour: "24h", 250 * time.Millisecond: "250ms", 10 * time.Second: "10s",
	} {
		if got := Duration(in); got != want {
			t.Errorf("%v: %q, want %q", in, got, want)
		}
		if again, err := time.ParseDuration(Duration(in)); err != nil || again != in {
			t.Errorf("%v is read back as %v, %v", in, again, err)
		}
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[31m", "\u202eabc", "a\nb\tc\r", "\xff\xfe", "日本語 μs", "\u2028", "�", "a\x1b]0;x\x07b\nc\u202ed\u009be ü→", "\U000e0001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := Plain(s)
		if i := strings.IndexFunc(p, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Fatalf("%q -> %q lets %q through", s, p, p[i:])
		}
		if Plain(p) != p {
			t.Fatalf("%q is not stable", p)
		}
	})
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "ü→ μs": "ü→ μs", "a\nb\r\tc": `a\nb\r\tc`, "\x1b[31m": `\x1b[31m`, "\u009b": `\x9b`, "\u202e": `\u202e`, "\xff": `\xff`, "\U000e0001": `\U000e0001`, "�": "�",
	} {
		if got := Plain(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "word", "two words", `say "hi"`, "\x1b[31m", "\xff", strings.Repeat("é", 61), "\u00a0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q := Quote(s)
		if q == "" || strings.ContainsFunc(q, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%q -> %q", s, q)
		}
		if unquoted, err := strconv.Unquote(q); err == nil {
			q = unquoted
		}
		if head, cut := strings.CutSuffix(q, "..."); q != s && !(cut && strings.HasPrefix(string([]rune(s)), head) && utf8.RuneCountInString(head) == 60) {
			t.Fatalf("%q -> %q", s, q)
		}
	})
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"": `""`, "word": "word", "two words": `"two words"`, `"`: `"\""`, "a\x1b": `"a\x1b"`, "\u00a0": `"\u00a0"`,
		strings.Repeat("x", 60): strings.Repeat("x", 60), strings.Repeat("x", 61): strings.Repeat("x", 60) + "...",
	} {
		if got := Quote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestIsASCII(t *testing.T) {
	for in, want := range map[string]bool{"": false, " ~": true, "a\n": false, "\x7f": false, "é": false, "\xff": false} {
		if got := IsASCII(in); got != want {
			t.Errorf("%q: %t", in, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "10": 10, "8B": 8, "1k": 1024, "1K": 1024, "1KiB": 1024, "8 KiB": 8192, "8kB": 8000, "1Ki": 1024,
		"1m": 1 << 20, "1M": 1 << 20, "2MiB": 2 << 20, "2MB": 2_000_000, "1Mi": 1 << 20,
		"1g": 1 << 30, "1G": 1 << 30, "1GiB": 1 << 30, "3GB": 3e9, "9223372036854775807": math.MaxInt64,
	} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", in, got, err, want)
		}
	}
	for in, want := range map[string]error{
		"": ErrNotSize, "k": ErrNotSize, "-1": ErrNotSize, "1.5k": ErrNotSize, "1e3": ErrNotSize, "8kiloBytes": ErrNotSize, "+1": ErrNotSize, "٣": ErrNotSize,
		"9223372036854775808": ErrSizeRange, "9G9G": ErrNotSize, "8589934592G": ErrSizeRange,
	} {
		if got, err := ParseSize(in); !errors.Is(err, want) || got != 0 {
			t.Errorf("%s: %d, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"8KB", "8 KB"} {
		if _, err := ParseSize(in); err == nil || err.Error() != "KB means 1000 to some and 1024 to others: write 8kB or 8KiB" {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"8192", "8KiB", "8k", "8 kB", "8KB", "9223372036854775807", "8589934592G", "", "-1", "0x10", "1_000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseSize(s)
		if n < 0 || err != nil && n != 0 {
			t.Fatalf("%q: %d, %v", s, n, err)
		}
		if again, err2 := ParseSize(strconv.FormatInt(n, 10)); err == nil && (err2 != nil || again != n) {
			t.Fatalf("%q is %d, read back as %d, %v", s, n, again, err2)
		}
	})
}

func TestUnits(t *testing.T) {
	if n, err := SizeUnit("1.5", "MiB"); err != nil || n != 1<<20 {
		t.Errorf("MiB: %d, %v", n, err)
	}
	if _, err := SizeUnit("1.5", "KB"); err == nil || !strings.HasSuffix(err.Error(), "write 1.5kB or 1.5KiB") {
		t.Errorf("KB: %v", err)
	}
	for unit, want := range map[string]float64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9} {
		if got := CountUnit(unit); got != want {
			t.Errorf("%s: %v, want %v", unit, got, want)
		}
	}
	if got := CountUnit("Ki"); got != 0 {
		t.Errorf("Ki is a unit of counts: %v", got)
	}
}
