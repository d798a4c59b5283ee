package packet

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMatchTopic(t *testing.T) {
	for _, c := range []struct {
		filter, topic string
		want          bool
	}{
		// The examples of section 4.7.1.
		{"sport/tennis/player1/#", "sport/tennis/player1", true},
		{"sport/tennis/player1/#", "sport/tennis/player1/ranking", true},
		{"sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true},
		{"sport/tennis/player1/#", "sport/tennis/player2", false},
		{"sport/#", "sport", true},
		{"sport/#", "sports", false},
		{"#", "a", true},
		{"#", "a/b/c", true},
		{"#", "/", true},
		{"sport/tennis/+", "sport/tennis/player1", true},
		{"sport/tennis/+", "sport/tennis/player1/ranking", false},
		{"sport/+", "sport", false},
		{"sport/+", "sport/", true},
		{"+/+", "/finance", true},
		{"/+", "/finance", true},
		{"+", "/finance", false},
		// Section 4.7.2.
		{"#", "$SYS/x", false},
		{"+/monitor/Clients", "$SYS/monitor/Clients", false},
		{"+", "$SYS", false},
		{"$SYS/#", "$SYS/", true},
		{"$SYS/#", "$SYS", true},
		{"$SYS/monitor/+", "$SYS/monitor/Clients", true},
		{"a/$x/#", "a/$x/y", true},
		{"a/+", "a/$x", true},
		// Section 4.7.3: case, slashes and empty levels count.
		{"ACCOUNTS", "Accounts", false},
		{"/finance", "finance", false},
		{"a//b", "a//b", true},
		{"a/+/b", "a//b", true},
		{"a/b", "a/b/", false},
		{"a/b/", "a/b", false},
		{"a/b/#", "a", false},
		{"a/b", "a", false},
		{"+/#", "a", true},
		{"+/+/#", "a", false},
		{"a/+/#", "a/b", true},
		{"a", "a", true},
	} {
		if got := MatchTopic(c.filter, c.topic); got != c.want {
			t.Errorf("MatchTopic(%q, %q) = %v", c.filter, c.topic, got)
		}
	}
}

// match implements section 4.7.1 level by level: slow but simple.
func match(filter, topic []string) bool {
	switch {
	case len(filter) == 0:
		return len(topic) == 0
	case filter[0] == "#":
		return true
	case len(topic) == 0:
		return false
	}
	return (filter[0] == "+" || filter[0] == topic[0]) && match(filter[1:], topic[1:])
}

func FuzzMatchTopic(f *testing.F) {
	f.Add("a/+/#", "a/b/c")
	f.Add("+/#", "/")
	f.Add("$a/#", "$a")
	f.Fuzz(func(t *testing.T, filter, topic string) {
		if ValidateTopicFilter(filter) != nil || ValidateTopicName(topic) != nil {
			return
		}
		want := match(strings.Split(filter, "/"), strings.Split(topic, "/"))
		if topic[0] == '$' && filter[0] != '$' {
			want = false
		}
		if got := MatchTopic(filter, topic); got != want {
			t.Errorf("MatchTopic(%q, %q) = %v", filter, topic, got)
		}
	})
}

func TestValidateTopicFilter(t *testing.T) {
	for s, ok := range map[string]bool{
		"a": true, "/": true, "+": true, "#": true, "+/a/+/#": true, "$SYS/#": true, " ": true, "a//b": true,
		"": false, "a+": false, "+a": false, "a/b#": false, "#/a": false, "##": false, "++": false, "a/#/": false,
		"a\x00b": false, "a\xff": false, "a\x01": false, "\ufdd0": false,
		"$share/g/a": true, "$share/g/#": true, "$share/g/+/a": true, "$share/g//": true, "$share": true, "$shared/g/+": true,
		"$share/": false, "$share//": false, "$share//a": false, "$share/g": false, "$share/g/": false,
		"$share/+/a": false, "$share/g#/a": false, "$share/g/a#": false,
		strings.Repeat("a", 65535): true, strings.Repeat("a", 65536): false,
	} {
		err := ValidateTopicFilter(s)
		if (err == nil) != ok {
			t.Errorf("%.40q: %v, want ok=%v", s, err, ok)
		}
		if _, typed := errors.AsType[*InvalidError](err); err != nil && !typed {
			t.Errorf("%.40q: %T", s, err)
		}
	}
}

func TestValidateTopicName(t *testing.T) {
	for s, ok := range map[string]bool{
		"a": true, "/": true, "$SYS/a": true, "a b": true, "\ufeffa": true, "a/é/😀": true, "1234567890/a~": true,
		"": false, "+": false, "a/#": false, "12345678+": false, "12345678\x00": false, "\x00": false, "1234567\x7f": false,
		"a\nb": false, "abcdefgh\tabcdefgh": false, "\xc0\x80": false, "\xed\xa0\x80": false, "\uffff": false, "\U0001ffff": false, "\u0080": false,
		strings.Repeat("a", 65535): true, strings.Repeat("a", 65536): false,
	} {
		if err := ValidateTopicName(s); (err == nil) != ok {
			t.Errorf("%.40q: %v, want ok=%v", s, err, ok)
		}
	}
}

// scanText finds every special byte at every position of its eight-byte words.
func TestScanText(t *testing.T) {
	for n := 1; n < 20; n++ {
		for at := range n {
			for c := range 256 {
				b := []byte(strings.Repeat("a", n))
				b[at] = byte(c)
				ascii, special := scanText(b)
				if want := c < 0x20 || c == '+' || c == '#' || c == 0x7f; ascii != (c < 0x80) || special != want {
					t.Fatalf("%q: ascii=%v special=%v", b, ascii, special)
				}
			}
		}
	}
}

func TestSplitShared(t *testing.T) {
	for filter, want := range map[string][2]string{
		"$share/g/a/+": {"g", "a/+"}, "$share/g//": {"g", "/"}, "$share/g/#": {"g", "#"},
		"$share/g": {}, "$share/g/": {}, "$share//a": {}, "a/b": {}, "$SHARE/g/a": {}, "$share/+/a": {},
	} {
		group, rest, ok := SplitShared(filter)
		if group != want[0] || rest != want[1] || ok != (want[0] != "") {
			t.Errorf("%q: %q %q %v", filter, group, rest, ok)
		}
	}
}

func TestValidateUTF8(t *testing.T) {
	for s, ok := range map[string]bool{
		"": true, "a\tb": true, "é€😀": true, "\ufeff": true, "\x00": false, "\xff": false, "abcdefgh\xed\xbf\xbf": false,
		strings.Repeat("a", 65536): false,
	} {
		if err := ValidateUTF8([]byte(s)); (err == nil) != ok {
			t.Errorf("%.40q: %v, want ok=%v", s, err, ok)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("a/b/c"))
	f.Add([]byte("12345678\x00"))
	f.Add([]byte("\xed\xa0\x80"))
	f.Fuzz(func(t *testing.T, b []byte) {
		want := utf8.Valid(b) && !strings.Contains(string(b), "\x00") && len(b) <= maxString
		if got := ValidateUTF8(b) == nil; got != want {
			t.Errorf("ValidateUTF8(%q) = %v", b, got)
		}
		if ValidateTopicName(string(b)) == nil && (!want || strings.ContainsAny(string(b), "+#") || len(b) == 0) {
			t.Errorf("ValidateTopicName(%q) is nil", b)
		}
	})
}
