package result

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestCaseID(t *testing.T) {
	for _, c := range []struct {
		params []Param
		want   string
	}{
		{nil, ""},
		{[]Param{{"qos", "1"}, {"payload", "8192"}, {"protocol", "5"}, {"transport", "tls"}}, "qos=1/payload=8192/protocol=5/transport=tls"},
		{[]Param{{"topic", "a/b=c%d"}}, "topic=a%2Fb%3Dc%25d"},
		{[]Param{{"payload", "text:a b\n\x00"}}, "payload=text:a%20b%0A%00"},
		{[]Param{{"x", "µ\u202e\xff"}}, "x=µ%E2%80%AE%FF"},
		{[]Param{{"k/=", ""}}, "k%2F%3D="},
	} {
		got := CaseID(c.params)
		if got != c.want {
			t.Errorf("CaseID(%q) = %q, want %q", c.params, got, c.want)
		}
		back, err := parseCaseID(got)
		if err != nil || !slices.Equal(back, c.params) {
			t.Errorf("parseCaseID(%q) = %q, %v", got, back, err)
		}
	}
}

func TestCaseIDEscapes(t *testing.T) {
	for _, id := range []string{"qos", "qos=1/", "a=%", "a=%2", "a=%zz", "%=1", "a=%+1"} {
		if params, err := parseCaseID(id); err == nil {
			t.Errorf("parseCaseID(%q) = %q, want an error", id, params)
		}
	}
}

func FuzzCaseID(f *testing.F) {
	f.Add("qos", "1", "topic", "a/b=%c")
	f.Add("", "", "\xff", "\u202e\x1b ")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		params := []Param{{k1, v1}, {k2, v2}}
		id := CaseID(params)
		back, err := parseCaseID(id)
		if err != nil || !slices.Equal(back, params) {
			t.Fatalf("%q -> %q -> %q, %v", params, id, back, err)
		}
		if strings.ContainsFunc(id, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
			t.Fatalf("id %q does not print as one word", id)
		}
	})
}

// parseCaseID returns the parameters of an id made by CaseID.
func parseCaseID(id string) ([]Param, error) {
	if id == "" {
		return nil, nil
	}
	var params []Param
	for part := range strings.SplitSeq(id, "/") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("parse case id %q: %q is not key=value", id, part)
		}
		k, err := unescapeID(key)
		if err != nil {
			return nil, fmt.Errorf("parse case id %q: %w", id, err)
		}
		v, err := unescapeID(value)
		if err != nil {
			return nil, fmt.Errorf("parse case id %q: %w", id, err)
		}
		params = append(params, Param{Key: k, Value: v})
	}
	return params, nil
}
