package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPasswordLineEnds: no line end is part of a password, and the first line of a
// file is not empty.
func TestPasswordLineEnds(t *testing.T) {
	for content, want := range map[string]string{"a b\n": "a b", "ab\r\n": "ab", "ab": "ab", " 5%\n": " 5%%"} {
		s := &Scenario{passwordEnv: "PW", LookupEnv: func(string) (string, bool) { return content, true }}
		if got, ok, err := s.password(); got != want || !ok || err != nil {
			t.Errorf("variable %q: got %q, %v, %v", content, got, ok, err)
		}
		if got, ok, err := fromFile(t, content); got != want || !ok || err != nil {
			t.Errorf("file %q: got %q, %v, %v", content, got, ok, err)
		}
	}
	for _, content := range []string{"", "\n", "\r\n", "\nsecret\n", "\ufeff\nsecret"} {
		if _, _, err := fromFile(t, content); err == nil || !strings.Contains(err.Error(), "pw: its first line is empty") || strings.Contains(err.Error(), "secret") {
			t.Errorf("file %q: %v", content, err)
		}
	}
}

func fromFile(t *testing.T, content string) (string, bool, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pw")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return (&Scenario{passwordFile: path}).password()
}
